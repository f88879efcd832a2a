"""Compensation: newest first, each begun once, sent under its own key until it holds."""

import pytest

from interrupts.effects import NotPerformed, Refused
from interrupts.errors import MayNot
from interrupts.models import Attempt, Receipt, Step
from interrupts.services import compensating, runs
from interrupts.services.compensating import NotCompensable
from tests.interrupts.history import assert_history_holds
from tests.interrupts.house import fresh, kinds, open_of, refused


@pytest.fixture
def told(monkeypatch):
    steps = []
    monkeypatch.setattr("interrupts.queue.compensate", steps.append)
    return steps


@pytest.fixture
def undone(house, told):
    """The calls that undo, in order: (n, key)."""
    made = []

    def undo(arguments, call, result, external_id):
        made.append((arguments["n"], call.idempotency_key))

    house.undoes["t"] = undo
    house.tool("t", effect="reversible", compensate={})
    return made


def done(house, *numbers):
    run = house.run()
    steps = house.propose(run, *[("t", {"n": n}) for n in numbers])
    house.work(run)
    return fresh(run), [fresh(step) for step in steps]


def undo_all(house, run, told):
    """Work what the run is told to undo, until nothing more is told."""
    while True:
        Step.objects.filter(run=run, due_at__isnull=False).update(due_at="2020-01-01T00:00:00Z")
        house.look(run)
        if not told:
            return
        for step in told[:]:
            told.remove(step)
            compensating.compensate(step, "w")


def test_a_cancel_with_compensation_undoes_newest_first_each_once(house, told, undone):
    run, steps = done(house, 1, 2, 3)
    house.cancel(run, compensate=True)
    assert fresh(run).status == "cancelling"
    undo_all(house, run, told)
    assert [n for n, _ in undone] == [3, 2, 1]
    assert [fresh(step).status for step in steps] == ["compensated"] * 3
    assert fresh(run).status == "cancelled"
    assert Receipt.objects.filter(run=run, compensation=True, outcome="succeeded").count() == 3
    assert kinds(run).count("compensation.started") == 3
    assert_history_holds(run)


def test_a_half_undone_run_is_partially_complete(house, told, undone):
    run, _steps = done(house, 1, 2)
    house.cancel(run, compensate=True)
    house.look(run)
    compensating.compensate(told.pop(), "w")
    run = fresh(run)
    assert (run.status, run.suspension) == ("cancelling", "partially_complete")
    assert run.count_partial == 1


def test_a_cancel_without_it_undoes_nothing(house, told, undone):
    run, steps = done(house, 1)
    house.cancel(run)
    undo_all(house, run, told)
    assert undone == []
    assert (fresh(steps[0]).status, fresh(run).status) == ("succeeded", "cancelled")


def test_a_compensation_whose_answer_is_lost_is_sent_again_under_its_key(house, told, undone):
    tries = []

    def lose(arguments, call, result, external_id):
        tries.append(call.idempotency_key)
        if len(tries) < 3:
            raise RuntimeError("the connection broke off")

    house.undoes["t"] = lose
    run, (step,) = done(house, 1)
    house.cancel(run, compensate=True)
    undo_all(house, run, told)
    assert len(tries) == 3
    assert len(set(tries)) == 1
    assert (fresh(step).status, fresh(run).status) == ("compensated", "cancelled")


def test_what_was_not_begun_is_sent_again_with_backoff(house, told, undone):
    def busy(arguments, call, result, external_id):
        raise NotPerformed("busy")

    house.undoes["t"] = busy
    run, (step,) = done(house, 1)
    house.cancel(run, compensate=True)
    house.look(run)
    compensating.compensate(told.pop(), "w")
    assert fresh(step).status == "compensating"
    assert fresh(step).due_at > fresh(run).updated_at
    assert fresh(run).due_at is not None


@pytest.mark.parametrize(
    ("action", "status"), [("leave", "succeeded"), ("try_again", "compensated")]
)
def test_a_clear_refusal_asks_a_person(house, told, undone, action, status):
    refusing = [True]

    def refuse(arguments, call, result, external_id):
        if refusing:
            raise Refused("too late to undo")

    house.undoes["t"] = refuse
    run, (step,) = done(house, 1)
    house.cancel(run, compensate=True)
    undo_all(house, run, told)
    interrupt = open_of(step)
    assert (interrupt.reason, fresh(run).status) == ("effect_failed", "cancelling")
    refusing.clear()
    house.respond(interrupt, "compensate", value={"action": action})
    undo_all(house, run, told)
    assert (fresh(step).status, fresh(run).status) == (status, "cancelled")
    assert_history_holds(run)


def test_a_worker_that_dies_while_undoing_leaves_it_to_the_next(house, told, undone):
    def die(arguments, call, result, external_id):
        raise KeyboardInterrupt

    house.undoes["t"] = die
    run, (step,) = done(house, 1)
    house.cancel(run, compensate=True)
    house.look(run)
    with pytest.raises(KeyboardInterrupt):
        compensating.compensate(told.pop(), "w")
    attempt = Attempt.objects.get(step=step, compensation=True)
    house.undoes["t"] = lambda *_: None
    house.lapse(attempt)
    undo_all(house, run, told)
    assert (fresh(step).status, fresh(run).status) == ("compensated", "cancelled")


def test_an_effect_of_an_ended_run_is_undone_on_request_once(house, told, undone):
    run, (first, second) = done(house, 1, 2)
    house.cancel(run)
    assert fresh(run).ended
    for _ in range(2):
        compensating.compensate_step(house.people["olga"], first.pk)
    undo_all(house, run, told)
    assert [n for n, _ in undone] == [1]
    assert (fresh(first).status, fresh(second).status) == ("compensated", "succeeded")
    assert fresh(run).status == "cancelled"


def test_only_operators_have_effects_undone_and_only_what_can_be(house, told, undone):
    house.tool("read", effect="read")
    run, (step,) = done(house, 1)
    (looked,) = house.propose(run, ("read", {"n": 0}))
    house.work(run)
    with refused(MayNot):
        compensating.compensate_step(house.people["alice"], step.pk)
    with refused(NotCompensable):
        compensating.compensate_step(house.people["olga"], looked.pk)


def test_a_freeze_holds_a_compensation_up(house, told, undone):
    run, (step,) = done(house, 1)
    freeze, _ = house.freeze()
    house.cancel(run, compensate=True)
    house.look(run)
    compensating.compensate(told.pop(), "w")
    assert (undone, fresh(step).status) == ([], "succeeded")
    house.thaw(freeze)
    undo_all(house, run, told)
    assert (len(undone), fresh(step).status) == (1, "compensated")


def test_what_turns_out_to_be_done_in_a_cancelled_run_is_undone_too(house, told, undone):
    run, step = house.lost(n=1)
    house.cancel(run, compensate=True)
    house.recover(step, "performed")
    undo_all(house, run, told)
    assert [n for n, _ in undone] == [1]
    assert (fresh(step).status, fresh(run).status) == ("compensated", "cancelled")


def test_children_are_cancelled_with_the_same_compensation(house, told, undone):
    run = house.run()
    child = house.run(parent=run.pk)
    (step,) = house.propose(child, ("t", {"n": 7}))
    house.work(child)
    house.cancel(run, compensate=True)
    undo_all(house, child, told)
    house.look(run)
    assert [n for n, _ in undone] == [7]
    assert (fresh(step).status, fresh(child).status, fresh(run).status) == (
        "compensated",
        "cancelled",
        "cancelled",
    )


@pytest.mark.parametrize("end", [runs.complete_run, runs.fail_run])
def test_what_is_to_be_undone_is_undone_although_its_run_ends_before(house, told, undone, end):
    run, (step,) = done(house, 1)
    compensating.compensate_step(house.people["olga"], step.pk)
    said = {"output": 1} if end is runs.complete_run else {"error": "no"}
    assert end(house.agent, run.pk, **said).due_at is not None
    undo_all(house, run, told)
    assert ([n for n, _ in undone], fresh(step).status) == ([1], "compensated")
    house.look(run)
    assert fresh(run).due_at is None
    assert_history_holds(run)
