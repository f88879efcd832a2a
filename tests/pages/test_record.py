"""The record of a decision, taking an approval back, and what was shown."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from approvals.models import Decision
from interrupts.models import Step
from tests.approvals.house import House, fresh
from tests.pages.conftest import Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)


def path(gate: Any, more: str = "") -> str:
    return f"/decisions/{gate.pk}{more}"


def test_an_approval_of_low_risk_is_undone_within_its_window(
    house: House, browser_of: Open
) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    record = browser.follow(browser.send(browser.get(path(gate)), "/approve"))
    assert "Approved: payments.refund. It runs in" in record.text
    decision = Decision.objects.get()
    undone = browser.send(record, f"/withdraw/{decision.pk}")
    assert undone.location == path(gate)
    assert fresh(gate).state == "pending"
    assert browser.get(path(gate)).has_form("/approve")
    assert "Taken back at" in browser.get(path(gate, "/record")).text
    house.work(gate.run_id)
    assert house.calls == []


def test_after_the_window_it_runs_and_its_receipt_appears(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    record = browser.follow(browser.send(browser.get(path(gate)), "/approve"))
    assert "data-poll" in record.html
    with connection.cursor() as cursor:
        cursor.execute("UPDATE interrupts_step SET due_at = now() WHERE id = %s", [gate.step_id])
    house.work(gate.run_id)
    assert len(house.calls) == 1
    after = browser.get(path(gate, "/record"))
    assert "receipt" in after.text
    assert "Approved, done" in after.text
    assert "data-poll" not in after.html
    with nothing_changes():
        late = browser.send(record, f"/withdraw/{Decision.objects.get().pk}")
    assert late.status == 409
    assert "What was decided has begun" in late.text
    assert "Nothing was changed." in late.text


def test_a_vote_is_taken_back_until_the_quorum_is_met(house: House, browser_of: Open) -> None:
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    gate = house.ask()
    browser = browser_of("alice")
    browser.send(browser.get(path(gate)), "/approve")
    decision = Decision.objects.get()
    browser.send(browser.get(path(gate)), f"/withdraw/{decision.pk}")
    assert not fresh(decision).counts
    assert "Approvals: 0 of 2" in browser.get(path(gate)).text


def test_nobody_takes_anothers_approval_back(house: House, browser_of: Open) -> None:
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    gate = house.ask()
    decision = house.decided("alice", gate, "approve").decision
    browser = browser_of("carol")
    page = browser.get(path(gate, "/record"))
    assert not page.has_form(f"/withdraw/{decision.pk}")
    token = page.form("/sign-out").fields
    with nothing_changes():
        refused = browser.post(path(gate, f"/withdraw/{decision.pk}"), token)
    assert refused.status == 403
    assert "Only who decided takes it back." in refused.text


def test_a_decision_of_another_gate_is_no_page(house: House, browser_of: Open) -> None:
    gate, other = house.ask(), house.ask(arguments={"payment": "q", "amount": "1"})
    decision = house.decided("alice", other, "approve").decision
    browser = browser_of("alice")
    token = browser.get(path(gate)).form("/sign-out").fields
    assert browser.post(path(gate, f"/withdraw/{decision.pk}"), token).status == 404
    assert browser.get(path(gate, f"/seen/{decision.pk}")).status == 404
    assert browser.get(path(gate, f"/withdraw/{decision.pk}")).location == path(gate, "/record")


def test_everybody_of_the_tenant_reads_the_record(house: House, browser_of: Open) -> None:
    gate = house.ask()
    decision = house.decided("alice", gate, "reject", reason="One charge only.").decision
    page = browser_of("vera").get(path(gate, "/record"))
    assert "bot asked" in page.text
    assert "alice: Rejected" in page.text
    assert "“One charge only.”" in page.text
    assert f"/seen/{decision.pk}" in page.html


def test_what_was_shown_stays_as_it_was(house: House, browser_of: Open) -> None:
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    gate = house.ask()
    browser = browser_of("alice")
    browser.send(browser.get(path(gate)), "/approve")
    decision = Decision.objects.get()
    house.decide("carol", gate, arguments={"payment": "p-1", "amount": "15.00"})
    assert "“15.00”" in browser.get(path(gate)).text
    seen = browser_of("vera").get(path(gate, f"/seen/{decision.pk}"))
    assert "What alice saw" in seen.text
    assert "“20.00”" in seen.text
    assert "“15.00”" not in seen.text


def test_a_decision_without_a_look_says_so(house: House, browser_of: Open) -> None:
    gate = house.ask()
    decision = house.decided("alice", gate, "approve").decision
    page = browser_of("vera").get(path(gate, f"/seen/{decision.pk}"))
    assert "No page and no look-up showed them this" in page.text


def test_an_unknown_outcome_is_said(house: House, browser_of: Open) -> None:
    gate = house.ask()
    house.decide("alice", gate)
    for status in ("executing", "unknown"):
        Step.objects.filter(pk=gate.step_id).update(status=status)
    page = browser_of("alice").get(path(gate, "/record"))
    assert "Outcome unknown" in page.text
    assert "Nothing is sent again before it is settled what happened." in page.text
