"""Who is asked next, who is warned when, and how long an approval waits before it takes effect."""

from datetime import timedelta

import pytest
from django.db import transaction

from approvals.errors import AlreadyDecided, GateExpired, NotAnApprover
from approvals.models import Assignment, Decision, Gate
from approvals.services import gates
from approvals.services.decisions import withdraw_decision
from config.errors import DomainError
from interrupts.models import Interrupt, Run, Step
from interrupts.services import looking, starting
from tenants.models import GroupMember, OutboxMessage, User
from tests import clock
from tests.approvals.house import fresh
from tests.approvals.test_tampering import told
from tests.clock import moving_clock

__all__ = ["moving_clock"]

ASKS = {"name": "asks", "trigger": "action", "tools": ["*"], "then": "approve"}
NEXT = {**ASKS, "expires_in": 600, "on_expiry": "escalate", "escalate_to": "leads"}


@pytest.fixture
def leads(house):
    """Alice may decide, and so may carol, who leads."""
    house.group("leads", "carol")
    house.group("finance", "alice")
    return house


def asked(house, rule=NEXT, **more):
    house.policy({**rule, **more})
    return house.ask()


def unanswered(gate, seconds=601):
    clock.move(seconds)
    looking.look(gate.run_id)
    return fresh(gate)


def inboxes(gate):
    waits = Assignment.objects.filter(gate=gate).values_list("user__username", flat=True)
    return set(waits)


def damage(gate):
    return Run.objects.get(pk=gate.run_id).damage


def test_where_nobody_answers_the_next_group_is_asked_for_as_long_again(leads):
    gate = asked(leads)
    assert inboxes(gate) == {"alice", "carol"}
    due = gate.expires_at

    gate = unanswered(gate)

    assert (gate.state, gate.approvers, gate.on_expiry) == ("pending", ["leads"], "reject")
    assert timedelta(seconds=599) < gate.expires_at - due < timedelta(seconds=700)
    assert inboxes(gate) == {"carol"}
    interrupt = Interrupt.objects.get(pk=gate.interrupt_id)
    assert (interrupt.status, interrupt.on_expiry) == ("open", "reject")
    assert interrupt.expires_at == gate.expires_at
    assert leads.kinds(gate.run_id).count("gate.escalated") == 1
    assert Run.objects.get(pk=gate.run_id).status == "suspended"


def test_only_the_group_that_is_asked_now_decides(leads):
    gate = unanswered(asked(leads))
    before = leads.trace(gate)
    with pytest.raises(NotAnApprover):
        leads.decide("alice", gate)
    assert leads.trace(gate) == before
    assert leads.decide("carol", gate).state == "approved"
    assert leads.work(gate.run_id) == 1
    assert damage(gate) is None


def test_after_them_it_is_rejected(leads):
    gate = unanswered(unanswered(asked(leads)))
    assert gate.state == "expired"
    assert Step.objects.get(pk=gate.step_id).status == "rejected"
    with pytest.raises((GateExpired, AlreadyDecided)):
        leads.decide("carol", gate)
    assert leads.work(gate.run_id) == 0


def test_a_decision_that_comes_late_is_of_the_group_that_is_asked_by_then(leads):
    """Nobody has looked at the run: the clock decides, not whoever sweeps."""
    gate = asked(leads)
    clock.move(601)
    with pytest.raises(NotAnApprover):
        leads.decide("alice", gate)
    assert fresh(gate).approvers == ["leads"]
    assert not Decision.objects.exists()
    assert leads.decide("carol", gate).state == "approved"


def test_votes_of_those_who_are_asked_no_more_do_not_count(leads):
    gate = asked(leads, quorum=1, approvers=["finance"])
    assert inboxes(gate) == {"alice"}
    gate = unanswered(gate)
    assert inboxes(gate) == {"carol"}
    assert leads.decide("carol", gate).state == "approved"
    assert leads.work(gate.run_id) == 1


def test_what_the_next_group_approved_runs_although_its_stamp_is_stale(leads):
    gate = unanswered(asked(leads, approvers=["finance"]))
    leads.decide("carol", gate)
    leads.policy({**NEXT, "approvers": ["finance"]}, {**ASKS, "name": "mail", "tools": ["mail.*"]})
    assert leads.work(gate.run_id) == 1
    assert damage(gate) is None


def test_a_policy_that_names_others_by_now_asks_them(leads):
    gate = unanswered(asked(leads, approvers=["finance"]))
    leads.policy({**ASKS, "approvers": ["finance"]})
    with pytest.raises(NotAnApprover):
        leads.decide("carol", gate)
    assert leads.decide("alice", gate).state == "approved"


@pytest.mark.parametrize(
    ("now", "state", "approvers"),
    [
        (ASKS, "expired", []),
        ({**ASKS, "expires_in": 60}, "expired", []),
        ({**NEXT, "escalate_to": "finance"}, "pending", ["finance"]),
        ({**ASKS, "expires_in": 60, "on_expiry": "cancel"}, "expired", []),
    ],
    ids=["no expiry", "rejects", "another group", "cancels"],
)
def test_what_expiry_does_follows_the_policy_that_the_gate_was_updated_to(
    leads, now, state, approvers
):
    gate = asked(leads)
    due = gate.expires_at
    leads.policy(now)
    gates.bring_up_to_date(gate.pk)
    assert fresh(gate).expires_at == due
    interrupt = Interrupt.objects.get(pk=gate.interrupt_id)
    assert interrupt.on_expiry == fresh(gate).on_expiry
    gate = unanswered(gate)
    assert (gate.state, gate.approvers) == (state, approvers)
    cancelled = now.get("on_expiry") == "cancel"
    assert (Run.objects.get(pk=gate.run_id).status == "cancelled") is cancelled
    assert damage(gate) is None


def test_a_policy_that_escalates_by_now_loosens_no_gate_that_is_rejected(leads):
    gate = asked(leads, ASKS, expires_in=600)
    leads.policy(NEXT)
    gates.bring_up_to_date(gate.pk)
    assert (fresh(gate).on_expiry, fresh(gate).routing) == ("reject", {})
    assert unanswered(gate).state == "expired"


def test_an_edit_by_a_policy_that_escalates_no_more_is_rejected_in_the_end(leads):
    two = {**NEXT, "quorum": 2}
    leads.group("leads-too", "carol", "alice")
    gate = asked(leads, two, escalate_to="leads-too")
    leads.policy({**ASKS, "quorum": 2})
    leads.decide("alice", gate, arguments={"payment": "p-1", "amount": "7.00"})
    assert unanswered(gate).state == "expired"


def test_where_nobody_is_left_in_the_group_its_admins_are_told(leads):
    gate = asked(leads)
    GroupMember.objects.filter(group__name="leads").delete()
    gate = unanswered(gate)
    assert gate.undecidable_at is not None
    assert "gate.undecidable" in leads.kinds(gate.run_id)


def test_what_others_were_asked_verifies_and_a_forged_group_does_not(leads):
    gate = unanswered(asked(leads))
    run = Run.objects.get(pk=gate.run_id)
    assert told(run) == []
    Gate.objects.filter(pk=gate.pk).update(approvers=["finance"])
    assert told(run) != []


def test_who_is_asked_next_is_told_over_the_api(leads):
    gate = asked(leads)
    before = leads.request("alice", "GET", f"/gates/{gate.pk}")[1]
    assert (before["escalate_to"], before["escalated"]) == ("leads", False)
    gate = unanswered(gate)
    after = leads.request("carol", "GET", f"/gates/{gate.pk}")[1]
    assert (after["escalated"], after["approvers"], after["on_expiry"]) == (
        True,
        ["leads"],
        "reject",
    )


# Warned


@pytest.mark.parametrize(("more", "before_the_end"), [({}, 500), ({"warn_before": 120}, 120)])
def test_people_are_warned_when_policy_says(leads, more, before_the_end):
    with transaction.atomic():
        User.objects.filter(username="alice").update(email="alice@acme.test")
    gate = asked(leads, ASKS, expires_in=1000, **more)
    reminder = OutboxMessage.objects.get(kind="notice.reminder", about=gate.pk)
    before = (gate.expires_at - reminder.due_at).total_seconds()
    assert before == pytest.approx(before_the_end, abs=1)


# Cooling down


def test_an_approval_cools_down_before_it_takes_effect(leads):
    gate = asked(leads, ASKS, cool_down=300)
    assert leads.decide("alice", gate).state == "approved"
    assert leads.work(gate.run_id) == 0
    clock.move(301)
    looking.look(gate.run_id)
    assert leads.work(gate.run_id) == 1


@pytest.mark.parametrize("by", ["policy", "edit"])
def test_who_is_asked_next_leaves_out_no_cool_down_that_is_said_since(leads, by):
    more = {"name": "small", "cool_down": 300, "condition": "arguments.amount == '7.00'"}
    cools = {**NEXT, **more}
    leads.policy(*([NEXT, cools] if by == "edit" else [NEXT]))
    gate = unanswered(leads.ask())
    if by == "policy":
        leads.policy({**NEXT, "cool_down": 300})
    edit = {"arguments": {"payment": "p-1", "amount": "7.00"}} if by == "edit" else {}

    assert leads.decide("carol", gate, **edit).state == "approved"

    assert fresh(gate).approvers == ["leads"]
    assert fresh(gate).routing["cool_down"] == 300
    assert leads.work(gate.run_id) == 0
    clock.move(301)
    looking.look(gate.run_id)
    assert leads.work(gate.run_id) == 1
    assert damage(gate) is None


def test_until_then_it_is_taken_back_and_nothing_runs(leads):
    gate = asked(leads, ASKS, cool_down=300)
    leads.decide("alice", gate)
    withdraw_decision(leads.people["alice"], gate.pk, Decision.objects.get().pk)
    clock.move(301)
    looking.look(gate.run_id)
    assert leads.work(gate.run_id) == 0
    assert fresh(gate).state == "pending"


def test_the_longer_of_cooling_down_and_holding_counts(leads):
    gate = asked(leads, ASKS, cool_down=300)
    leads.decide("alice", gate, hold_seconds=5)
    step = Step.objects.get(pk=gate.step_id)
    decision = Decision.objects.get()
    assert step.due_at - decision.at == timedelta(seconds=300)


def test_with_a_key_it_cools_down_alike(leads):
    gate = asked(leads, ASKS, cool_down=300)
    body = {"verdict": "approve", "digest": gate.digest}
    path = f"/gates/{gate.pk}/decisions"
    assert leads.request("alice", "POST", path, body, **{"Idempotency-Key": "k"})[0] == 201
    assert Step.objects.get(pk=gate.step_id).due_at is not None
    assert leads.work(gate.run_id) == 0


def test_an_agent_does_not_claim_it_meanwhile(leads):
    leads.tool("desk.note", executor={"kind": "agent"}, executor_kind="agent")
    leads.policy({**ASKS, "cool_down": 300})
    gate = leads.ask("desk.note")
    leads.decide("alice", gate)
    with pytest.raises(DomainError):
        starting.claim_step(leads.agent, gate.step_id)
    clock.move(301)
    looking.look(gate.run_id)
    assert starting.claim_step(leads.agent, gate.step_id)[0].fence == 1


def test_the_decider_is_told_that_it_waits(leads):
    gate = asked(leads, ASKS, cool_down=300)
    shown = leads.request("alice", "GET", f"/gates/{gate.pk}")[1]
    assert shown["cool_down"] == 300
    assert "Not before 300 seconds have passed" in shown["allowed"][0]["consequence"]
