"""What runs without asking a person, on their pages."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from delegation import predicates
from delegation.models import Delegation, DelegationUse
from interrupts.models import Step, Tool
from tenants.clock import database_now
from tenants.ids import uuid7
from tests.approvals.house import House
from tests.delegation.office import known
from tests.pages.conftest import Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)

PREDICATE = {
    "all": [
        {"f": "@agent", "in": ["bot"]},
        {"f": "tier", "in": ["basic", "gold\u202e<b>"]},
        {"f": "amount", "le": "75"},
    ],
    "except_pairs": [],
    "ceilings": [],
    "per_day": {"calls": 5, "sum": {"amount": "120"}},
}


def rule(house: House, who: str = "alice", status: str = "suggested", **more: Any) -> Delegation:
    given = {
        "user_id": house.people[who].id,
        "tool": Tool.objects.get(name="payments.refund").pk,
        "tool_number": 1,
        "status": status,
        "origin": "learned",
        "risk": "low",
        "predicate": PREDICATE,
        "sha256": "sha256:" + "0" * 64,
        "backtest": {"allowed": 5, "refused": 0, "asked": 2, "still_asks": None},
        "changed_at": database_now(),
        **more,
    }
    return Delegation.objects.create(**given)


def test_each_rule_is_told_in_plain_words_in_its_section(house: House, browser_of: Open) -> None:
    made = rule(house)
    rule(house, "carol", "active")
    browser = browser_of("alice")
    assert "Runs without asking" in browser.get("/inbox").text
    page = browser.get("/delegation/")
    assert "0 active rules, 0 paused, 1 suggested" in page.text
    for words in ("payments.refund", "agent is bot", "amount is at most 75", "at most 5 a day"):
        assert words in page.text, words
    assert "gold<b>" not in page.html
    assert "would have matched nothing you refused" in page.text
    assert page.has_form(f"/delegation/{made.pk}/dismiss")
    assert not page.has_form(f"/delegation/{made.pk}/accept"), "only its review turns it on"


@pytest.mark.parametrize("who", ["bob", "olga", "vera"])
def test_a_rule_of_another_is_nobodys_but_an_admins(
    house: House, browser_of: Open, who: str
) -> None:
    made = rule(house, "alice", "active")
    browser = browser_of(who)
    for path in (f"/delegation/{made.pk}", f"/delegation/{made.pk}/uses"):
        page = browser.get(path)
        assert (page.status, "payments.refund" in page.text) == (403, False)
    assert "payments.refund" not in browser.get("/delegation/").text
    seen = browser_of("ada").get(f"/delegation/{made.pk}")
    assert "matched nothing they refused" in seen.text
    assert "Checked by them" in seen.text
    assert seen.has_form("/revoke")
    assert seen.has_form("/pause")
    assert not seen.has_form("/tighten")


def test_a_rule_is_narrowed_turned_on_and_revoked_by_plain_forms(
    house: House, browser_of: Open
) -> None:
    made = rule(house)
    browser = browser_of("alice")
    page = browser.get(f"/delegation/{made.pk}")
    with nothing_changes():
        wider = browser.send(page, "/tighten", f2="76")
        assert (wider.status, "Nothing was changed." in wider.text) == (422, True)
        same = browser.send(page, "/tighten")
        assert (same.status, "Nothing of it is narrower." in same.text) == (422, True)
        none = browser.send(page, "/tighten", **{"f1-0": None, "f1-1": None})
        assert (none.status, "Leave one at least" in none.text) == (422, True)
        for wrong in ("x", "-1", "5.5"):
            assert browser.send(page, "/tighten", calls=wrong).status == 422
    done = browser.send(page, "/tighten", f2="50", calls="3", **{"f1-1": None})
    assert done.location == "/delegation/?done=tighten"
    made.refresh_from_db()
    assert made.predicate["all"][1:] == [
        {"f": "tier", "in": ["basic"]},
        {"f": "amount", "le": "50"},
    ]
    assert made.predicate["per_day"] == {"calls": 3, "sum": {"amount": "120"}}

    with nothing_changes():
        stale = browser.send(page, "/accept")
    assert (stale.status, made.status) == (409, "suggested"), "another version was read"
    page = browser.get(f"/delegation/{made.pk}")
    assert browser.send(page, "/accept").location == "/delegation/?done=accept"
    made.refresh_from_db()
    assert made.status == "active"
    page = browser.get("/delegation/")
    assert browser.send(page, "/revoke").location == "/delegation/?done=revoke"
    made.refresh_from_db()
    assert made.status == "revoked"
    assert "Revoked" in browser.get(f"/delegation/{made.pk}").text


def test_a_suggestion_is_dismissed_and_everything_asked_again(
    house: House, browser_of: Open
) -> None:
    made = rule(house)
    browser = browser_of("alice")
    browser.send(browser.get("/delegation/"), "/dismiss")
    made.refresh_from_db()
    assert made.dismissed_at is not None
    asked = browser.send(browser.get("/delegation/"), "/ask-everything")
    page = browser.follow(asked)
    assert "You are asked about everything" in page.text
    page = browser.follow(browser.send(page, "/ask-everything"))
    assert "You are asked about everything" not in page.text


def test_everything_a_rule_allowed_is_listed_in_pages(house: House, browser_of: Open) -> None:
    made = rule(house, "alice", "active")
    step = Step.objects.get(pk=house.ask().step_id)
    for _ in range(51):
        DelegationUse.objects.create(
            delegation=made, version=1, decision=None, step=step.pk, at=database_now()
        )
    browser = browser_of("alice")
    page = browser.get(f"/delegation/{made.pk}/uses")
    assert page.text.count("payments.refund") >= 50
    older = re.search(r'href="\?(before=[^"]+)"', page.html)
    assert older is not None
    rest = browser.get(f"/delegation/{made.pk}/uses?{older[1]}")
    assert rest.html.count('data-l="It is now"') == 1
    assert "Back to the latest" in rest.text
    assert browser.get(f"/delegation/{made.pk}/uses?before=x").status == 200


def test_a_rule_is_offered_beside_the_answer_and_never_in_it(
    house: House, browser_of: Open
) -> None:
    house.tool("shop.note", roles={"amount": "number", "payment": "id"})
    asked = [PREDICATE["all"][0], PREDICATE["all"][2], {"f": "payment", "any": True}]
    predicate = known({"all": asked})
    made = rule(house, tool=Tool.objects.get(name="shop.note").pk, predicate=predicate)
    gate = house.ask("shop.note")
    page = browser_of("alice").get(f"/decisions/{gate.pk}")
    assert "Stop asking me about this?" in page.text
    assert f'href="/delegation/{made.pk}"' in page.html
    assert not any("/delegation/" in form.action for form in page.forms)
    assert "Stop asking me" not in browser_of("carol").get(f"/decisions/{gate.pk}").text


def test_what_no_page_takes_is_a_page_that_says_so(house: House, browser_of: Open) -> None:
    made = rule(house)
    browser, other = browser_of("alice"), browser_of("bob")
    token = browser.get("/delegation/").form("/ask-everything").fields
    with nothing_changes():
        assert browser.get(f"/delegation/{uuid7()}").status == 404
        assert browser.get(f"/delegation/{made.pk}/nothing").status == 404
        assert browser.get(f"/delegation/{made.pk}/accept").location == f"/delegation/{made.pk}"
        assert browser.post(f"/delegation/{made.pk}/nothing", token).status == 404
        assert browser.post(f"/delegation/{made.pk}/accept", token).status == 422
        assert browser.post(f"/delegation/{uuid7()}/revoke", token).status == 404
        assert other.get(f"/delegation/{made.pk}/accept").status == 303


TYPED_WRONG: Final = [
    ("calls", "9" * 5_000),
    ("calls", "0"),
    ("calls", "\u0665"),
    ("a2", "[" * 100_000),
    ("a2", "NaN"),
    ("a2", "9" * 5_000),
    ("a0", "1e400"),
    ("a0", "9" * 5_000),
    ("a0", "-1"),
]


def test_whatever_is_typed_into_a_rule_by_hand_is_a_form_with_what_is_wrong(
    house: House, browser_of: Open
) -> None:
    declared = {"type": "object", "properties": {"tier": {"type": "integer"}}}
    roles = {"amount": "number", "order": "id", "tier": "enum"}
    house.tool("shop.credit", arguments=declared, roles=roles)
    browser = browser_of("alice")
    page = browser.get("/delegation/new?tool=shop.credit")
    fields = {"a0": "20", "a2": "5\n6", "calls": "5"}
    with nothing_changes():
        for field, said in TYPED_WRONG:
            wrong = browser.send(page, "/delegation/new", **{**fields, field: said})
            assert (wrong.status, "Nothing was changed." in wrong.text) == (422, True), field
    browser.send(page, "/delegation/new", **fields)
    assert Delegation.objects.get().predicate["all"][-1] == {"f": "tier", "in": ["=5", "=6"]}


def test_a_note_is_as_short_on_the_page_as_in_the_api(house: House, browser_of: Open) -> None:
    made = rule(house, status="active")
    browser = browser_of("alice")
    page = browser.get(f"/delegation/{made.pk}")
    with nothing_changes():
        long = browser.send(page, "/pause", note="n" * 1_001)
    assert (long.status, "1,000 characters at most" in long.text) == (422, True)
    assert browser.send(page, "/pause", note="n" * 1_000).location == "/delegation/?done=pause"


def test_what_of_a_day_is_free_of_its_sum_is_said_and_stays(house: House, browser_of: Open) -> None:
    """A learned rule has it; a form that changes nothing of the day changes nothing of it."""
    bounds = {"calls": 5, "free": 3, "sum": {"amount": "120"}}
    made = rule(house, predicate={**PREDICATE, "per_day": bounds})
    Delegation.objects.filter(pk=made.pk).update(sha256=predicates.sha256(made.predicate))
    browser = browser_of("alice")
    page = browser.get(f"/delegation/{made.pk}")
    assert "amount at most 120 a day, after its first 3 calls" in page.text
    with nothing_changes():
        assert "Nothing of it is narrower." in browser.send(page, "/tighten").text
    browser.send(page, "/accept")
    made.refresh_from_db()
    assert (made.status, made.version, made.predicate["per_day"]) == ("active", 1, bounds)


def test_a_rule_shows_the_day_it_has_after_it_was_narrowed_twice(
    house: House, browser_of: Open
) -> None:
    made = rule(house, origin="person")
    Delegation.objects.filter(pk=made.pk).update(sha256=predicates.sha256(made.predicate))
    browser = browser_of("alice")
    browser.send(browser.get(f"/delegation/{made.pk}"), "/accept", calls="4")
    browser.send(browser.get(f"/delegation/{made.pk}"), "/tighten", calls="2")
    page = browser.get(f"/delegation/{made.pk}")
    assert "at most 2 a day" in page.text
    assert "(now 2)" in page.text
    browser.send(page, "/pause")
    page = browser.get(f"/delegation/{made.pk}")
    assert browser.send(page, "/accept", calls="1").location == "/delegation/?done=accept"
