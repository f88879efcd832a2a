"""A person's own page: colours, zone, keys and password."""

from __future__ import annotations

import pytest

from tenants.models import User
from tests.approvals.house import House
from tests.pages.browser import Browser
from tests.pages.conftest import PASSWORD, Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)


def test_times_are_shown_in_ones_own_zone(house: House, browser_of: Open) -> None:
    house.ask()
    browser = browser_of("alice")
    kept = browser.follow(
        browser.send(browser.get("/profile"), "/profile", time_zone="Asia/Kathmandu")
    )
    assert "Kept." in kept.text
    assert "times in Asia/Kathmandu" in browser.get("/inbox").text
    assert browser.get("/profile").form("/profile").fields["time_zone"] == "Asia/Kathmandu"


@pytest.mark.parametrize(
    ("field", "value"),
    [("time_zone", "Mars/Olympus"), ("time_zone", ""), ("time_zone", "../etc"), ("theme", "pink")],
)
def test_what_does_not_exist_is_not_kept(
    house: House, browser_of: Open, field: str, value: str
) -> None:
    browser = browser_of("alice")
    page = browser.get("/profile")
    with nothing_changes():
        refused = browser.send(page, "/profile", **{field: value})
    assert refused.status == 422
    if field == "time_zone":
        assert "No time zone has this name. Nothing was changed." in refused.text
        assert refused.form("/profile").fields["time_zone"] == value


def test_a_password_is_changed_and_other_sessions_end(house: House, browser_of: Open) -> None:
    browser = browser_of("alice")
    other = Browser()
    other.sign_in("alice", PASSWORD)
    new = "quite another one"
    changed = browser.send(
        browser.get("/profile"), "/profile/password", old=PASSWORD, new=new, again=new
    )
    assert "Your password is changed." in browser.follow(changed).text
    assert browser.get("/inbox").status == 200
    assert other.get("/inbox").location.startswith("/sign-in")
    assert Browser().sign_in("alice", PASSWORD).status == 422
    assert Browser().sign_in("alice", new).status == 303


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"old": "wrong"}, "This is not your password."),
        ({"new": "short", "again": "short"}, "at least 10 characters"),
        ({"again": "something else"}, "This is not the same as above."),
        ({"new": PASSWORD.upper(), "again": PASSWORD.upper()}, "nor the old one"),
        ({"new": "alice", "again": "alice"}, "at least 10 characters"),
    ],
)
def test_a_password_that_will_not_do_changes_nothing(
    house: House, browser_of: Open, typed: dict[str, str], said: str
) -> None:
    browser = browser_of("alice")
    page = browser.get("/profile")
    good = {"old": PASSWORD, "new": "quite another one", "again": "quite another one"}
    with nothing_changes():
        refused = browser.send(page, "/profile/password", **{**good, **typed})
    assert refused.status == 422
    assert said in refused.text
    assert all(
        value == "" for name, value in refused.form("/password").fields.items() if name in good
    )
    assert User.objects.get(username="alice").check_password(PASSWORD)


@pytest.mark.parametrize(("who", "links"), [("ada", 2), ("alice", 0)])
def test_who_administers_is_led_to_the_admin(
    house: House, browser_of: Open, who: str, links: int
) -> None:
    assert browser_of(who).get("/profile").html.count('href="/admin/"') == links
