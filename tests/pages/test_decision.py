"""The decision page: what it shows, its four ceremonies, each answer by its form."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import Decision, View
from interrupts.models import Step
from tests.approvals.house import House, fresh, no_preview, shown_preview
from tests.pages.conftest import Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)

LEVELS = {
    "single": {"risk": "low", "effect": "reversible"},
    "review": {"risk": "medium", "effect": "reversible"},
    "explicit": {"risk": "high", "effect": "reversible"},
    "typed": {"risk": "low", "effect": "irreversible", "confirmation": "refund {amount}"},
}


def tool(house: House, ceremony: str, **more: Any) -> None:
    house.tool(
        headline="Refund {amount} of {payment}",
        consequence="{amount} leaves the account",
        **{**LEVELS[ceremony], **more},
    )


def path(gate: Any, more: str = "") -> str:
    return f"/decisions/{gate.pk}{more}"


def test_the_page_shows_what_why_and_what_could_go_wrong(house: House, browser_of: Open) -> None:
    tool(house, "explicit", failure_modes=["The wrong one is refunded"], blast_radius="one order")
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    gate = house.ask(reasoning="She was charged twice", failure_modes=["She may complain"])
    page = browser_of("alice").get(path(gate))
    assert page.status == 200
    for said in (
        "Refund 20.00 of p-1",
        "20.00 leaves the account",
        "payments.refund",
        "“p-1”",
        "The wrong one is refunded",
        "one order",
        "Rule “two”",
        "Written by the agent. Not checked",
        "She was charged twice",
        "She may complain",
        "Approvals: 0 of 2",
        "2 missing: you, carol",
    ):
        assert said in page.text, said


def test_a_dry_run_of_the_agents_own_stands_in_its_box(house: House, browser_of: Open) -> None:
    house.previews["payments.refund"] = lambda *_: shown_preview()
    tool(house, "single", previewed=True)
    change = {"object": "amount", "before": None, "after": "2.00"}
    gate = house.ask(dry_run={"summary": "2.00 goes back", "changes": [change]})
    for who in ("alice", "carol"):
        page = browser_of(who).get(path(gate))
        box = page.html.partition("own. Not checked: neither the tool")
        assert "2.00 goes back" in box[2].partition("</div>")[0]
        assert "2.00 goes back" not in box[0].replace("20.00 goes back", "")
        assert "own dry run says something else" in page.text
    browser = browser_of("alice")
    browser.send(browser.get(path(gate)), "/approve")
    seen = browser.get(path(gate, f"/seen/{Decision.objects.get().pk}"))
    assert "own. Not checked: neither the tool" in seen.text


def test_looking_keeps_what_was_shown_and_changes_nothing_else(
    house: House, browser_of: Open
) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    with nothing_changes():
        for _ in range(2):
            assert browser.get(path(gate)).status == 200
    (view,) = View.objects.all()
    assert (view.gate_id, view.user_id, view.digest) == (
        gate.pk,
        house.people["alice"].id,
        gate.digest,
    )


def test_low_risk_is_approved_by_one_button_and_held_for_its_undo(
    house: House, browser_of: Open
) -> None:
    tool(house, "single")
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    assert "You can undo for 10 s after approving." in page.text
    done = browser.send(page, "/approve")
    assert (done.status, done.location) == (303, path(gate, "/record"))
    decision = Decision.objects.get()
    assert (decision.verdict, decision.digest, decision.user_id) == (
        "approve",
        gate.digest,
        house.people["alice"].id,
    )
    step = Step.objects.get(pk=gate.step_id)
    assert step.status == "ready"
    assert (step.due_at - decision.at).total_seconds() == pytest.approx(10, abs=0.1)
    house.work(gate.run_id)
    assert house.calls == []  # the undo time is not over


@pytest.mark.parametrize("ceremony", ["review", "explicit", "typed"])
def test_above_low_risk_it_runs_at_once(house: House, browser_of: Open, ceremony: str) -> None:
    tool(house, ceremony)
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    given = {"explicit": {"understood": "on"}, "typed": {"confirmation": " refund  20.00 "}}
    done = browser.send(page, "/approve", **given.get(ceremony, {}), reason="looks right")
    assert done.location == path(gate, "/record")
    assert Decision.objects.get().reason == "looks right"
    house.work(gate.run_id)
    assert house.calls == [("payments.refund", {"amount": "20.00", "payment": "p-1"})]


@pytest.mark.parametrize(
    ("ceremony", "given"),
    [
        ("explicit", {}),
        ("typed", {}),
        ("typed", {"confirmation": "refund 2000"}),
        ("typed", {"confirmation": "Refund 20.00"}),
    ],
)
def test_a_ceremony_that_is_not_met_records_nothing_and_keeps_what_was_typed(
    house: House, browser_of: Open, ceremony: str, given: dict[str, str]
) -> None:
    tool(house, ceremony)
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    with nothing_changes():
        refused = browser.send(page, "/approve", **given, reason="my note")
    assert refused.status == 422
    assert "Nothing was recorded." in refused.text
    fields = refused.form("/approve").fields
    assert fields["reason"] == "my note"
    assert fields.get("confirmation", "") == given.get("confirmation", "")
    # What was shown stays open: the answer can be given from this very page.
    met = {"explicit": {"understood": "on"}, "typed": {"confirmation": "refund 20.00"}}[ceremony]
    assert browser.send(refused, "/approve", **met).status == 303


def test_on_what_cannot_be_undone_the_safe_answer_comes_first(
    house: House, browser_of: Open
) -> None:
    browser = browser_of("alice")
    orders = {}
    for ceremony in ("review", "typed"):
        tool(house, ceremony)
        page = browser.get(path(house.ask()))
        actions = [form.action.rpartition("/")[2] for form in page.forms[1:]]
        orders[ceremony] = [
            action for action in actions if action not in {"questions", "assignment"}
        ]
    assert orders["review"] == ["approve", "edit", "changes", "respond", "reject"]
    assert orders["typed"] == ["reject", "edit", "changes", "respond", "approve"]


@pytest.mark.parametrize(
    ("answer", "state", "status"),
    [("reject", "rejected", "rejected"), ("changes", "changes_requested", "revised")],
)
def test_a_reason_is_told_to_the_agent(
    house: House, browser_of: Open, answer: str, state: str, status: str
) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    done = browser.send(browser.get(path(gate)), f"/{answer}", reason=" Only one charge. ")
    assert done.location == path(gate, "/record")
    step = Step.objects.get(pk=gate.step_id)
    assert (fresh(gate).state, step.status, step.reason) == (state, status, "Only one charge.")
    assert house.calls == []


@pytest.mark.parametrize("answer", ["reject", "changes"])
@pytest.mark.parametrize("reason", ["", "  \n "])
def test_without_a_reason_nothing_is_recorded(
    house: House, browser_of: Open, answer: str, reason: str
) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    with nothing_changes():
        refused = browser.send(page, f"/{answer}", reason=reason)
    assert refused.status == 422
    assert "Say why: the agent is told. Nothing was recorded." in refused.text


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ({"value": "paid by hand\r\nyesterday"}, "paid by hand\nyesterday"),
        ({"value": "12"}, "12"),
        ({"value": '{"paid": 12.5}', "as_json": "on"}, {"paid": 12.5}),
        ({"value": "null", "as_json": "on"}, None),
    ],
)
def test_a_persons_value_becomes_the_result(
    house: House, browser_of: Open, typed: dict[str, str], value: Any
) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    done = browser.send(browser.get(path(gate)), "/respond", **typed)
    assert done.location == path(gate, "/record")
    status, step, _ = house.request("alice", "GET", f"/steps/{gate.step_id}")
    assert (status, step["status"], step["result"]) == (200, "succeeded", value)
    assert house.calls == []
    assert "The agent got the person\u2019s value" in browser.get(path(gate, "/record")).text


@pytest.mark.parametrize(
    "typed", [{"value": " "}, {"value": "{", "as_json": "on"}, {"value": "1e999", "as_json": "on"}]
)
def test_a_value_that_cannot_be_read_records_nothing(
    house: House, browser_of: Open, typed: dict[str, str]
) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    with nothing_changes():
        refused = browser.send(page, "/respond", **typed)
    assert refused.status == 422
    assert refused.form("/respond").fields["value"] == typed["value"]
    assert "Nothing was recorded." in refused.text


def test_a_nul_is_refused_where_it_was_typed(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    with nothing_changes():
        assert browser.send(page, "/reject", reason="a\0b").status == 422


def test_the_quorum_is_shown_as_it_fills(house: House, browser_of: Open) -> None:
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    gate = house.ask()
    first, second = browser_of("alice"), browser_of("carol")
    page = first.get(path(gate))
    assert "“two”" in page.text
    first.send(page, "/approve")
    mine = first.get(path(gate))
    assert "You approved this" in mine.text
    assert "1 more approval is missing." in mine.text
    assert not mine.has_form("/approve")
    theirs = second.get(path(gate))
    assert "Approvals: 1 of 2" in theirs.text
    assert "1 missing: you" in theirs.text
    second.send(theirs, "/approve")
    assert fresh(gate).state == "approved"


def test_the_dry_run_is_shown_with_its_time(house: House, browser_of: Open) -> None:
    house.previews["payments.refund"] = lambda *_: shown_preview(
        "20.00 goes back",
        changes=[
            {"object": "Order 7", "before": "paid", "after": "refunded"},
            {"object": "Fee", "before": None, "after": {"amount": 1}},
        ],
        warnings=["The order is old"],
    )
    tool(house, "review")
    page = browser_of("alice").get(path(house.ask()))
    for said in (
        "20.00 goes back",
        "Order 7 paid refunded",
        'Fee none {"amount": 1}',
        "The order is old",
        "Dry run by payments.refund",
    ):
        assert said in page.text, said


def test_a_dry_run_that_failed_is_said_and_approving_asks_for_more(
    house: House, browser_of: Open
) -> None:
    house.previews["payments.refund"] = no_preview
    tool(house, "single")
    gate = house.ask()
    page = browser_of("alice").get(path(gate))
    assert "The dry run could not be taken" in page.text
    assert "The far end is down." in page.text
    assert "hold" not in page.form("/approve").fields
    assert gate.ceremony == "review"


def test_sensitive_values_are_nowhere_on_the_page(house: House, browser_of: Open) -> None:
    tool(house, "review", sensitive=["/card"])
    call = {"payment": "p-1", "amount": "20.00", "card": "4111111111111111"}
    gate = house.ask(arguments=call)
    browser = browser_of("alice")
    page = browser.get(path(gate))
    assert "••• not shown" in page.text
    browser.send(page, "/approve")
    for shown in (page, browser.get(path(gate)), browser.get(path(gate, "/record"))):
        assert "4111111111111111" not in shown.html
    decision = Decision.objects.get()
    assert "4111111111111111" not in browser.get(path(gate, f"/seen/{decision.pk}")).html


def test_the_headline_alone_is_cut(house: House, browser_of: Open) -> None:
    house.tool(headline="Refund {payment}")
    long = "x" * 150
    page = browser_of("alice").get(path(house.ask(arguments={"payment": long, "amount": "1"})))
    assert f"<h1>Refund {'x' * 72}…</h1>" in page.html
    assert f"“{long}”" in page.text
    assert f"Refund {long}" in page.text


def test_what_looks_like_a_call_of_unknown_outcome_is_said(house: House, browser_of: Open) -> None:
    gate = house.ask()
    type(gate).objects.filter(pk=gate.pk).update(twin=gate.step_id)
    assert "The same call has an unknown outcome" in browser_of("alice").get(path(gate)).text


def test_the_latest_decisions_about_the_tool_stand_beside_it(
    house: House, browser_of: Open
) -> None:
    house.decide("alice", house.ask(arguments={"payment": "old", "amount": "1"}))
    house.decide(
        "carol", house.ask(arguments={"payment": "bad", "amount": "2"}), "reject", reason="no"
    )
    page = browser_of("alice").get(path(house.ask()))
    assert "Of the latest 50: 1 approved, 0 of them with edits, 1 rejected." in page.text
    assert "Rejected, carol" in page.text


def test_the_page_costs_the_same_statements_whatever_it_shows(
    house: House, browser_of: Open, django_assert_max_num_queries: Any
) -> None:
    for number in range(6):
        house.decide("alice", house.ask(arguments={"payment": f"old{number}", "amount": "1"}))
    gate = house.ask()
    browser = browser_of("alice")
    browser.get(path(gate))
    with django_assert_max_num_queries(45):
        browser.get(path(gate))
