"""What each verdict does, to gate, step, interrupt, run and journal, in one commit."""

import pytest

from approvals.models import Assignment, Decision
from interrupts.models import Interrupt, Receipt, Run, Step
from tests.approvals.house import fresh


def test_an_approval_lets_the_call_run_once_as_shown(house):
    gate = house.ask()
    assert house.calls == []

    decided = house.decide("alice", gate)

    assert decided.state == "approved"
    step, run = Step.objects.get(pk=gate.step_id), Run.objects.get(pk=gate.run_id)
    assert (step.status, step.authorized_by, step.authorized_gate) == ("ready", "decision", gate.pk)
    assert (run.status, run.open_interrupts) == ("running", 0)
    interrupt = Interrupt.objects.get(pk=gate.interrupt_id)
    assert (interrupt.status, interrupt.resolution) == ("resolved", "resume")
    assert interrupt.response["verdict"] == "approve"
    assert house.kinds(gate.run_id)[-4:] == [
        "gate.decided",
        "step.authorized",
        "interrupt.resolved",
        "run.resumed",
    ]
    assert house.work(gate.run_id) == 1
    assert house.calls == [("payments.refund", {"payment": "p-1", "amount": "20.00"})]
    assert house.work(gate.run_id) == 0
    assert not Assignment.objects.exists()


@pytest.mark.parametrize(
    ("verdict", "state", "status", "resolution"),
    [
        ("reject", "rejected", "rejected", "resume"),
        ("request_changes", "changes_requested", "revised", "revise"),
    ],
)
def test_a_refusal_runs_nothing_and_tells_the_agent_why(house, verdict, state, status, resolution):
    gate = house.ask()

    house.decide("alice", gate, verdict, reason="not this customer")

    step = Step.objects.get(pk=gate.step_id)
    assert fresh(gate).state == state
    assert (step.status, step.reason) == (status, "not this customer")
    assert Interrupt.objects.get(pk=gate.interrupt_id).resolution == resolution
    assert Run.objects.get(pk=gate.run_id).status == "running"
    assert house.work(gate.run_id) == 0
    assert house.calls == []


def test_a_persons_answer_becomes_the_steps_result(house):
    gate = house.ask()

    house.decide("alice", gate, "respond", value={"note": "done by phone"})

    step = Step.objects.get(pk=gate.step_id)
    assert (step.status, step.attempts, step.authorized_by) == ("succeeded", 0, None)
    assert Receipt.objects.get(step=step).source == "person"
    assert fresh(gate).state == "responded"
    assert house.work(gate.run_id) == 0
    assert house.calls == []


def test_the_same_decision_again_is_the_first_one(house):
    gate = house.ask()
    first = house.decided("alice", gate, "approve")
    before = house.trace(gate)

    again = house.decided("alice", gate, "approve")

    assert (first.replayed, again.replayed) == (False, True)
    assert again.decision.pk == first.decision.pk
    assert house.trace(gate) == before


def test_arguments_of_the_same_canonical_form_are_no_edit(house):
    gate = house.ask()

    house.decide("alice", gate, arguments={"amount": "20.00", "payment": "p-1"})

    decision = Decision.objects.get()
    assert decision.edits is None
    assert decision.approves == gate.arguments_digest
    assert house.decided("alice", gate, "approve").replayed


def test_edited_arguments_are_what_runs(house):
    gate = house.ask()
    before = Step.objects.get(pk=gate.step_id).digest
    edited = {"payment": "p-1", "amount": "5.00"}

    house.decide("alice", gate, arguments=edited)

    step = Step.objects.get(pk=gate.step_id)
    assert step.digest != before
    assert step.authorized_digest == step.digest
    house.work(gate.run_id)
    assert house.calls == [("payments.refund", edited)]
    assert Decision.objects.get().edits is not None
    assert house.decided("alice", gate, "approve", arguments=edited).replayed
    assert house.decided(
        "alice", gate, "approve", arguments=dict(reversed(edited.items()))
    ).replayed
