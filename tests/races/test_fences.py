"""A slow worker: its lease lapsed, another one works the step, and then its call comes back."""

import pytest

from interrupts import hot
from interrupts.effects import Observed, Outcome, Refused
from interrupts.models import Attempt, Interrupt, Receipt
from interrupts.services import compensating
from tests.interrupts.history import assert_history_holds, assert_states_are_rebuilt
from tests.interrupts.house import earlier, fresh, kinds
from tests.threads import Pause


@pytest.mark.parametrize("outcome", ["failed", "succeeded", "unknown", "not_performed"])
def test_a_slow_worker_adds_a_fact_and_changes_no_newer_attempt(house, crew, outcome):
    house.tool("t", key_lifetime=3600, effect="irreversible")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    slow, quick = Pause(), Pause()

    def behave(arguments, call):
        if len(house.calls) == 1:
            slow.here()
            return Observed(Outcome(outcome), "first")
        quick.here()
        return "second"

    house.behaviour["t"] = behave
    first = crew.start(lambda: house.work(run))
    slow.reached()
    house.lapse(Attempt.objects.get(step=step))
    house.recover(step, "not_performed")
    earlier(step, "due_at", 7200)
    second = crew.start(lambda: house.work(run))
    quick.reached()
    slow.go_on()
    first.result()

    expected = "succeeded" if outcome == "succeeded" else "executing"
    assert (fresh(step).status, fresh(step).fence) == (expected, 2)
    assert Receipt.objects.filter(step=step, source="executor").count() == 1

    quick.go_on()
    second.result()
    assert (fresh(step).status, fresh(run).status) == ("succeeded", "running")
    assert Receipt.objects.filter(step=step, source="executor").count() == 2
    assert kinds(run).count("receipt.late") == 1 + (outcome == "succeeded")
    assert house.ran == [1, 1]
    assert_history_holds(run)
    assert_states_are_rebuilt(run)


def test_a_worker_that_was_held_up_until_its_lease_was_over_sends_nothing(house, crew, monkeypatch):
    """Between its intent and its call, while another one is told to send it and does."""
    house.tool("t", key_lifetime=3600, effect="irreversible")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    held, advance, starts = Pause(), hot.advance, []

    def advance_and_stand_still(*args, **more):
        made = advance(*args, **more)
        if made.start is None or starts:
            return made
        starts.append(made.start)
        held.here()
        earlier_start = made.start._replace(asked_at=made.start.asked_at - 3600)
        return made._replace(start=earlier_start)

    monkeypatch.setattr(hot, "advance", advance_and_stand_still)
    first = crew.start(lambda: house.work(run))
    held.reached()
    house.lapse(Attempt.objects.get(step=step))
    house.recover(step, "not_performed")
    earlier(step, "due_at", 7200)
    assert house.work(run) == 1
    held.go_on()
    first.result()
    assert house.ran == [1]
    assert (fresh(step).status, fresh(step).fence) == ("succeeded", 2)
    assert kinds(run).count("receipt.late") == 1
    assert_history_holds(run)
    assert_states_are_rebuilt(run)


def test_one_that_is_held_up_before_its_lease_is_over_has_less_time(house, monkeypatch):
    house.tool("t", timeout=10)
    run = house.run()
    house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}))
    advance, timeouts = hot.advance, []

    def advance_slowly(*args, **more):
        made = advance(*args, **more)
        if made.start is None or timeouts:
            return made
        return made._replace(start=made.start._replace(asked_at=made.start.asked_at - 7))

    monkeypatch.setattr(hot, "advance", advance_slowly)
    house.behaviour["t"] = lambda arguments, call: timeouts.append(call.timeout)
    assert house.work(run) == 2
    assert 0 < timeouts[0] <= 5
    assert timeouts[1] == 10


def two_tries_at_undoing(house, monkeypatch, slow_one, slow, quick):
    """A cancelled run with an effect to undo, whose far end waits at each of the two tries."""
    tries = []

    def undo(arguments, call, result, external_id):
        tries.append(call.idempotency_key)
        if len(tries) > 1:
            quick.here()
            return
        slow.here()
        if slow_one == "is refused":
            raise Refused("too late")
        if slow_one == "hears nothing":
            raise RuntimeError("the connection broke off")

    monkeypatch.setattr("interrupts.queue.compensate", lambda step: None)
    house.undoes["t"] = undo
    house.tool("t", effect="reversible", compensate={})
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.work(run)
    house.cancel(run, compensate=True)
    return run, step


@pytest.mark.parametrize("slow_one", ["is refused", "hears nothing", "is told that it is undone"])
def test_a_slow_workers_try_at_undoing_changes_no_newer_one(house, crew, monkeypatch, slow_one):
    slow, quick = Pause(), Pause()
    run, step = two_tries_at_undoing(house, monkeypatch, slow_one, slow, quick)
    first = crew.start(lambda: compensating.compensate(step.pk, "slow"))
    slow.reached()
    house.lapse(Attempt.objects.get(step=step, compensation=True))
    second = crew.start(lambda: compensating.compensate(step.pk, "quick"))
    quick.reached()
    due_at = fresh(step).due_at
    slow.go_on()
    first.result()
    undone = slow_one == "is told that it is undone"
    assert fresh(step).status == ("compensated" if undone else "compensating")
    assert undone or fresh(step).due_at == due_at
    assert not Interrupt.objects.filter(status="open").exists()
    quick.go_on()
    second.result()
    assert (fresh(step).status, fresh(run).status) == ("compensated", "cancelled")
    assert Receipt.objects.filter(step=step, compensation=True).count() == 2
    assert_history_holds(run)
