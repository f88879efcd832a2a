"""What would start something is refused under a newer epoch; what is in flight is not."""

import pytest

from interrupts import worker
from interrupts.errors import RunEnded, RunSuspended, StaleClaim
from interrupts.models import Attempt, Interrupt
from interrupts.services import attempts
from interrupts.suspension import counts_of
from tests.interrupts.house import earlier, fresh, kinds, open_of, refused

CALLED = frozenset({"last_seen_at", "updated_at"})


def test_queued_work_of_an_old_epoch_starts_nothing(house):
    house.tool("t")
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    house.respond(house.stop(run))
    assert fresh(run).epoch == 2
    assert worker.work_run(run.pk, 1) == 0
    assert worker.work_run(run.pk, 2) == 1


def test_an_epoch_grows_at_a_suspension_and_a_cancel_and_at_nothing_else(house):
    run = house.run()
    stop = house.stop(run)
    assert fresh(run).epoch == 2
    asked = house.interrupt(house.agent, run, "input_required")
    assert fresh(run).epoch == 2
    house.respond(asked, value=1)
    house.respond(stop)
    assert fresh(run).epoch == 2
    house.cancel(run)
    assert fresh(run).epoch == 3


def test_a_stop_during_a_call_lets_it_finish_and_nothing_follows(house):
    house.tool("t")
    run = house.run()
    first, second = house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}))
    during = []

    def stopped(arguments, call):
        house.stop(run)
        during.append((fresh(run).suspension, fresh(run).count_in_flight))

    house.behaviour["t"] = stopped
    house.work(run)
    assert during == [("still_cancelling", 1)]
    assert (fresh(first).status, fresh(second).status) == ("succeeded", "ready")
    assert (fresh(run).status, fresh(run).suspension) == ("suspended", "partially_complete")
    assert house.ran == [1]


def test_a_call_that_outlasts_a_stop_and_its_release_is_recorded_and_the_run_goes_on(house):
    house.tool("t")
    run = house.run()
    house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}))

    def outlast(arguments, call):
        if arguments["n"] == 1:
            house.respond(house.stop(run))

    house.behaviour["t"] = outlast
    house.work(run)
    assert house.ran == [1]  # its successor is of the new epoch
    assert fresh(run).due_at is not None
    house.work(run)
    assert house.ran == [1, 2]


def test_a_heartbeat_in_flight_is_answered_and_extends_the_lease(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    house.stop(run)
    earlier(attempt, "lease_expires_at", 5)
    before = fresh(attempt).lease_expires_at
    beat = attempts.heartbeat(house.agent, attempt.pk, fence=1)
    assert beat.lease_expires_at > before
    assert not beat.cancel_requested
    assert fresh(run).due_at <= beat.lease_expires_at


@pytest.mark.parametrize("act", ["stop", "cancel"])
def test_a_stop_that_cancels_what_is_in_flight_says_so_to_the_heartbeat(house, act):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    if act == "stop":
        house.stop(run, in_flight="cancel")
    else:
        house.cancel(run)
    asked = attempts.heartbeat(house.agent, attempt.pk, fence=1).cancel_requested
    assert asked == (act == "stop")  # a cancelled run finishes what is in flight


def test_a_heartbeat_of_what_is_over_is_stale(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    with refused(StaleClaim):
        attempts.heartbeat(house.agent, attempt.pk, fence=2)
    house.report(attempt, "not_performed")
    with refused(StaleClaim):
        attempts.heartbeat(house.agent, attempt.pk, fence=1)
    newer = house.claim(step)
    earlier(newer, "lease_expires_at", 3600)  # over, though nobody has looked
    with refused(StaleClaim):
        attempts.heartbeat(house.agent, newer.pk, fence=2)


def test_a_claim_in_a_suspended_run_starts_nothing(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    stop = house.stop(run)
    with refused(RunSuspended):
        house.claim(step)
    house.respond(stop)
    assert house.claim(step).epoch == 2


def test_nothing_is_proposed_or_claimed_in_a_cancelling_run(house):
    house.tool("mine", kind="agent")
    run = house.run()
    first, second = house.propose(run, ("mine", {}), ("mine", {}), parallel=True)
    house.claim(first)
    house.cancel(run)
    with refused(RunEnded):
        house.propose(run, ("mine", {}))
    with refused(RunEnded):
        house.claim(second)
    with refused(RunEnded):
        house.stop(run)


def test_a_lapse_while_suspended_is_an_unknown_outcome_of_the_same_epoch(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    house.stop(run)
    house.lapse(attempt)
    run = fresh(run)
    assert (run.suspension, run.epoch, run.open_interrupts) == ("unknown_outcome", 2, 2)


def test_the_four_suspensions_hide_nothing(house):
    """The first that applies is shown, the counts behind the others beside it."""
    house.tool("mine", kind="agent")
    run = house.run()
    first, second = house.propose(run, ("mine", {"n": 1}), ("mine", {"n": 2}), parallel=True)
    third, fourth = house.propose(run, ("mine", {"n": 3}), ("mine", {"n": 4}), parallel=True)
    done, unknown, flying = (house.claim(step) for step in (first, second, third))
    house.report(done)
    house.stop(run)
    assert _shown(run) == ("still_cancelling", 0, 2, 1)
    house.report(unknown, "unknown")
    assert _shown(run) == ("unknown_outcome", 1, 1, 1)
    house.recover(second, "performed")
    assert _shown(run) == ("still_cancelling", 0, 1, 0)
    house.report(flying)
    assert _shown(run) == ("partially_complete", 0, 0, 1)
    stop = open_of(run)
    house.respond(stop, "revise", value={"guidance": "no", "withdraw": [str(fourth.pk)]})
    house.stop(run)
    assert _shown(run) == ("safely_suspended", 0, 0, 0)
    assert counts_of(run.pk, 1) == counts_of(run.pk, fresh(run).next_step)


def _shown(run):
    run = fresh(run)
    return run.suspension, run.count_unknown, run.count_in_flight, run.count_partial


def test_what_is_proposed_once_the_run_goes_on_is_of_the_new_epoch(house):
    house.tool("t")
    run = house.run()
    house.respond(house.stop(run))
    house.propose(run, ("t", {"n": 1}))
    assert house.sent[-1] == (str(house.tenant.pk), str(run.pk), 2)
    house.work(run)
    assert Attempt.objects.get().epoch == 2
    assert kinds(run).count("run.suspended") == 1
    assert Interrupt.objects.get().resolution == "resume"
