"""Votes: whose count, of what is shown, and how many are needed."""

import pytest

from approvals.errors import DigestMismatch, GatePreparing
from approvals.models import Decision
from approvals.services import preview
from interrupts.models import Step
from tests.approvals.house import fresh

TWO = {
    "name": "two",
    "trigger": "action",
    "tools": ["payments.*"],
    "then": "approve",
    "quorum": 2,
}
LESS = {"payment": "p-1", "amount": "7.00"}


@pytest.fixture
def quorum(house):
    house.policy(TWO)
    return house


def counting(gate):
    votes = Decision.objects.filter(gate=gate, counts=True, verdict="approve")
    return sorted(votes.values_list("user__username", flat=True))


def test_two_different_people_are_needed(quorum):
    gate = quorum.ask()

    assert quorum.decide("alice", gate).state == "pending"
    assert quorum.decided("alice", gate, "approve").replayed
    assert counting(gate) == ["alice"]
    assert quorum.work(gate.run_id) == 0

    assert quorum.decide("carol", gate).state == "approved"
    assert quorum.work(gate.run_id) == 1


def test_one_refusal_ends_the_gate_whoever_approved_before(quorum):
    gate = quorum.ask()
    quorum.decide("alice", gate)

    assert quorum.decide("alice", gate, "reject", reason="on second thought").state == "rejected"
    assert Step.objects.get(pk=gate.step_id).status == "rejected"
    assert counting(gate) == []


def test_an_edit_starts_the_count_again_with_its_editor(quorum):
    gate = quorum.ask()
    quorum.decide("alice", gate)

    edited = quorum.decide("carol", gate, arguments=LESS)

    assert (edited.state, counting(gate)) == ("pending", ["carol"])
    assert edited.digest != gate.digest
    with pytest.raises(DigestMismatch):
        quorum.decide("alice", gate)
    assert quorum.decide("alice", edited).state == "approved"
    quorum.work(gate.run_id)
    assert quorum.calls == [("payments.refund", LESS)]


def test_a_second_edit_by_the_same_person_is_a_new_decision(quorum):
    gate = quorum.ask()
    first = quorum.decide("alice", gate, arguments=LESS)
    second = quorum.decide("alice", first, arguments={"payment": "p-1", "amount": "8.00"})

    assert (counting(gate), Decision.objects.count()) == (["alice"], 2)
    assert quorum.decide("carol", second).state == "approved"
    quorum.work(gate.run_id)
    assert quorum.calls == [("payments.refund", {"payment": "p-1", "amount": "8.00"})]


def test_an_edits_preview_is_taken_anew_while_votes_are_missing(quorum):
    quorum.tool(previewed=True)
    gate = quorum.ask()

    edited = quorum.decide("alice", gate, arguments=LESS)

    assert (edited.state, edited.preview) == ("preparing", None)
    with pytest.raises(GatePreparing):
        quorum.decide("carol", edited)
    preview.take_preview(gate.pk)
    shown = fresh(gate)
    assert shown.state == "pending"
    assert shown.preview is not None
    assert counting(gate) == ["alice"]
    assert quorum.decided("alice", gate, "approve", arguments=LESS).replayed
    assert quorum.decide("carol", shown).state == "approved"


def test_an_edit_that_completes_the_quorum_waits_for_no_preview(house):
    house.tool(previewed=True)
    gate = house.ask()

    assert house.decide("alice", gate, arguments=LESS).state == "approved"


def test_votes_of_who_lost_the_right_count_no_more(quorum):
    gate = quorum.ask()
    quorum.decide("alice", gate)
    quorum.grant("alice", "mail.*")

    assert quorum.decide("carol", gate).state == "pending"
    assert counting(gate) == ["carol"]
    quorum.grant("alice", "*")
    assert quorum.decide("alice", gate).state == "approved"


def test_a_larger_quorum_of_a_newer_policy_counts(house):
    gate = house.ask()
    house.policy(TWO)

    assert house.decide("alice", gate).state == "pending"
    asked = fresh(gate)
    assert (asked.quorum, asked.rule, asked.policy_version) == (2, "two", 1)
    assert house.decide("carol", gate).state == "approved"


def test_a_smaller_quorum_of_a_newer_policy_does_not(quorum):
    gate = quorum.ask()
    quorum.policy({**TWO, "quorum": 1})

    assert quorum.decide("alice", gate).state == "pending"
    assert fresh(gate).quorum == 2


def test_a_newer_policys_approvers_are_asked_in_place_of_the_others(quorum):
    gate = quorum.ask()
    quorum.group("finance", "carol")
    quorum.policy({**TWO, "quorum": 2, "approvers": ["finance"]})
    assert sorted(gate.assignments.values_list("user__username", flat=True)) == ["alice", "carol"]

    assert quorum.decide("carol", gate).state == "pending"
    assert list(gate.assignments.values_list("user__username", flat=True)) == ["carol"]
