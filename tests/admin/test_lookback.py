"""The policy's pages that look back: what they show, to whom, and that they change nothing."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tenants.admin.site import CONTENT_SECURITY_POLICY
from tenants.models import User
from tenants.scope import tenant_scope
from tests.admin.conftest import Place, signed_in
from tests.admin.test_isolation import everything
from tests.approvals.house import House

POLICY = "/admin/approvals/policyversion/"
PAGES = ["calibration", "overgating"]


def browser_of(house: House, who: str = "ada") -> Client:
    return signed_in(User.objects.get(username=who), house.tenant.pk)


def cells(page: str, row: str) -> list[str]:
    """The text of a row's cells, by its head."""
    found = re.search(rf'<th scope="row">{re.escape(row)}</th>(.*?)</tr>', page, re.DOTALL)
    assert found, page
    return [re.sub(r"<[^>]*>", "", one).strip() for one in re.findall(r"(?s)<td.*?</td>", found[1])]


def test_the_list_of_policies_leads_to_both(lived: House) -> None:
    listed = browser_of(lived).get(POLICY).content.decode()
    for page in PAGES:
        assert re.search(rf'href="{POLICY}{page}/?"', listed), page


def test_calibration_shows_each_band_with_its_interval(lived: House) -> None:
    with tenant_scope(lived.tenant.pk):
        lived.tool("crm.merge")
        for verdict in ("approve", "approve", "reject"):
            gate = lived.ask("crm.merge", confidence=0.95)
            lived.decide("alice", gate, verdict, reason="as seen")
    page = browser_of(lived).get(f"{POLICY}calibration/").content.decode()
    assert cells(page, "0.9 to 1.0") == [
        *("3", "2", "0", "1", "0", "0"),
        *("0.95", "67 %", "+0.28"),
        "33 % (6 to 79 %)",
    ]
    assert cells(page, "0.4 to 0.5") == ["0"] * 6 + ["—"] * 4
    assert 'x="6.1%" width="73.1%"' in page
    other = browser_of(lived).get(f"{POLICY}calibration/", {"tool": "no.such"}).content.decode()
    assert cells(other, "0.9 to 1.0")[0] == "0"


def test_rules_that_ask_in_vain_are_marked_with_what_it_means(lived: House) -> None:
    browser = browser_of(lived)
    page = browser.get(f"{POLICY}overgating/", {"minimum": "1"}).content.decode()
    assert "All of 1 were approved as proposed" in page
    assert "asks in vain" in page
    page = browser.get(f"{POLICY}overgating/").content.decode()
    assert "fewer than 20" in page
    assert "asks in vain" not in page


def test_a_rules_name_hides_nothing(lived: House) -> None:
    with tenant_scope(lived.tenant.pk):
        lived.policy(
            {"name": "<b>\u202eend", "trigger": "action", "tools": ["*"], "then": "approve"}
        )
    page = browser_of(lived).get(f"{POLICY}overgating/").content.decode()
    assert "<b>\u202e" not in page
    assert "&lt;b&gt;" in page
    assert "\u202e" not in page


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "query",
    [
        {"days": "x", "minimum": "-1"},
        {"days": "9" * 40, "minimum": "9" * 40},
        {"days": "0", "minimum": "0", "tool": "\x00", "workflow": "'\x00"},
        {"days": "7", "minimum": "²"},
    ],
)
def test_looking_changes_nothing_whatever_is_asked(
    lived: House, page: str, query: dict[str, str]
) -> None:
    browser, before = browser_of(lived), everything()
    answer = browser.get(f"{POLICY}{page}/", query)
    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    body = answer.content.decode().partition('id="content"')[2]
    assert " style=" not in body.partition("</main>")[0]
    assert everything() == before


@pytest.mark.parametrize("page", PAGES)
def test_only_who_administers_looks_and_only_at_their_own(
    lived: House, umbrella: Place, page: str
) -> None:
    browsers = [browser_of(lived, who) for who in ("olga", "alice", "vera")]
    stranger, before = umbrella.browser("charlie"), everything()
    for browser in browsers:
        assert browser.get(f"{POLICY}{page}/").status_code in {303, 403}
    theirs = stranger.get(f"{POLICY}{page}/").content.decode()
    assert "0 gates considered" in theirs
    assert everything() == before
