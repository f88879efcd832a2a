"""A worker is killed: what it was at is unknown, found by its lease, and never repeated."""

import pytest

from interrupts import sweep
from interrupts.effects import Finding, Reconciled
from interrupts.models import Attempt, Interrupt, Receipt, Run, Step
from interrupts.services import finding
from tests.interrupts.history import assert_history_holds, assert_states_are_rebuilt
from tests.interrupts.house import earlier, fresh, open_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


def performed(workers):
    return [call["n"] for call in workers.performed]


@pytest.mark.parametrize(
    ("die", "was_performed"),
    [("before the call", []), ("during the call", [1]), ("before the record", [1])],
)
def test_a_killed_workers_attempt_lapses_to_unknown_and_is_never_repeated(
    house, workers, die, was_performed
):
    house.tool("t")
    run = house.run()
    step, after = (house.propose(run, ("t", {"n": n}))[0] for n in (1, 2))
    assert workers.work(run, die=die) is None
    assert (fresh(step).status, fresh(run).status) == ("executing", "running")
    attempt = Attempt.objects.get(step=step)
    assert (attempt.settled_at, attempt.lapsed_at) == (None, None)

    assert workers.work(run) == 0  # its lease is not over: nobody else begins
    earlier(attempt, "lease_expires_at", 3600)
    earlier(run, "due_at", 3600)
    assert sweep.sweep_once() >= 1

    assert (fresh(step).status, fresh(run).status) == ("unknown", "suspended")
    assert fresh(run).suspension == "unknown_outcome"
    assert open_of(step).kind == "recovery"
    assert workers.work(run) == 0
    assert performed(workers) == was_performed
    assert not Receipt.objects.exists()
    assert_history_holds(run)
    assert_states_are_rebuilt(run)

    house.recover(step, "performed")
    assert workers.work(run) == 1
    assert performed(workers) == [*was_performed, 2]
    assert fresh(after).status == "succeeded"


def test_one_killed_after_the_record_has_recorded_and_intended_the_next(house, workers):
    """A chained commit: the receipt of the one and the intent of the next, or neither."""
    house.tool("t")
    run = house.run()
    first, second = (house.propose(run, ("t", {"n": n}))[0] for n in (1, 2))
    assert workers.work(run, die="after the record") is None
    assert (fresh(first).status, fresh(second).status) == ("succeeded", "executing")
    assert Receipt.objects.filter(step=first).count() == 1
    attempt = Attempt.objects.get(step=second)
    house.lapse(attempt)
    assert fresh(second).status == "unknown"
    assert workers.work(run) == 0
    assert performed(workers) == [1]


def test_one_killed_after_its_last_record_has_lost_nothing(house, workers):
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    assert workers.work(run, die="after the record") is None
    assert (fresh(step).status, fresh(run).next_step) == ("succeeded", 2)
    assert workers.work(run) == 0
    assert performed(workers) == [1]


def test_one_killed_in_the_middle_of_many_leaves_one_unknown(house, workers):
    house.tool("t")
    run = house.run()
    steps = house.propose(run, *[("t", {"n": n}) for n in range(6)])
    assert workers.work(run, die="during the call", at=3) is None
    assert [fresh(step).status for step in steps] == [
        *["succeeded"] * 2,
        "executing",
        *["ready"] * 3,
    ]
    house.lapse(Attempt.objects.get(step=steps[2]))
    house.recover(steps[2], "performed")
    assert workers.work(run) == 3
    assert performed(workers) == list(range(6))
    assert {call["key"] for call in workers.performed} == {str(step.pk) for step in steps}


def test_a_read_whose_worker_is_killed_is_read_again_and_suspends_nothing(house, workers):
    house.tool("t", effect="read")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    assert workers.work(run, die="during the call") is None
    assert fresh(step).status == "ready"
    Run.objects.filter(reading=step.pk).update(reading_until=step.created_at)
    house.look(run)
    Step.objects.filter(pk=step.pk).update(due_at=None)
    assert workers.work(run) == 1
    assert (fresh(step).status, fresh(run).status) == ("succeeded", "running")
    assert not Interrupt.objects.exists()


@pytest.mark.parametrize("die", ["during the call", "before the record"])
def test_reads_made_together_are_read_again_and_recorded_once(house, workers, die):
    house.tool("t", effect="read")
    run = house.run()
    steps = house.propose(run, *[("t", {"n": n}) for n in range(6)])
    assert workers.work(run, die=die, at=4 if die == "during the call" else 2) is None
    Run.objects.filter(pk=run.pk).update(reading_until=run.created_at)
    house.look(run)
    Step.objects.filter(run=run).update(due_at=None)
    assert workers.work(run) >= 1
    assert performed(workers)[0] == 0
    assert set(performed(workers)) == set(range(6))
    assert {fresh(step).status for step in steps} == {"succeeded"}
    assert Receipt.objects.filter(run=run, outcome="succeeded").count() == 6
    assert_history_holds(run)
    assert_states_are_rebuilt(run)


def test_each_of_a_parallel_group_is_found_by_its_own_lease(house, workers):
    house.tool("t")
    run = house.run()
    steps = house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}), parallel=True)
    assert workers.work(run, die="before the call") is None
    assert workers.work(run, die="during the call") is None
    for step in steps:
        house.lapse(Attempt.objects.get(step=step))
    assert [fresh(step).status for step in steps] == ["unknown"] * 2
    assert (fresh(run).count_unknown, Interrupt.objects.count()) == (2, 2)


def test_a_lease_is_found_by_the_sweep_whatever_the_dead_worker_left(house, workers):
    """The run is due no later than the lease, though nothing looked at it since the intent."""
    house.tool("t")
    run = house.run(idle_after=86400)
    (step,) = house.propose(run, ("t", {"n": 1}))
    assert workers.work(run, die="during the call") is None
    house.look(run)
    assert fresh(run).due_at <= Attempt.objects.get(step=step).lease_expires_at


def test_a_step_that_killed_three_workers_is_set_aside_and_tried_by_no_fourth(
    house, workers, monkeypatch
):
    monkeypatch.setattr("interrupts.queue.find_out", lambda step: None)
    house.tool("t", effect="reversible", key_lifetime=3600, reconcile={"settle_after": 1})
    house.finds["t"] = lambda arguments, call: Reconciled(Finding.NOT_PERFORMED)
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    for fence in (1, 2, 3):
        Step.objects.filter(pk=step.pk).update(due_at=None)
        assert workers.work(run, die="before the call") is None
        house.lapse(Attempt.objects.get(step=step, fence=fence))
        earlier(step, "unknown_at", 3600)
        finding.find_out(step.pk, "w")
    assert (fresh(step).status, fresh(step).ask_at) == ("unknown", None)
    assert (fresh(run).status, fresh(run).suspension) == ("suspended", "unknown_outcome")
    assert open_of(step).evidence["set_aside"] is True
    assert workers.work(run) == 0
    assert (performed(workers), fresh(step).attempts) == ([], 3)
    assert_history_holds(run)
    assert_states_are_rebuilt(run)
