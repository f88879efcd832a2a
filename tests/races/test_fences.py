"""A slow worker: its lease lapsed, another one works the step, and then its call comes back."""

import pytest

from interrupts.effects import Observed, Outcome
from interrupts.models import Attempt, Receipt
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
