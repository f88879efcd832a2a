"""What an agent may use in a day as it is declared, and decisions about what went stale."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals import hot
from approvals.authorizer import PolicyAuthorizer
from approvals.errors import AlreadyDecided
from approvals.models import Decision
from interrupts import verification
from interrupts.models import AgentDay, Interrupt, Run, Step
from interrupts.services import responses
from interrupts.transitions import needs
from interrupts.work import working
from tenants.journal import SYSTEM
from tenants.services.agents import AgentWanted, set_agents
from tests.approvals.house import fresh

ALLOW = {"name": "all", "trigger": "action", "tools": ["*"], "then": "allow"}
NEEDS = [{"name": "balance", "longest_age": 300}]
KNOWN = [{"name": "balance", "fresh_until": "2999-01-01T00:00:00Z"}]


def asked_for_context(house):
    house.tool(context=NEEDS)
    return house.ask(context=KNOWN)


def stale(step):
    with working(step.run_id, SYSTEM) as work:
        step = fresh(step)
        needs._write(work, step, {"balance": timezone.now() - timedelta(seconds=1)})
        step.save(update_fields=needs.MEMBERS)


def answer(house, run, value):
    held = Interrupt.objects.get(run=run, status="open", reason="context_missing")
    given = {"checkpoint": held.checkpoint, "resolution": "resume", "value": value}
    return responses.respond(house.people["olga"], held.pk, **given)


def whole(run):
    assert list(verification.of_run(fresh(run))) == []


@pytest.mark.parametrize(
    ("of_all", "own", "in_force"),
    [
        ({}, {}, {}),
        ({"steps": 5, "cost": "9.00"}, {}, {"steps": 5, "cost": "9.00"}),
        ({"steps": 5, "cost": "9.00"}, {"steps": 7}, {"steps": 7, "cost": "9.00"}),
        ({}, {"tokens": 10}, {"tokens": 10}),
    ],
)
def test_an_agents_own_limits_of_a_day_take_the_place_of_the_policys(house, of_all, own, in_force):
    house.policy(ALLOW, daily_budget=of_all)
    with transaction.atomic():
        set_agents(SYSTEM, [AgentWanted("bot", None, own)])
    run = house.run()
    with working(run.pk, SYSTEM) as work:
        assert PolicyAuthorizer().daily_limits(work) == in_force
        work.state_unchanged()


def test_another_limit_is_in_force_for_the_next_proposal(house):
    house.policy(ALLOW, daily_budget={"steps": 1})
    assert house.propose().status == "ready"
    assert house.propose().held_by == "budget"
    with transaction.atomic():
        (change,) = set_agents(SYSTEM, [AgentWanted("bot", None, {"steps": 3})])
    assert change.fields == {"daily_budget": (None, {"steps": 3})}
    assert house.propose().status == "ready"
    assert AgentDay.objects.get().steps == 2
    with transaction.atomic():
        assert set_agents(SYSTEM, [AgentWanted("bot", None, {"steps": 3})]) == []


def test_a_tenant_that_declares_no_day_pays_no_statement_for_it(house):
    def texts(**more):
        house.policy(ALLOW, **more)
        run = house.run()
        house.propose(run=run)
        with CaptureQueriesContext(connection) as seen:
            house.propose(run=run, arguments={"payment": "p-2", "amount": "20.00"})
        return [query["sql"] for query in seen.captured_queries]

    plain, counted = texts(), texts(daily_budget={"steps": 50})
    assert not any("agentday" in text or 'tenants_agent"."daily' in text for text in plain)
    assert len(counted) == len(plain) + 3  # locked, written, and what the step is counted in


def test_an_approval_of_what_needs_to_know_goes_the_long_way(house, monkeypatch):
    taken = []
    through = hot.approve
    monkeypatch.setattr(hot, "approve", lambda *of: taken.append(made := through(*of)) or made)
    gate = asked_for_context(house)
    house.decide("alice", gate)
    step = Step.objects.get(pk=gate.step_id)
    assert taken == [None]
    assert (step.status, step.authorized_until) == ("ready", step.context_until)
    assert house.work(gate.run_id) == 1
    whole(gate.run)


def test_an_approval_of_what_is_stale_is_refused_and_a_person_is_asked_what_is_known(house):
    gate = asked_for_context(house)
    stale(gate.step)
    with pytest.raises(AlreadyDecided):
        house.decide("alice", gate)
    step = Step.objects.get(pk=gate.step_id)
    assert (fresh(gate).state, step.held_by, step.authorized_by) == ("superseded", "context", None)
    assert not Decision.objects.filter(gate=gate).exists()
    assert Run.objects.get(pk=gate.run_id).status == "suspended"
    whole(gate.run)
    answer(house, gate.run_id, {"balance": "40.00 at noon"})
    step = Step.objects.get(pk=gate.step_id)
    assert (step.held_by, step.gate == gate.pk) == ("gate", False)
    whole(gate.run)


def test_a_rejection_of_what_is_stale_counts(house):
    gate = asked_for_context(house)
    stale(gate.step)
    house.decide("alice", gate, "reject", reason="no")
    assert Step.objects.get(pk=gate.step_id).status == "rejected"


def test_a_newer_version_that_needs_to_know_more_asks_for_it(house):
    gate = house.ask()
    house.decide("alice", gate)
    house.tool(context=NEEDS)
    assert house.work(gate.run_id) == 0
    step = Step.objects.get(pk=gate.step_id)
    assert (step.held_by, step.context, house.calls) == ("context", {"balance": None}, [])
    whole(gate.run)
