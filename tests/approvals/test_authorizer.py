"""What the engine asks of approvals when a stamp has gone stale, and by the way."""

import pytest
from django.db import transaction
from django.utils import timezone

from approvals.authorizer import PolicyAuthorizer
from approvals.errors import AlreadyDecided
from approvals.models import Decision, Gate
from interrupts.authorizer import authorizer
from interrupts.models import Interrupt, Run, Step, Tool
from tenants.authority import raise_authority
from tenants.journal import SYSTEM
from tenants.services.agents import end_agents
from tests.approvals.house import CALL, fresh

ALLOW = {"name": "notes", "trigger": "action", "tools": ["note.*"], "then": "allow"}
DENY = {"name": "no", "trigger": "action", "tools": ["*"], "then": "deny", "reason": "frozen"}


def rule(**more):
    return {"name": "r", "trigger": "action", "tools": ["*"], "then": "approve", **more}


@pytest.fixture
def approved(house):
    """A call that a person approved and that has not started."""
    gate = house.ask()
    house.decide("alice", gate)
    return house, gate


def step_of(gate):
    return Step.objects.get(pk=gate.step_id)


def gate_of(step):
    return Gate.objects.get(pk=fresh(step).gate)


def test_the_engine_asks_this_authorizer():
    authorizer.cache_clear()
    assert isinstance(authorizer(), PolicyAuthorizer)


def test_an_approval_holds_while_nothing_that_matters_has_changed(approved):
    house, gate = approved
    house.grant("bob", "*")
    house.policy(rule())

    assert house.work(gate.run_id) == 1
    step = step_of(gate)
    assert (step.authorized_gate, step.authorized_policy_version) == (gate.pk, 1)
    assert fresh(gate).state == "approved"


def test_an_approval_holds_where_policy_asks_nobody_by_now(approved):
    house, gate = approved
    house.policy({**rule(), "then": "allow"})

    assert house.work(gate.run_id) == 1
    assert step_of(gate).authorized_by == "decision"


def test_a_policy_that_denies_by_now_stops_what_was_approved(approved):
    house, gate = approved
    house.policy(DENY)

    assert house.work(gate.run_id) == 0
    step = step_of(gate)
    assert (step.status, step.reason) == ("denied", "frozen")
    assert house.calls == []
    assert Run.objects.get(pk=gate.run_id).status == "running"


def test_a_larger_quorum_is_asked_for_anew(approved):
    house, gate = approved
    house.policy(rule(quorum=2))

    assert house.work(gate.run_id) == 0
    newer = gate_of(step_of(gate))
    assert fresh(gate).state == "superseded"
    assert (newer.state, newer.quorum) == ("pending", 2)
    assert Run.objects.get(pk=gate.run_id).status == "suspended"
    house.decide("alice", newer)
    house.decide("carol", newer)
    assert house.work(gate.run_id) == 1


def test_votes_of_who_lost_the_right_stop_counting_before_the_effect(approved):
    house, gate = approved
    house.grant("alice", "mail.*")

    assert house.work(gate.run_id) == 0
    newer = gate_of(step_of(gate))
    assert (fresh(gate).state, newer.state) == ("superseded", "pending")
    assert not Decision.objects.get(gate=gate).counts
    assert house.calls == []
    house.decide("carol", newer)
    assert house.work(gate.run_id) == 1


def test_a_policys_narrower_approvers_are_asked_anew(approved):
    house, gate = approved
    house.group("finance", "carol")
    house.policy(rule(approvers=["finance"]))

    assert house.work(gate.run_id) == 0
    newer = gate_of(step_of(gate))
    assert newer.approvers == ["finance"]
    assert house.decide("carol", newer).state == "approved"


def test_a_newer_version_of_the_tool_is_asked_about_anew(approved):
    house, gate = approved
    house.tool(risk="medium")

    assert house.work(gate.run_id) == 0
    step = step_of(gate)
    newer = gate_of(step)
    assert fresh(gate).state == "superseded"
    assert (newer.tool_version.number, newer.ceremony, step.tool_number) == (2, "review", 2)
    house.look(newer, "alice")
    house.decide("alice", newer)
    assert house.work(gate.run_id) == 1
    assert house.calls == [("payments.refund", CALL)]


def test_a_newer_version_is_asked_about_even_where_policy_would_allow_it(approved):
    house, gate = approved
    house.policy({**rule(), "then": "allow"})
    house.tool(risk="medium")

    assert house.work(gate.run_id) == 0
    assert gate_of(step_of(gate)).triggers[0]["explanation"] == "Its tool has a newer version."


def test_a_retired_tool_starts_nothing_more(approved):
    house, gate = approved
    with transaction.atomic():
        Tool.objects.update(retired_at=timezone.now())
        raise_authority()

    assert house.work(gate.run_id) == 0
    assert (step_of(gate).status, step_of(gate).reason) == ("denied", "The tool was retired.")


def test_what_policy_had_allowed_is_judged_again(house):
    house.tool("note.write", effect="idempotent", arguments={"type": "object"})
    house.policy(ALLOW)
    run = house.run()
    first = house.propose("note.write", {}, run=run)
    assert first.authorized_by == "policy"
    house.policy(rule())

    assert house.work(run) == 0
    assert (fresh(first).status, gate_of(first).state) == ("waiting", "pending")


def test_an_allowed_call_takes_up_a_newer_version_of_its_tool(house):
    house.tool("note.write", effect="idempotent", arguments={"type": "object"})
    house.policy(ALLOW)
    run = house.run()
    step = house.propose("note.write", {}, run=run)
    house.tool("note.write", effect="idempotent", arguments={"type": "object"}, timeout_seconds=3)

    assert house.work(run) == 1
    step = fresh(step)
    assert (step.status, step.tool_number, step.authorized_tool_version) == (
        "succeeded",
        2,
        step.tool_version_id,
    )


def test_what_waited_for_the_budget_is_a_call_of_the_version_in_force(house):
    from interrupts.services.responses import respond

    house.tool("note.write", effect="idempotent", arguments={"type": "object"})
    house.policy(ALLOW)
    run = house.run(budget={"steps": 0})
    step = house.propose("note.write", {}, run=run)
    assert (step.status, step.held_by, step.tool_number) == ("waiting", "budget", 1)
    house.tool("note.write", effect="idempotent", arguments={"type": "object"}, timeout_seconds=3)

    interrupt = Interrupt.objects.get(run=run)
    respond(
        house.people["olga"],
        interrupt.pk,
        checkpoint=interrupt.checkpoint,
        resolution="resume",
        value={"steps": 5},
    )

    step = fresh(step)
    assert (step.status, step.tool_number) == ("ready", 2)
    assert step.authorized_tool_version == step.tool_version_id
    assert house.work(run) == 1


# By the way


def test_the_policys_budgets_and_hosts_are_in_force(house):
    house.policy(budgets={"steps": 3}, allowed_hosts=["127.0.0.1:9000"])

    assert house.run().budget == {"steps": 3}
    assert authorizer().allowed_hosts() == ("127.0.0.1:9000",)
    assert authorizer().policy_version() == 1
    house.policy(budgets={"steps": 5})
    assert house.run().budget == {"steps": 5}
    assert authorizer().allowed_hosts() == ()


def test_who_may_decide_a_tool_of_the_run_may_stop_it(house):
    gate = house.ask()
    run = Run.objects.get(pk=gate.run_id)

    assert authorizer().may_decide_any(house.people["carol"].id, run)
    assert not authorizer().may_decide_any(house.people["bob"].id, run)
    assert not authorizer().may_decide_any(house.people["vera"].id, run)


def test_an_unanswered_gate_cancels_the_run_where_the_rule_says_so(house):
    from datetime import timedelta

    from interrupts.services import looking

    house.policy(rule(expires_in=60, on_expiry="cancel"))
    gate = house.ask()
    past = gate.opened_at - timedelta(seconds=1)
    Gate.objects.filter(pk=gate.pk).update(expires_at=past)
    Interrupt.objects.filter(pk=gate.interrupt_id).update(expires_at=past)

    looking.look(gate.run_id)

    assert fresh(gate).state == "expired"
    assert Run.objects.get(pk=gate.run_id).status == "cancelled"
    assert Interrupt.objects.get(pk=gate.interrupt_id).resolution == "time_out"


@pytest.mark.parametrize("reason", [None, "fine"], ids=["hot", "long"])
def test_nobody_approves_what_an_agent_proposed_that_was_deactivated(house, reason):
    gate = house.ask()
    with transaction.atomic():
        end_agents(SYSTEM, ["bot"])
    with pytest.raises(AlreadyDecided):
        house.decide("alice", gate, reason=reason)
    assert (fresh(gate).state, step_of(gate).status) == ("withdrawn", "denied")
    assert "deactivated" in step_of(gate).reason
    assert not Decision.objects.exists()
    house.work(gate.run_id)
    assert house.calls == []
