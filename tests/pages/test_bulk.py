"""Several of low risk reviewed on one page: what is on it, what is approved, what is told then."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection

from approvals import waiting
from approvals.models import Decision, Gate, View
from approvals.services import bulk
from tests.approvals.house import House, fresh, no_preview, shown_preview
from tests.pages.browser import Browser, Page
from tests.pages.conftest import Open, nothing_changes
from tests.pages.test_lists import Counted, ask, due_in, named

pytestmark = pytest.mark.django_db(transaction=True)

REVIEW = "/inbox/review"
TWO = {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}


def shown(page: Page) -> list[str]:
    """The headlines beside the ticks, in their order."""
    return re.findall(r'name="gate" value="[^"]+"><span>([^<]+)</span>', page.html)


def approve(browser: Browser, page: Page, *gates: Gate) -> Page:
    """Tick these gates on the page and send it."""
    form = page.form(REVIEW)
    return browser.post(form.action, {**form.fields, "gate": [str(one.pk) for one in gates]})


def test_the_inbox_leads_to_it_where_there_are_two(house: House, browser_of: Open) -> None:
    named(house)
    named(house, "other", risk="medium")
    browser = browser_of("alice")
    ask(house, "one")
    ask(house, "more", "other")
    assert REVIEW not in browser.get("/inbox").html
    ask(house, "two")
    page = browser.get("/inbox")
    assert "Review 2 of low risk together" in page.text
    assert f'href="{REVIEW}"' in page.html
    assert REVIEW not in browser_of("bob").get("/inbox").html


def test_only_what_may_be_approved_together_is_on_it(house: House, browser_of: Open) -> None:
    house.previews["unseen"] = no_preview
    named(house)
    named(house, "medium", risk="medium")
    named(house, "high", risk="high")
    named(house, "never", effect="irreversible")
    named(house, "unseen", previewed=True)
    ask(house, "low")
    for tool in ("medium", "high", "never", "unseen"):
        ask(house, tool, tool)
    ask(house, "her own", run=house.run(requested_by="alice"))
    house.decide("carol", ask(house, "decided"), "reject", reason="no")
    due_in(ask(house, "expired"), -1)
    browser = browser_of("alice")
    assert shown(browser.get(REVIEW)) == ["low"]
    assert shown(browser_of("bob").get(REVIEW)) == []
    assert "Nothing to review together" in browser_of("vera").get(REVIEW).text


def test_what_she_voted_for_is_not_on_it_again(house: House, browser_of: Open) -> None:
    named(house)
    house.policy(TWO)
    gate = ask(house, "one")
    house.decide("carol", gate)
    assert "1 of 2: yours counts as one more" in browser_of("alice").get(REVIEW).text
    assert shown(browser_of("carol").get(REVIEW)) == []


def test_each_is_shown_whole_by_tool_and_none_is_ticked(house: House, browser_of: Open) -> None:
    house.previews["shop.order"] = lambda *_: shown_preview("40.00 is spent")
    long = "x" * 5000
    house.tool("shop.order", previewed=True, arguments={"type": "object"}, headline="Buy {a}")
    house.tool("mail.send", arguments={"type": "object"}, consequence="{a} is told")
    house.ask("shop.order", {"a": "tea", "note": long}, reasoning="she asked for it")
    house.ask("mail.send", {"a": "Bob"})
    gate = house.ask("shop.order", {"a": "milk"})
    due_in(gate, 30)
    page = browser_of("alice").get(REVIEW)
    assert re.findall(r"<h2[^>]*><code>([^<]+)<", page.html) == ["mail.send", "shop.order"]
    assert shown(page) == ["mail.send", "Buy milk", "Buy tea"]
    assert "checked" not in page.form(REVIEW).fields
    assert "gate" not in page.form(REVIEW).fields
    for text in (long, "she asked for it", "40.00 is spent", "Bob is told", "no limit: it waits"):
        assert text in page.text, text
    assert "A person is asked whatever policy says." in page.text or "Rule “" in page.text
    assert page.form(REVIEW).fields[f"digest-{gate.pk}"] == gate.digest


def test_that_each_was_shown_is_kept_and_nothing_else(house: House, browser_of: Open) -> None:
    named(house)
    gates = [ask(house, "one"), ask(house, "two")]
    browser = browser_of("alice")
    with nothing_changes():
        browser.get(REVIEW)
        browser.get(REVIEW)
    views = View.objects.order_by("gate")
    assert [(one.gate_id, one.digest) for one in views] == [(one.pk, one.digest) for one in gates]
    assert {one.user_id for one in views} == {house.people["alice"].id}
    assert views[0].snapshot["what"]["arguments"] == {"payment": "one", "amount": "1"}


def test_the_ticked_ones_are_approved_and_can_be_undone(house: House, browser_of: Open) -> None:
    named(house)
    one, two, left = ask(house, "one"), ask(house, "two"), ask(house, "left")
    browser = browser_of("alice")
    sent = approve(browser, browser.get(REVIEW), one, two)
    assert (sent.status, sent.location) == (303, "/inbox/reviewed")
    page = browser.follow(sent)
    assert "2 approved" in page.text
    assert [fresh(gate).state for gate in (one, two, left)] == ["approved", "approved", "pending"]
    assert house.work(one.run_id) == 0
    decision = Decision.objects.get(gate=one)
    undone = browser.send(page, f"/decisions/{one.pk}/withdraw/{decision.pk}")
    assert undone.location == f"/decisions/{one.pk}"
    assert fresh(one).state == "pending"
    again = browser.get("/inbox/reviewed")
    assert "taken back by you" in again.text
    assert not again.has_form(f"/decisions/{one.pk}/withdraw/{decision.pk}")
    assert again.has_form(f"/decisions/{two.pk}/withdraw/{Decision.objects.get(gate=two).pk}")
    assert fresh(one).state == "pending"


def test_what_somebody_else_decided_meanwhile_is_told(house: House, browser_of: Open) -> None:
    named(house)
    mine, theirs = ask(house, "mine"), ask(house, "theirs")
    browser = browser_of("alice")
    page = browser.get(REVIEW)
    house.decide("carol", theirs, "reject", reason="no")
    before = house.trace(theirs)["gate"]
    told = browser.follow(approve(browser, page, mine, theirs))
    assert "1 approved, 1 not" in told.text
    assert "The gate is rejected." in told.text
    assert house.trace(theirs)["gate"] == before
    assert Decision.objects.get(gate=mine).user_id == house.people["alice"].id


def test_what_has_changed_since_it_was_shown_is_not_approved(
    house: House, browser_of: Open
) -> None:
    named(house)
    gate = ask(house, "one")
    browser = browser_of("alice")
    page = browser.get(REVIEW)
    house.policy(TWO)
    house.decide("carol", gate, arguments={"payment": "other", "amount": "1"})
    told = browser.follow(approve(browser, page, gate))
    assert "0 approved, 1 not" in told.text
    assert fresh(gate).state == "pending"
    assert not Decision.objects.filter(user=house.people["alice"].id).exists()


def test_what_takes_more_is_not_approved_by_it(house: House, browser_of: Open) -> None:
    named(house)
    named(house, "other", risk="medium")
    ask(house, "one")
    gate = ask(house, "more", "other")
    browser = browser_of("alice")
    browser.get(f"/decisions/{gate.pk}")
    page = browser.get(REVIEW)
    before = house.trace(gate)
    fields = {**page.form(REVIEW).fields, f"digest-{gate.pk}": gate.digest, "gate": [str(gate.pk)]}
    told = browser.follow(browser.post(REVIEW, fields))
    assert "This is decided by itself" in told.text
    assert house.trace(gate) == before


@pytest.mark.parametrize(
    ("ticked", "says"),
    [
        ([], "Tick what you approve."),
        (["nonsense"], "This is none of what was shown."),
        (["twice", "twice"], "Nothing was approved"),
        (["twice"] * 51, "At most 50 are approved at once."),
    ],
)
def test_a_form_of_another_shape_approves_nothing(
    house: House, browser_of: Open, ticked: list[str], says: str
) -> None:
    named(house)
    gate = ask(house, "one")
    browser = browser_of("alice")
    form = browser.get(REVIEW).form(REVIEW)
    before = house.trace(gate)
    named_gates = [str(gate.pk) if one == "twice" else one for one in ticked]
    page = browser.post(REVIEW, {**form.fields, "gate": named_gates})
    assert page.status == 422
    assert says in page.text
    assert shown(page) == ["one"]
    assert house.trace(gate) == before


def test_pages_hold_each_once(
    house: House, browser_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "PAGE", 3)
    named(house)
    for number in range(7):
        ask(house, f"n{number}")
    assert all_pages(browser_of("alice")) == [f"n{number}" for number in range(7)]


def test_a_page_of_long_calls_ends_early_and_leaves_none_out(
    house: House, browser_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MOST_CHARACTERS", 3000)
    house.tool("notes", arguments={"type": "object"}, headline="{payment}")
    for number in range(4):
        house.ask("notes", {"payment": f"n{number}", "text": "y" * 2000})
    browser = browser_of("alice")
    assert shown(browser.get(REVIEW)) == ["n0"]
    assert View.objects.count() == 1
    assert all_pages(browser) == [f"n{number}" for number in range(4)]


def all_pages(browser: Browser) -> list[str]:
    page, seen = browser.get(REVIEW), []
    while True:
        seen += shown(page)
        onward = re.search(r'href="(\?[^"]+)">Next', page.html)
        if onward is None:
            return seen
        page = browser.get(REVIEW + onward[1].replace("&amp;", "&"))


def test_it_costs_the_same_statements_however_many_are_on_it(
    house: House, browser_of: Open
) -> None:
    named(house)
    browser = browser_of("alice")

    def statements() -> int:
        browser.get(REVIEW)
        with connection.execute_wrapper(counted := Counted()):
            browser.get(REVIEW)
        return counted.number

    ask(house, "first")
    few = statements()
    for number in range(9):
        ask(house, f"n{number}")
    assert statements() == few


def test_what_was_told_in_another_tenant_is_not_told_here(
    house: House, browser_of: Open, nothing_of_another: Any
) -> None:
    named(house)
    gate = ask(house, "one")
    browser = browser_of("alice")
    assert browser.get("/inbox/reviewed").location == REVIEW
    assert "1 approved" in browser.follow(approve(browser, browser.get(REVIEW), gate)).text
    browser.send(browser.get("/tenant"), "/tenant", tenant="umbrella")
    assert browser.get("/inbox/reviewed").location == REVIEW
    assert "one" not in shown(browser.get(REVIEW))


def test_a_gate_of_another_tenant_is_told_as_not_there(
    house: House, browser_of: Open, nothing_of_another: Gate
) -> None:
    browser = browser_of("alice")
    named(house)
    ask(house, "one")
    form = browser.get(REVIEW).form(REVIEW)
    there = nothing_of_another
    fields = {**form.fields, f"digest-{there.pk}": there.digest, "gate": [str(there.pk)]}
    told = browser.follow(browser.post(REVIEW, fields))
    assert "0 approved, 1 not" in told.text
    assert "secret" not in told.html
