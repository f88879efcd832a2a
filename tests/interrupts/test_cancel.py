"""Cancelled, completed, failed: what ends stays ended, and when it may end."""

import pytest

from interrupts.errors import MayNot, RunEnded, RunSuspended, StepsOutstanding
from interrupts.services import runs
from tests.interrupts.house import fresh, kinds, nothing_changes, open_of, refused


def test_a_run_in_which_nothing_is_open_is_cancelled_at_once(house):
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    assert house.cancel(run, note="not needed").status == "cancelled"
    step, run = fresh(step), fresh(run)
    assert (step.status, step.reason) == ("cancelled", "the run was cancelled")
    assert run.ended_at is not None
    house.work(run)
    assert house.ran == []


def test_one_with_something_in_flight_finishes_it_first(house):
    house.tool("t")
    run = house.run()
    first, second = house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}))
    seen = []

    def cancelled(arguments, call):
        seen.append((house.cancel(run).status, fresh(run).suspension))

    house.behaviour["t"] = cancelled
    house.work(run)
    assert seen == [("cancelling", "still_cancelling")]
    assert (fresh(first).status, fresh(second).status) == ("succeeded", "cancelled")
    assert (fresh(run).status, fresh(run).suspension) == ("cancelled", None)


def test_a_repeat_while_cancelling_changes_nothing_and_one_afterwards_is_refused(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    house.cancel(run)
    with nothing_changes(but=frozenset({"updated_at"})):
        house.cancel(run)
    house.report(attempt)
    with refused(RunEnded):
        house.cancel(run)


def test_what_waits_is_closed_with_its_gates_and_interrupts(house):
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    run = house.run()
    (step,) = house.propose(run, ("asked", {}))
    held, stop = open_of(step), house.stop(run)
    house.cancel(run)
    assert house.policy.closed == [(step.gate, "withdrawn")]
    assert [fresh(one).resolution for one in (held, stop)] == ["cancel", "cancel"]
    assert fresh(run).open_interrupts == 0


def test_what_was_not_performed_is_cancelled_and_not_sent_again(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    house.cancel(run)
    house.report(attempt, "not_performed")
    assert (fresh(step).status, fresh(step).outcome) == ("cancelled", "not_performed")
    assert fresh(run).status == "cancelled"


def test_a_lapse_in_a_cancelling_run_is_unknown_and_found_by_the_sweep(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    house.cancel(run)
    assert fresh(run).due_at is not None
    house.lapse(attempt)
    assert (fresh(run).status, fresh(run).suspension) == ("cancelling", "unknown_outcome")


def test_a_refusal_that_asks_people_keeps_no_cancelling_run_from_its_end(house):
    house.tool("mine", kind="agent", on_failure="interrupt")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    house.cancel(run)
    house.report(attempt, "failed", error="no")
    assert (fresh(run).status, fresh(run).open_interrupts) == ("cancelled", 0)


def test_people_without_the_right_and_agents_cancel_nothing(house):
    run = house.run(requested_by=house.people["bob"].name)
    for who in ("bob", "alice", "vera"):
        with refused(MayNot):
            house.cancel(run, by=who)
    with refused(MayNot):
        runs.cancel_run(house.agent, run.pk)


@pytest.mark.parametrize("end", [runs.complete_run, runs.fail_run])
def test_a_run_with_an_open_step_or_interrupt_does_not_end(house, end):
    house.tool("t")
    how = {"output": 1} if end is runs.complete_run else {"error": 1}
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    with refused(StepsOutstanding):
        end(house.agent, run.pk, **how)
    stop = house.stop(run)
    with refused(RunSuspended):
        end(house.agent, run.pk, **how)
    house.respond(stop)
    house.work(run)
    assert end(house.agent, run.pk, **how).ended
    with refused(RunEnded):
        end(house.agent, run.pk, **how)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_an_ended_run_is_final(house, status):
    house.tool("t")
    run = house.run()
    if status == "completed":
        runs.complete_run(house.agent, run.pk, output={"a": 1})
    elif status == "failed":
        runs.fail_run(house.agent, run.pk, error="gave up")
    else:
        house.cancel(run)
    for act in (
        lambda: house.propose(run, ("t", {})),
        lambda: house.stop(run),
        lambda: house.cancel(run),
        lambda: runs.claim_run(house.agent, run.pk),
        lambda: runs.report_usage(house.agent, run.pk, tokens=1),
        lambda: runs.complete_run(house.agent, run.pk, output=None),
        lambda: runs.acknowledge(house.agent, run.pk, guidance=[]),
    ):
        with refused(RunEnded):
            act()
    house.look(run)
    assert (fresh(run).status, kinds(run)[-2:]) == (status, [f"run.{status}", "checkpoint.taken"])
