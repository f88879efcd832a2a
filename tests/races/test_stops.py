"""A stop, a cancel and a parent's stop, each against what starts or ends at the same moment."""

import pytest
from django.db import OperationalError, transaction

from config.errors import Problem
from interrupts.errors import StepsOutstanding
from interrupts.models import Attempt, Reason, ResponseKind, Run
from interrupts.services.runs import complete_run
from interrupts.transitions import holds, runs
from interrupts.work import working
from tests.interrupts.history import assert_history_holds, assert_states_are_rebuilt
from tests.interrupts.house import fresh, kinds, open_of
from tests.races.conftest import attempt_pending, waiting
from tests.threads import Pause

ACTS = {
    "stop": lambda work: holds.open_holds(
        work,
        holds.Hold(
            reason=Reason.OPERATOR_STOP, kind=ResponseKind.RELEASE, question="May it go on?"
        ),
    ),
    "cancel": lambda work: runs.cancel(work, note=None),
}


def under_way(house, crew, run, act):
    """Start the act in a thread that has done it and not yet committed."""
    pause = Pause()

    def do():
        with working(run.pk, house.people["olga"].actor) as work:
            ACTS[act](work)
            pause.here()

    worker = crew.start(do)
    pause.reached()
    return pause, worker


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("below", [False, True], ids=["itself", "its child"])
def test_an_intent_that_waited_for_a_stop_starts_nothing(house, crew, act, below):
    house.tool("t")
    run = house.run()
    worked = house.run(parent=run.pk) if below else run
    (step,) = house.propose(worked, ("t", {"n": 1}))
    pause, stop = under_way(house, crew, run, act)
    intent = waiting(crew, lambda: house.work(worked))
    pause.go_on()
    stop.result()
    assert intent.result() == 0
    assert not Attempt.objects.exists()
    assert fresh(step).status == {"stop": "ready", "cancel": "cancelled"}[act]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("below", [False, True], ids=["itself", "its child"])
def test_a_stop_that_waited_for_an_intent_finds_it_in_flight(house, crew, act, below):
    house.tool("t")
    run = house.run()
    worked = house.run(parent=run.pk) if below else run
    (step,) = house.propose(worked, ("t", {"n": 1}))
    during = Pause()
    house.behaviour["t"] = lambda *_: during.here()
    with attempt_pending(crew, step):
        intent = waiting(crew, lambda: house.work(worked))
        stop = waiting(crew, lambda: getattr(house, act)(run))
    stop.result()
    during.reached()
    assert (fresh(worked).suspension, fresh(worked).count_in_flight) == ("still_cancelling", 1)
    during.go_on()
    intent.result()
    assert fresh(step).status == "succeeded"
    assert fresh(worked).status == {"stop": "suspended", "cancel": "cancelled"}[act]
    names = kinds(worked)
    assert names.index("attempt.started") < names.index(
        {"stop": "run.suspended", "cancel": "run.cancelling"}[act]
    )


@pytest.mark.parametrize("act", ACTS)
def test_a_record_that_waited_for_a_stop_is_taken(house, crew, act):
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    (after,) = house.propose(run, ("t", {"n": 2}))
    during = Pause()
    house.behaviour["t"] = lambda *_: during.here()
    work = crew.start(lambda: house.work(run))
    during.reached()
    pause, stop = under_way(house, crew, run, act)
    during.go_on()
    work.waits()
    pause.go_on()
    stop.result()
    assert work.result() == 1
    assert (fresh(step).status, fresh(after).attempts) == ("succeeded", 0)
    assert fresh(run).status == {"stop": "suspended", "cancel": "cancelled"}[act]
    assert_history_holds(run)
    assert_states_are_rebuilt(run)


@pytest.mark.parametrize("act", ACTS)
def test_a_child_that_waited_for_its_parents_stop_is_not_started(house, crew, act):
    parent = house.run()
    pause, stop = under_way(house, crew, parent, act)

    def start():
        with pytest.raises(Problem) as raised:
            house.run(parent=parent.pk)
        return raised.value.code

    child = waiting(crew, start)
    pause.go_on()
    stop.result()
    assert child.result() == {"stop": "run-suspended", "cancel": "run-ended"}[act]
    assert Run.objects.count() == 1


@pytest.mark.parametrize("act", ACTS)
def test_a_stop_that_waited_for_the_start_of_a_child_stops_the_child_too(house, crew, act):
    parent = house.run()
    limits = Pause()

    def slow(run):
        limits.here()
        return {}

    house.policy.limits = slow
    start = crew.start(lambda: house.run(parent=parent.pk))
    limits.reached()
    stop = waiting(crew, lambda: getattr(house, act)(parent))
    limits.go_on()
    child = start.result()
    stop.result()
    assert fresh(child).status == {"stop": "suspended", "cancel": "cancelled"}[act]
    if act == "stop":
        assert open_of(child).reason == "parent_interrupted"


def test_a_child_started_while_its_family_was_waited_for_is_locked_with_it(house, crew):
    """Else its own work and its parent's stop would write it at once."""
    parent = house.run()
    limits, holding = Pause(), Pause()

    def slow(run):
        limits.here()
        return {}

    def hold():
        with working(parent.pk, house.people["olga"].actor):
            holding.here()

    house.policy.limits = slow
    start = crew.start(lambda: house.run(parent=parent.pk))
    limits.reached()
    family = waiting(crew, hold)
    limits.go_on()
    child = start.result()
    holding.reached()
    try:
        with pytest.raises(OperationalError), transaction.atomic():
            Run.objects.select_for_update(nowait=True, no_key=True).get(pk=child.pk)
    finally:
        holding.go_on()
        family.result()


def test_a_parent_completes_only_where_no_child_was_started_meanwhile(house, crew):
    parent = house.run()
    limits = Pause()

    def slow(run):
        limits.here()
        return {}

    def complete():
        with pytest.raises(StepsOutstanding) as raised:
            complete_run(house.agent, parent.pk, output=1)
        return raised.value.code

    house.policy.limits = slow
    start = crew.start(lambda: house.run(parent=parent.pk))
    limits.reached()
    end = waiting(crew, complete)
    limits.go_on()
    start.result()
    assert end.result() == "steps-outstanding"
    assert fresh(parent).status == "running"
