"""What can't be undone is approved by who gave their password a short while ago."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals.models import Decision
from tenants.api.auth import FRESH_SECONDS, SESSION_SIGNED_IN
from tenants.models import SignInCount
from tests.approvals.house import House
from tests.pages.browser import Browser, outside
from tests.pages.conftest import PASSWORD, Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)
PHRASE = {"confirmation": "refund 20.00"}


@pytest.fixture
def gate(house: House) -> Any:
    house.tool(effect="irreversible", confirmation="refund {amount}")
    return house.ask()


@pytest.fixture
def old(browser_of: Open) -> Browser:
    """Alice's browser, in which she signed in a while ago."""
    browser = browser_of("alice")
    grow_old(browser, FRESH_SECONDS)
    return browser


def grow_old(browser: Browser, seconds: float) -> None:
    session = browser.client.session
    session[SESSION_SIGNED_IN] -= seconds
    session.save()


def path(gate: Any, more: str = "") -> str:
    return f"/decisions/{gate.pk}{more}"


def test_who_has_just_signed_in_is_asked_for_no_password(browser_of: Open, gate: Any) -> None:
    browser = browser_of("alice")
    grow_old(browser, FRESH_SECONDS - 60)
    page = browser.get(path(gate))
    assert "password" not in page.form("/approve").fields
    assert browser.send(page, "/approve", **PHRASE).status == 303


@pytest.mark.parametrize("password", [None, "", "not hers"])
def test_after_a_while_the_password_is_asked_for_and_nothing_typed_is_lost(
    old: Browser, gate: Any, password: str | None
) -> None:
    page = old.get(path(gate))
    assert page.form("/approve").fields["password"] == ""
    kept = {**PHRASE, "reason": "my note"}
    before = SignInCount.objects.count()
    refused = old.send(page, "/approve", **kept, password=password)
    assert refused.status == 403
    assert "Nothing was recorded." in refused.text
    assert not Decision.objects.exists()
    assert SignInCount.objects.count() > before  # tries are counted
    fields = refused.form("/approve").fields
    assert {name: fields[name] for name in kept} == kept
    assert fields["password"] == ""
    assert old.send(refused, "/approve", password=PASSWORD).location == path(gate, "/record")
    assert "password" not in old.get(path(gate)).html


def test_a_session_that_does_not_say_when_is_old(browser_of: Open, gate: Any) -> None:
    browser = browser_of("alice")
    session = browser.client.session
    del session[SESSION_SIGNED_IN]
    session.save()
    assert "password" in browser.get(path(gate)).form("/approve").fields


def test_tries_are_limited_as_at_sign_in(old: Browser, gate: Any) -> None:
    page = old.get(path(gate))
    for _ in range(10):
        page = old.send(page, "/approve", **PHRASE, password="guess")
    assert "Too many tries" in old.send(page, "/approve", **PHRASE, password=PASSWORD).text
    assert not Decision.objects.exists()


def test_an_edit_asks_for_it_too(house: House, old: Browser, gate: Any) -> None:
    page = old.get(path(gate))
    fields = page.form("/edit").fields
    at = next(name for name, text in fields.items() if text == "20.00")
    review = old.send(page, "/edit", **{at: "7.00"})
    asked = {"confirmation": "refund 7.00"}
    refused = old.send(review, "/approve", **asked, password="not hers")
    assert (refused.status, Decision.objects.exists()) == (403, False)
    assert old.send(refused, "/approve", **asked, password=PASSWORD).status == 303
    house.work(gate.run_id)
    assert house.calls[0][1]["amount"] == "7.00"


def test_what_is_no_approval_needs_none(old: Browser, gate: Any) -> None:
    page = old.get(path(gate))
    assert old.send(page, "/reject", reason="no").status == 303


def test_what_can_be_undone_needs_none(house: House, old: Browser) -> None:
    gate = house.ask()
    page = old.get(path(gate))
    assert "password" not in page.html
    assert old.send(page, "/approve").status == 303


@pytest.mark.parametrize("more", [{}, {"Idempotency-Key": "k-1"}], ids=["plain", "keyed"])
def test_the_api_takes_no_such_approval_from_an_old_session(
    old: Browser, gate: Any, more: dict[str, str]
) -> None:
    token = old.get(path(gate)).form("/approve").fields["csrfmiddlewaretoken"]
    body = {"verdict": "approve", "digest": gate.digest, **PHRASE}

    def decide() -> Any:
        return outside(
            lambda: old.client.post(
                f"/api/v1/gates/{gate.pk}/decisions",
                json.dumps(body),
                content_type="application/json",
                headers={"X-CSRFToken": token, **more},
            )
        )

    with nothing_changes():
        refused = decide()
    assert (refused.status_code, refused.json()["code"]) == (403, "fresh-sign-in-required")
    grow_old(old, -FRESH_SECONDS)
    assert decide().status_code == 201


def test_a_header_makes_no_page_fresh(old: Browser, gate: Any) -> None:
    page = old.get(path(gate))
    sent = {**page.form("/approve").fields, **PHRASE}
    made = outside(
        lambda: old.client.post(
            path(gate, "/approve"), sent, headers={"Authorization": "Bearer aby_user_none"}
        )
    )
    assert made.status_code == 403
    assert not Decision.objects.exists()
