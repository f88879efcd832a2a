from decimal import Decimal
import pytest
from interrupts import verification
from interrupts.authorizer import Judgement
from interrupts.effects import Ruling, Says
from interrupts.effects.base import Observed
from interrupts.effects import Outcome
from interrupts.models import AgentDay, Interrupt, Run, Verdict
from interrupts.services import judging, runs, compensating
from tests.interrupts.history import assert_history_holds
from tests.interrupts.house import fresh, kinds, open_of
from tests.interrupts.test_verdicts import DECLARED, judge, hints, Judge, REJECTED, PASSED, NOTHING

ASK = Judgement("approve", "done", 1, reason="r", detail={"points": [["done", "before completion"]], "triggers": []})


def whole(run):
    assert list(verification.of_run(fresh(run))) == []
    assert_history_holds(run)


@pytest.fixture
def tool(house, judge, hints):
    house.undoes["t"] = lambda arguments, call, result, external_id: None
    house.tool("t", effect="reversible", compensate={}, verifier={**DECLARED, "before_next": False}, cost="2.00")
    house.tool("plain")


def test_b(house, tool, judge):
    house.policy.completion = ASK
    judge.says = [REJECTED]
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.work(run)
    run = runs.complete_run(house.agent, run.pk, output={"a": 1})
    assert run.status == "suspended"
    judging.judge(step.pk, "w")
    whole(run)
    hold = open_of(run, "milestone")
    house.respond(open_of(run, "verifier_rejected"), "compensate")
    assert fresh(run).verdicts_holding == 1
    house.respond(hold)
    run = fresh(run)
    print("STATUS", run.status, run.verdicts_holding, fresh(step).status, fresh(step).undo_wanted)
    whole(run)
    assert run.status == "running"


def test_res(house, tool, judge):
    house.policy.daily = {"cost": "3.00", "steps": 10}
    judge.says = [REJECTED]
    run = house.run(budget={"cost": "10.00"})
    step, other = house.propose(run, ("t", {"n": 1}), ("plain", {"n": 2}))
    assert fresh(run).reserved_cost == 2
    house.work(run)
    whole(run)
    judging.judge(step.pk, "w")
    whole(run)
    row = AgentDay.objects.get()
    print(row.cost, row.reserved_cost, row.steps, fresh(run).status)
    assert (row.cost, row.reserved_cost, row.steps) == (2, 0, 2)
    # over the day: held together with a verdict
    house.respond(open_of(run, "verifier_rejected"), "resume")
    (third,) = house.propose(run, ("t", {"n": 3}))
    assert fresh(third).held_by == "budget"
    hold = open_of(run, "budget_exhausted")
    print(hold.evidence, hold.question)
    whole(run)
    house.respond(hold, value={"cost": "9.00"})
    whole(run)
    house.work(run)
    whole(run)
    house.cancel(run)
    whole(run)


@pytest.mark.parametrize("x", [1e22, 2.5, 1e-9, 100.0])
def test_out(house, tool, judge, x):
    house.policy.completion = ASK
    run = house.run()
    run = runs.complete_run(house.agent, run.pk, output={"a": x})
    whole(run)
    house.respond(open_of(run))
    assert fresh(run).status == "completed"
    whole(run)


def test_family(house, tool, judge):
    house.policy.daily = {"cost": "100.00", "steps": 100}
    run = house.run(budget={"cost": "10.00"})
    child = house.run(parent=run.pk)
    house.policy.verdicts["t"] = "approve"
    house.propose(child, ("t", {"n": 1}))
    house.propose(run, ("t", {"n": 2}))
    row = AgentDay.objects.get()
    assert (row.reserved_cost, row.steps) == (4, 2)
    house.cancel(run)
    row = AgentDay.objects.get()
    assert (row.reserved_cost, row.steps) == (0, 2)
    whole(run); whole(child)
    assert fresh(child).reserved_cost == 0


def test_unknown_then_judged(house, tool, judge):
    house.policy.daily = {"cost": "100.00", "steps": 100}
    run, step = house.lost()
    assert AgentDay.objects.get().reserved_cost == 2
    whole(run)
    house.recover(step, "performed")
    assert AgentDay.objects.get().reserved_cost == 0
    assert Verdict.objects.get().status == "awaited"
    whole(run)
    runs.complete_run(house.agent, run.pk, output=None)
    judge.says = [REJECTED]
    judging.judge(step.pk, "w")
    whole(run)
    run = fresh(run)
    assert (run.status, run.verdicts_awaited, run.verdicts_holding) == ("completed", 0, 0)


def test_plain_out(house, tool, judge):
    run = house.run()
    run = runs.complete_run(house.agent, run.pk, output={"a": 1e22})
    whole(run)

def test_plain_result(house, tool, judge):
    house.behaviour["plain"] = lambda *_: {"a": 1e22}
    run = house.run()
    house.propose(run, ("plain", {"n": 1}))
    house.work(run)
    whole(run)
