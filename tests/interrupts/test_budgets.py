"""What a run may use, and what happens beyond it."""

from decimal import Decimal

import pytest

from config.errors import InvalidBody
from interrupts.effects import Observed, Outcome
from interrupts.errors import RunEnded
from interrupts.models import Interrupt
from interrupts.services import runs
from tests.interrupts.house import fresh, kinds, open_of, refused


def test_the_smallest_of_asked_tenants_and_parents_limits_is_in_force(house):
    house.policy.budget = {"steps": 10, "cost": "5.00"}
    parent = house.run(budget={"steps": 7, "tokens": 100})
    child = house.run(parent=parent.pk, budget={"steps": 9, "cost": "9.00", "tokens": 50})
    assert fresh(parent).budget == {"steps": 7, "tokens": 100, "cost": "5.00"}
    assert fresh(child).budget == {"steps": 7, "cost": "5.00", "tokens": 50}


@pytest.mark.parametrize(
    ("limit", "within", "beyond"),
    [
        ({"tokens": 100}, {"tokens": 100}, {"tokens": 1}),
        ({"cost": "1.10"}, {"cost": Decimal("1.10")}, {"cost": Decimal("0.01")}),
        ({"seconds": 2}, {"seconds": Decimal(2)}, {"seconds": Decimal("0.001")}),
    ],
)
def test_a_run_beyond_a_limit_is_suspended_at_once(house, limit, within, beyond):
    run = house.run(budget=limit)
    version = fresh(run).state_version
    assert runs.report_usage(house.agent, run.pk, **within).status == "running"
    assert fresh(run).state_version == version  # it stopped nothing
    assert runs.report_usage(house.agent, run.pk, **beyond).status == "suspended"
    assert fresh(run).state_version == version + 1
    held = open_of(run)
    assert (held.reason, held.kind) == ("budget_exhausted", "extension")
    assert held.evidence["exceeded"].keys() == limit.keys()


def test_usage_is_taken_while_suspended_and_cancelling_and_not_afterwards(house):
    house.tool("t", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("t", {}))
    attempt = house.claim(step)
    house.stop(run)
    runs.report_usage(house.agent, run.pk, tokens=1)
    house.cancel(run)
    assert runs.report_usage(house.agent, run.pk, tokens=1).usage_tokens == 2
    house.report(attempt)
    with refused(RunEnded):
        runs.report_usage(house.agent, run.pk, tokens=1)


def test_a_run_that_is_suspended_is_held_by_its_budget_too(house):
    run = house.run(budget={"tokens": 1})
    stop = house.stop(run)
    runs.report_usage(house.agent, run.pk, tokens=2)
    house.respond(stop)
    assert (fresh(run).status, open_of(run).reason) == ("suspended", "budget_exhausted")


def test_a_steps_cost_beyond_the_limit_stops_what_comes_next(house):
    house.tool("t")
    house.behaviour["t"] = lambda *_: Observed(Outcome.SUCCEEDED, cost=Decimal("0.60"))
    run = house.run(budget={"cost": "1.00"})
    house.propose(run, *[("t", {"n": n}) for n in range(3)])
    house.work(run)
    assert house.ran == [0, 1]
    assert (fresh(run).status, fresh(run).usage_cost) == ("suspended", Decimal("1.20"))


def test_a_cost_that_comes_in_while_the_run_is_stopped_holds_it_too(house):
    house.tool("t", kind="agent")
    run = house.run(budget={"cost": "1.00"})
    (step,) = house.propose(run, ("t", {}))
    attempt = house.claim(step)
    stop = house.stop(run)
    house.report(attempt, cost=Decimal("1.01"))
    house.respond(stop)
    assert open_of(run).reason == "budget_exhausted"


def test_a_step_over_budget_waits_and_is_judged_again_after_the_extension(house):
    house.tool("t")
    run = house.run(budget={"steps": 1})
    house.propose(run, ("t", {"n": 1}))
    (step,) = house.propose(run, ("t", {"n": 2}))
    held = open_of(run)
    assert (fresh(step).status, fresh(step).held_by) == ("waiting", "budget")
    assert (fresh(run).status, fresh(run).usage_steps) == ("suspended", 1)
    house.policy.verdicts["t"] = "deny"

    house.respond(held, value={"steps": 2})

    assert (fresh(step).status, fresh(run).status) == ("denied", "running")
    assert fresh(run).budget == {"steps": 2}


def test_an_extension_lets_the_waiting_step_run(house):
    house.tool("t")
    run = house.run(budget={"steps": 1})
    house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}))
    house.respond(open_of(run), value={"steps": 2})
    house.work(run)
    assert house.ran == [1, 2]
    assert "budget.extended" in kinds(run)


def test_an_extension_that_is_not_enough_asks_again(house):
    house.tool("t")
    run = house.run(budget={"steps": 1})
    house.propose(run, *[("t", {"n": n}) for n in range(3)])
    first = open_of(run)
    house.respond(first, value={"steps": 2})
    assert fresh(run).status == "suspended"
    assert open_of(run).pk != first.pk
    assert [step.status for step in run.steps.order_by("position")] == ["ready", "ready", "waiting"]


def test_an_extension_below_what_is_used_is_refused(house):
    run = house.run(budget={"tokens": 5})
    runs.report_usage(house.agent, run.pk, tokens=9)
    held = open_of(run)
    with refused(InvalidBody) as raised:
        house.respond(held, value={"tokens": 8})
    assert raised.value.errors[0]["pointer"] == "/value/tokens"
    house.respond(held, value={"tokens": 9})
    assert fresh(run).status == "running"


@pytest.mark.parametrize("value", [None, {}, {"steps": -1}, {"steps": "9"}, {"else": 1}])
def test_an_extension_that_names_no_limit_is_refused(house, value):
    run = house.run(budget={"tokens": 5})
    runs.report_usage(house.agent, run.pk, tokens=9)
    with refused(InvalidBody):
        house.respond(open_of(run), value=value)


def test_a_denied_step_uses_up_nothing(house):
    house.tool("t")
    house.tool("never")
    house.policy.verdicts["never"] = "deny"
    run = house.run(budget={"steps": 1})
    steps = house.propose(run, ("never", {}), ("never", {}), ("t", {"n": 1}))
    assert [fresh(step).status for step in steps] == ["denied", "denied", "ready"]
    assert (fresh(run).status, fresh(run).usage_steps) == ("running", 1)


def test_a_step_that_waited_for_its_twin_counts_against_the_budget_too(house):
    house.tool("t")
    _, lost = house.lost(n=7)
    run = house.run(budget={"steps": 1})
    (step,) = house.propose(run, ("t", {"n": 7}))
    house.propose(run, ("t", {"n": 8}))
    house.recover(lost, "performed")
    house.look(run)
    assert (fresh(step).status, fresh(step).held_by) == ("waiting", "budget")
    assert Interrupt.objects.get(run=run).reason == "budget_exhausted"
