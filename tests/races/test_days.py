"""Runs of one agent that count in its day at the same time."""

from datetime import timedelta
from decimal import Decimal
from functools import partial

from interrupts import days
from interrupts.models import AgentDay, Interrupt, Step
from interrupts.services import runs
from interrupts.transitions import reservations
from tests.interrupts.house import fresh


def test_runs_at_once_lose_no_count_and_let_in_no_more_than_the_day_has(house, at_once):
    house.tool("t", cost="0.10")
    house.policy.daily = {"cost": "1.00", "steps": 50}
    made = [house.run() for _ in range(4)]

    def drive(run):
        for n in range(4):
            if fresh(run).status == "running":
                house.propose(run, ("t", {"n": n}))
                runs.report_usage(house.agent, run.pk, tokens=3)

    at_once(*(partial(drive, run) for run in made))
    row = AgentDay.objects.get()
    let_in = Step.objects.filter(reserved_cost__isnull=False).count()
    assert let_in == 10
    assert (row.steps, row.reserved_cost) == (let_in, Decimal("0.10") * let_in)
    assert row.tokens == sum(fresh(run).usage_tokens for run in made)
    held = Interrupt.objects.filter(reason="budget_exhausted", status="open")
    assert held.count() == sum(fresh(run).status == "suspended" for run in made) >= 2


def test_what_settles_into_several_days_waits_for_the_others_in_one_order(
    house, at_once, monkeypatch
):
    house.tool("t", kind="agent", cost="0.10")
    house.policy.daily = {"cost": "9.00"}
    made = [house.run() for _ in range(4)]
    real = days.day_of
    for age in (2, 1, 0):
        for module in (days, reservations):
            monkeypatch.setattr(module, "day_of", lambda now, age=age: real(now) - timedelta(age))
        for run in made if age % 2 else reversed(made):
            house.propose(run, ("t", {"n": age}))
    at_once(*(partial(house.cancel, run) for run in made))
    assert [row.reserved_cost for row in AgentDay.objects.all()] == [0, 0, 0]
    assert [fresh(run).status for run in made] == ["cancelled"] * 4
