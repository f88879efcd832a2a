"""What all runs of an agent may use in a day, and what is reserved while an outcome is open."""

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from config.errors import InvalidBody
from interrupts import days, verification
from interrupts.effects import Observed, Outcome
from interrupts.errors import MayNot
from interrupts.models import AgentDay, Receipt, Run, Step
from interrupts.services import runs, steps
from interrupts.transitions import extensions, reservations
from tests.interrupts.house import fresh, kinds, open_of, refused


@pytest.fixture
def tomorrow(monkeypatch):
    """Let a day pass, as far as days are counted."""

    def pass_a_day():
        real = days.day_of
        for module in (days, reservations, extensions):
            monkeypatch.setattr(module, "day_of", lambda now: real(now) + timedelta(days=1))

    return pass_a_day


def today(house):
    return AgentDay.objects.get(agent=house.agent.id, day=days.day_of(datetime.now(UTC)))


def whole(run):
    """Hold every row of the run to what its journal says."""
    assert list(verification.of_run(fresh(run))) == []


def test_a_day_begins_and_ends_in_utc_and_is_whole_again_with_the_next():
    late = datetime.fromisoformat("2026-03-01T00:30:00+02:00")
    assert str(days.day_of(late)) == "2026-02-28"
    assert days.whole_at(days.day_of(late)) == datetime(2026, 3, 1, tzinfo=UTC)


def test_an_agent_without_a_days_budget_counts_nothing(house):
    house.tool("t", cost="1.00")
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    runs.report_usage(house.agent, run.pk, tokens=5)
    house.work(run)
    assert (AgentDay.objects.count(), house.ran) == (0, [1])
    assert "budget.reserved" not in kinds(run)
    assert fresh(run).usage_cost == Decimal("1.00")  # nobody told: what its tool declares


def test_the_runs_of_an_agent_share_its_day_and_the_hold_says_all_of_it(house):
    house.tool("t")
    house.policy.daily = {"steps": 2}
    first, second = house.run(), house.run()
    house.propose(first, ("t", {"n": 1}), ("t", {"n": 2}))
    (third,) = house.propose(second, ("t", {"n": 3}))
    held = open_of(second)
    assert (fresh(third).held_by, held.reason, held.kind) == (
        "budget",
        "budget_exhausted",
        "extension",
    )
    row = today(house)
    assert held.evidence["exceeded"] == {"steps": "2"}
    assert (held.evidence["budget"], held.evidence["day"]) == ("day", row.day.isoformat())
    assert held.evidence["used"]["steps"] == "2"
    assert held.evidence["whole_at"] == days.whole_at(row.day).isoformat()
    assert "steps (2 a day)" in held.question
    assert "whole again at" in held.question
    assert (row.steps, fresh(first).status) == (2, "running")
    house.work(first)
    house.work(second)
    assert house.ran == [1, 2]
    whole(second)


@pytest.mark.parametrize(
    ("limit", "within", "beyond"),
    [
        ({"tokens": 100}, {"tokens": 100}, {"tokens": 1}),
        ({"cost": "1.10"}, {"cost": Decimal("1.10")}, {"cost": Decimal("0.01")}),
        ({"seconds": 2}, {"seconds": Decimal(2)}, {"seconds": Decimal("0.001")}),
    ],
)
def test_a_report_beyond_the_day_suspends_the_run_that_reports_at_once(
    house, limit, within, beyond
):
    house.policy.daily = limit
    one, other = house.run(), house.run()
    assert runs.report_usage(house.agent, one.pk, **within).status == "running"
    assert runs.report_usage(house.agent, other.pk, **beyond).status == "suspended"
    assert open_of(other).evidence["exceeded"].keys() == limit.keys()
    assert fresh(one).status == "running"


def test_amounts_are_told_as_plain_decimals(house):
    house.tool("t", cost="2.00")
    house.policy.daily = {"cost": "3.00"}
    house.policy.budget = {"cost": "1.50"}
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    assert fresh(step).held_by == "budget"
    held = open_of(run).evidence
    assert (held["budget"], held["used"]["cost"], held["needed"]) == ("run", "0", "2")
    house.policy.budget = {}
    dear = house.run()
    runs.report_usage(house.agent, dear.pk, cost=Decimal("20.00"))
    held = open_of(dear).evidence
    assert (held["budget"], held["used"]["cost"], held["reserved"]) == ("day", "20", "0")


def test_a_person_extends_the_day_for_all_runs_and_only_that_day(house, tomorrow):
    house.tool("t")
    house.policy.daily = {"steps": 1}
    run, other = house.run(), house.run()
    house.propose(run, ("t", {"n": 1}))
    (step,) = house.propose(run, ("t", {"n": 2}))
    held = open_of(run)
    with refused(MayNot):
        house.respond(held, by="alice", value={"steps": 3})
    with refused(InvalidBody) as raised:
        house.respond(held, value={"steps": 0})
    assert raised.value.errors[0]["pointer"] == "/value/steps"

    house.respond(held, value={"steps": 3})

    assert (fresh(step).status, fresh(run).status) == ("ready", "running")
    assert fresh(run).budget == {}  # its own limits are as they were
    house.propose(other, ("t", {"n": 3}))
    (over,) = house.propose(other, ("t", {"n": 4}))
    assert fresh(over).held_by == "budget"
    assert "day.extended" in kinds(run)
    whole(run)
    tomorrow()
    tomorrow = house.run()
    house.propose(tomorrow, ("t", {"n": 5}))
    (again,) = house.propose(tomorrow, ("t", {"n": 6}))
    assert fresh(again).held_by == "budget"


def test_the_next_days_proposals_pass_and_what_was_held_waits_for_a_persons_word(house, tomorrow):
    house.tool("t")
    house.policy.daily = {"steps": 1}
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    (step,) = house.propose(run, ("t", {"n": 2}))
    held = open_of(run)
    house.respond(held, value={})  # the same day still: it is asked again
    assert (fresh(run).status, fresh(held).status) == ("suspended", "resolved")
    tomorrow()
    house.look(run)
    assert fresh(run).status == "suspended"
    house.respond(open_of(run), value={})
    assert (fresh(step).status, fresh(run).status) == ("ready", "running")
    assert (today(house).steps, fresh(run).usage_steps) == (1, 2)
    whole(run)


def test_a_cost_stays_reserved_while_its_outcome_is_unknown_and_is_settled_into_its_day(
    house, tomorrow
):
    house.tool("t", cost="0.60")
    house.policy.daily = {"cost": "1.00"}
    run, step = house.lost(n=1)
    assert (today(house).reserved_cost, today(house).cost) == (Decimal("0.60"), 0)
    other = house.run()
    (second,) = house.propose(other, ("t", {"n": 2}))
    held = open_of(other)
    assert (fresh(second).held_by, fresh(other).reserved_cost) == ("budget", 0)
    assert (held.evidence["reserved"], held.evidence["needed"]) == ("0.6", "0.6")
    whole(run)
    tomorrow()
    house.recover(step, "performed")
    row = AgentDay.objects.earliest("day")
    assert (row.reserved_cost, row.cost) == (0, Decimal("0.60"))
    assert (fresh(run).usage_cost, fresh(run).reserved_cost) == (Decimal("0.60"), 0)


def test_what_failed_or_never_ran_gives_back_what_was_reserved(house):
    house.tool("t", cost="0.60")
    house.tool("asked", cost="0.60")
    house.policy.verdicts["asked"] = "approve"
    run = house.run(budget={"cost": "1.00"})
    house.behaviour["t"] = lambda *_: Observed(Outcome.FAILED, error="no")
    house.propose(run, ("t", {"n": 1}))
    assert fresh(run).reserved_cost == Decimal("0.60")
    house.work(run)
    (asked,) = house.propose(run, ("asked", {"n": 2}))
    assert fresh(run).reserved_cost == Decimal("0.60")  # while people think
    house.decide(asked, "reject")
    assert (fresh(run).reserved_cost, fresh(run).usage_cost) == (0, 0)
    (held,) = house.propose(run, ("t", {"n": 3}))
    house.cancel(run)
    assert (fresh(held).status, fresh(run).reserved_cost) == ("cancelled", 0)
    whole(run)


def test_steps_side_by_side_do_not_use_more_than_there_is_together(house):
    house.tool("t", kind="agent")
    run = house.run(budget={"cost": "1.00"})
    calls = [("t", {"n": n}) for n in range(3)]
    made = house.propose(run, *calls, parallel=True)
    assert [fresh(step).status for step in made] == ["ready"] * 3  # nothing says what it costs
    run = house.run(budget={"cost": "1.00"})
    house.tool("dear", kind="agent", cost="0.40")
    made = house.propose(run, *[("dear", {"n": n}) for n in range(3)], parallel=True)
    assert [fresh(step).held_by for step in made] == [None, None, "budget"]
    assert open_of(run).evidence["needed"] == "0.4"


def test_what_an_agent_says_that_it_costs_reserves_more_and_never_less(house):
    house.tool("t", kind="agent", cost="0.40")
    run = house.run(budget={"cost": "1.00"})
    for said, reserved in (("0.10", "0.40"), ("0.50", "0.90")):
        (step,), _ = proposed(house, run, cost=said)
        assert fresh(run).reserved_cost == Decimal(reserved)
    assert fresh(step).reserved_cost == Decimal("0.50")
    (third,), _ = proposed(house, run, cost="0.20")
    assert fresh(third).held_by == "budget"


def proposed(house, run, **said):
    document = {"tool": "t", "arguments": {"n": said["cost"]}, **said}
    return steps.propose(house.agent, run.pk, proposals=[document])


class History:
    """Runs of one agent that propose, report and find out in an order of chance."""

    LIMIT, OF_RUN, OVERRUN = Decimal("2.00"), Decimal("1.50"), Decimal("0.25")

    def __init__(self, house, seed):
        self.house, self.chance = house, random.Random(seed)  # noqa: S311 - a seed for a test
        self.runs = [house.run(budget={"cost": str(self.OF_RUN)}) for _ in range(3)]
        self.running, self.unknown, self.overran = {}, [], False

    def act(self):
        self.chance.choice([self.propose, self.settle, self.recover])()

    def propose(self):
        live = [run for run in self.runs if fresh(run).status == "running"]
        if not live:
            return
        run = self.chance.choice(live)
        (step,) = self.house.propose(run, ("t", {"n": self.chance.random()}))
        if fresh(step).status == "ready" and fresh(run).status == "running":
            self.running[step.pk] = self.house.claim(step)

    def settle(self):
        if not self.running:
            return
        pk = self.chance.choice(list(self.running))
        how = self.chance.choice(["succeeded", "succeeded", "failed", "unknown"])
        cost = self.cost() if how == "succeeded" else None
        self.house.report(self.running.pop(pk), how, cost=cost)
        self.unknown += [pk] if how == "unknown" else []

    def cost(self):
        """What a call costs: more than was declared once."""
        if not self.overran:
            self.overran = True
            return Decimal("0.30") + self.OVERRUN
        return self.chance.choice([None, Decimal("0.30"), Decimal("0.10"), Decimal(0)])

    def recover(self):
        if self.unknown:
            pk = self.unknown.pop(self.chance.randrange(len(self.unknown)))
            self.house.recover(Step.objects.get(pk=pk), self.chance.choice(["performed", "skip"]))

    def check(self):
        for row in AgentDay.objects.all():
            assert row.cost + row.reserved_cost <= self.LIMIT + self.OVERRUN
        for run in Run.objects.all():
            assert run.usage_cost + run.reserved_cost <= self.OF_RUN + self.OVERRUN
            assert run.reserved_cost == sum(step.reserved_cost or 0 for step in run.steps.all())

    def end(self):
        for attempt in self.running.values():
            self.house.report(attempt, cost=Decimal("0.20"))
        for pk in self.unknown:
            self.house.recover(Step.objects.get(pk=pk), "skip")
        for run in self.runs:
            self.house.cancel(run)
            whole(run)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_spent_and_reserved_is_never_beyond_the_limits_and_ends_at_the_receipts(
    house, seed
):
    house.tool("t", kind="agent", effect="irreversible", cost="0.30")
    house.policy.daily = {"cost": str(History.LIMIT)}
    history = History(house, seed)
    for _ in range(40):
        history.act()
        history.check()
    history.end()
    row = today(house)
    spent = sum(receipt.cost or 0 for receipt in Receipt.objects.all())
    assert row.reserved_cost == 0
    assert row.cost == spent == sum(fresh(run).usage_cost for run in history.runs)
