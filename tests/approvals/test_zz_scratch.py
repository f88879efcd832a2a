import pytest
from interrupts import verification
from interrupts.models import Interrupt, Step, AgentDay
from interrupts.services import responses, runs, steps
from approvals.models import Gate
from tests.approvals.house import CALL, fresh
from tests.approvals.test_milestones import ALLOWED, ASKS, DONE, ENDS, milestone, declared, call, propose, approve, answer, hold_of
from tests.approvals.test_days_and_needs import NEEDS, KNOWN, stale, whole

USAGE = {"name": "u", "trigger": "action", "then": "approve", "condition": "usage.steps > 100 || history.performed > 100 || time.hour > 30"}

def answer_context(house, run, value):
    held = Interrupt.objects.get(run=run, status="open", reason="context_missing")
    given = {"checkpoint": held.checkpoint, "resolution": "resume", "value": value}
    return responses.respond(house.people["olga"], held.pk, **given)


def test_context_milestone(house):
    house.tool(context=NEEDS, cost="1.00")
    house.policy(ALLOWED, ASKS, USAGE, milestones=[milestone(before_first="payments.*")], daily_budget={"steps": 50, "cost": "50.00"})
    run = house.run()
    one, two = propose(house, run, {**call(1), "context": KNOWN}, call(2))
    print(one.status, one.held_by, one.judged, two.status, two.held_by, two.judged)
    whole(run)
    answer_context(house, run, {"balance": "12"})
    one, two = fresh(one), fresh(two)
    print(one.status, one.held_by, one.judged, two.status, two.held_by, two.judged)
    whole(run)
    approve(house, one)
    whole(run)
    stale(two)
    house.request("alice", "GET", f"/gates/{two.gate}")
    house.decide("alice", Gate.objects.get(pk=two.gate), "reject", reason="no")
    whole(run)
    stale(one)
    house.work(run)
    one = fresh(one)
    print(one.status, one.held_by, fresh(run).status)
    assert one.held_by == "context"
    whole(run)
    answer_context(house, run, {"balance": "13"})
    one = fresh(one)
    print(one.status, one.held_by, fresh(run).status, AgentDay.objects.get().reserved_cost)
    whole(run)
    approve(house, one)
    house.work(run)
    print(fresh(one).status)
    whole(run)
    assert AgentDay.objects.get().reserved_cost == 0


def test_budget_milestone(house):
    house.tool(cost="30.00")
    house.policy(ALLOWED, ASKS, USAGE, milestones=[milestone(before_first="payments.*")], daily_budget={"steps": 50, "cost": "50.00"})
    run = house.run()
    one, two = propose(house, run, call(1), call(2))
    print(one.status, one.held_by, one.judged, two.status, two.held_by, two.judged)
    assert two.held_by == "budget"
    whole(run)
    held = Interrupt.objects.get(run=run, status="open", reason="budget_exhausted")
    responses.respond(house.people["olga"], held.pk, checkpoint=held.checkpoint, resolution="resume", value={"cost": "90.00"})
    whole(run)
    one, two = fresh(one), fresh(two)
    print(one.status, one.held_by, one.judged, two.status, two.held_by, two.judged)
    approve(house, one)
    whole(run)
    approve(house, fresh(two))
    whole(run)
    house.work(run)
    whole(run)
    print(AgentDay.objects.get().cost, AgentDay.objects.get().reserved_cost)


def test_renew_new_version(house):
    house.tool(cost="1.00")
    house.policy(ALLOWED, daily_budget={"steps": 50, "cost": "50.00"})
    run = house.run()
    one, = propose(house, run, call(1))
    house.tool(context=NEEDS, cost="2.00")
    house.work(run)
    one = fresh(one)
    print(one.status, one.held_by, one.context, fresh(run).status)
    whole(run)
    house.policy(ALLOWED, ASKS, USAGE, milestones=[milestone(before_first="payments.*")])
    answer_context(house, run, {"balance": "13"})
    one = fresh(one)
    print(one.status, one.held_by, one.judged)
    whole(run)
    runs.cancel_run(house.people["olga"], run.pk)
    whole(run)


def test_gate_goes_stale_seen(house):
    house.tool(context=NEEDS)
    house.policy(ALLOWED, ASKS, milestones=[milestone(before_first="payments.*")])
    run = house.run()
    one, = propose(house, run, {**call(1), "context": KNOWN})
    stale(one)
    gate = Gate.objects.get(pk=one.gate)
    try:
        house.decide("alice", gate)
    except Exception as e:
        print(type(e), e)
    one = fresh(one)
    print(one.status, one.held_by)
    whole(run)
    held = Interrupt.objects.get(run=run, status="open", reason="context_missing")
    responses.respond(house.people["olga"], held.pk, checkpoint=held.checkpoint, resolution="revise", value={"guidance": "look"})
    whole(run)
    print(fresh(one).status, fresh(run).status)


def test_deny_after_stale(house):
    house.tool(context=NEEDS)
    house.policy(ALLOWED, ASKS, milestones=[milestone(before_first="payments.*")])
    run = house.run()
    one, = propose(house, run, {**call(1)})
    assert fresh(one).held_by == "context"
    house.policy({"name": "no", "trigger": "action", "then": "deny"})
    answer_context(house, run, {"balance": "13"})
    print(fresh(one).status, fresh(run).status)
    whole(run)
