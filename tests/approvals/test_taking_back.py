"""An approval can be held, and taken back by whoever gave it, until its step starts."""

from datetime import timedelta

import pytest
from django.db.models import F

from approvals.errors import AlreadyDecided, AlreadyStarted
from approvals.models import Assignment, Decision
from approvals.services.decisions import withdraw_decision
from config.errors import Forbidden, PeopleOnly, VersionMismatch
from interrupts.models import Interrupt, Run, Step
from tenants.conditions import IfMatch
from tests.approvals.house import CALL, fresh


def take_back(house, decision, who="alice", **more):
    return withdraw_decision(house.people[who], decision.gate_id, decision.pk, **more)


@pytest.fixture
def held(house):
    gate = house.ask()
    return house.decided("alice", gate, "approve", hold_seconds=60)


def test_a_held_approval_starts_nothing_before_its_time(house, held):
    gate = held.gate
    assert gate.state == "approved"
    assert house.work(gate.run_id) == 0
    assert Run.objects.get(pk=gate.run_id).due_at is not None

    Step.objects.filter(pk=gate.step_id).update(due_at=F("created_at") - timedelta(seconds=1))
    assert house.work(gate.run_id) == 1


def test_taken_back_the_gate_asks_again_and_the_run_is_held_again(house, held):
    gate = held.gate

    take_back(house, held.decision)

    step, run = Step.objects.get(pk=gate.step_id), Run.objects.get(pk=gate.run_id)
    reopened = fresh(gate)
    assert reopened.state == "pending"
    assert (step.status, step.authorized_by, step.due_at) == ("waiting", None, None)
    assert (run.status, run.open_interrupts, run.epoch) == ("suspended", 1, 3)
    interrupt = Interrupt.objects.get(pk=reopened.interrupt_id)
    assert (interrupt.status, interrupt.gate, interrupt.pk) == ("open", gate.pk, step.interrupt)
    assert interrupt.pk != gate.interrupt_id
    assert not fresh(held.decision).counts
    assert Assignment.objects.filter(gate=gate).count() == 2
    assert house.work(gate.run_id) == 0
    assert house.calls == []


def test_what_was_taken_back_can_be_decided_anew(house, held):
    take_back(house, held.decision)

    again = house.decided("alice", fresh(held.gate), "approve")

    assert not again.replayed
    assert again.gate.state == "approved"
    assert house.work(held.gate.run_id) == 1
    assert house.calls == [("payments.refund", CALL)]


def test_taken_back_again_it_changes_nothing(house, held):
    take_back(house, held.decision)
    before = house.trace(fresh(held.gate))

    take_back(house, held.decision)

    assert house.trace(fresh(held.gate)) == before


def refused(house, decided, problem, who="alice", **more):
    before = house.trace(decided.gate)
    with pytest.raises(problem):
        take_back(house, decided.decision, who, **more)
    assert house.trace(decided.gate) == before


def test_nobody_takes_back_what_another_said(house, held):
    refused(house, held, Forbidden, "carol")
    refused(house, held, Forbidden, "ada")


def test_an_agent_takes_nothing_back(house, held):
    with pytest.raises(PeopleOnly):
        withdraw_decision(house.agent, held.gate.pk, held.decision.pk)


def test_another_version_of_the_run_is_refused(house, held):
    refused(house, held, VersionMismatch, if_match=IfMatch(frozenset({"1"})))


def test_what_has_started_is_not_taken_back(house):
    decided = house.decided("alice", house.ask(), "approve")
    house.work(decided.gate.run_id)

    refused(house, decided, AlreadyStarted)


def test_a_rejection_stands(house):
    decided = house.decided("alice", house.ask(), "reject", reason="no")

    refused(house, decided, AlreadyDecided)


def test_one_of_two_approvals_is_taken_back_while_the_other_is_missing(house):
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    gate = house.ask()
    first = house.decided("alice", gate, "approve")

    take_back(house, first.decision)

    assert house.decide("carol", gate).state == "pending"
    assert house.decided("alice", gate, "approve").gate.state == "approved"
    assert Decision.objects.filter(counts=True).count() == 2


def test_an_approval_that_an_edit_outdated_counts_no_more(house):
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    gate = house.ask()
    first = house.decided("alice", gate, "approve")
    house.decide("carol", gate, arguments={**CALL, "amount": "1.00"})

    refused(house, first, AlreadyDecided)
