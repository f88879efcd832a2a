"""Who drives a run: a newer claim ends the older one's right to propose."""

import uuid
from datetime import timedelta
from decimal import Decimal

import pytest

from config.errors import InvalidBody
from interrupts.errors import NotYourRun, RunEnded, StaleSession
from interrupts.services import checkpoints, runs, starting, steps
from tests.interrupts.house import earlier, fresh, open_of, refused

STATE = {"format": "f", "version": "1", "data": {}}
CALLS = {
    "propose": lambda house, run, step, session: house.propose(run, ("t", {}), session=session),
    "claim": lambda house, run, step, session: house.claim(step, session=session),
    "interrupt": lambda house, run, step, session: house.interrupt(
        house.agent, run, "agent_requested", session=session
    ),
    "checkpoint": lambda house, run, step, session: checkpoints.put_state(
        house.agent, run.pk, agent_state=STATE, session=session
    ),
    "usage": lambda house, run, step, session: runs.report_usage(
        house.agent, run.pk, tokens=1, cost=Decimal(0), session=session
    ),
    "acknowledge": lambda house, run, step, session: runs.acknowledge(
        house.agent, run.pk, guidance=[], session=session
    ),
    "complete": lambda house, run, step, session: runs.complete_run(
        house.agent, run.pk, output=None, session=session
    ),
    "fail": lambda house, run, step, session: runs.fail_run(
        house.agent, run.pk, error=None, session=session
    ),
}


@pytest.fixture
def driven(house):
    """A run with its second session, and a step of the agent's own that is ready."""
    house.tool("t", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("t", {}))
    for _ in range(2):
        runs.claim_run(house.agent, run.pk)
    return house, run, step


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_older_session_is_refused_and_one_that_was_never_given_is_none(driven, call):
    house, run, step = driven
    with refused(StaleSession):
        call(house, run, step, 1)
    for never_given in (3, 0, -1):
        with refused(InvalidBody):
            call(house, run, step, never_given)


@pytest.mark.parametrize("session", [2, None])
def test_the_newest_session_and_none_are_taken(driven, session):
    house, run, step = driven
    house.claim(step, session=session)
    house.propose(run, ("t", {}), session=session)


def test_what_an_older_session_proposed_goes_on_and_its_facts_are_taken(house):
    house.tool("t", kind="agent")
    run = house.run()
    runs.claim_run(house.agent, run.pk)
    (step,) = house.propose(run, ("t", {}), session=1)
    attempt = house.claim(step, session=1)
    runs.claim_run(house.agent, run.pk)
    assert house.report(attempt)
    assert fresh(step).status == "succeeded"


def test_a_run_is_claimed_also_while_suspended_and_not_once_it_ends(house):
    run = house.run()
    house.stop(run)
    assert runs.claim_run(house.agent, run.pk).session == 1
    house.cancel(run)
    with refused(RunEnded):
        runs.claim_run(house.agent, run.pk)


def test_a_run_belongs_to_its_agent(driven):
    house, run, step = driven
    with refused(NotYourRun):
        runs.claim_run(house.other, run.pk)
    with refused(NotYourRun):
        starting.claim_step(house.other, step.pk)
    with refused(NotYourRun):
        steps.propose(house.other, run.pk, proposals=[{"tool": "t", "arguments": {}}])
    with refused(runs.Run.DoesNotExist):
        runs.claim_run(house.agent, uuid.uuid4())


def test_an_agent_that_is_silent_for_longer_than_it_promised_is_lost(house):
    run = house.run(idle_after=60)
    assert fresh(run).due_at == fresh(run).last_seen_at + timedelta(seconds=60)
    house.look(run)
    assert fresh(run).status == "running"
    _silent(run, 61)
    house.look(run)
    assert (fresh(run).status, open_of(run).reason) == ("suspended", "owner_lost")
    assert open_of(run).kind == "release"


def test_every_call_of_the_agent_is_its_heartbeat(house):
    run = house.run(idle_after=60)
    _silent(run, 61)
    runs.report_usage(house.agent, run.pk)
    house.look(run)
    assert fresh(run).status == "running"


def test_a_new_claim_closes_an_open_owner_lost_by_itself(house):
    run = house.run(idle_after=60)
    _silent(run, 61)
    house.look(run)
    lost = open_of(run)
    runs.claim_run(house.agent, run.pk)
    assert (fresh(lost).resolution, fresh(lost).resolved_by["kind"]) == ("resume", "system")
    assert fresh(run).status == "running"


def test_the_clock_of_a_silent_owner_starts_anew_when_the_run_goes_on(house):
    run = house.run(idle_after=60)
    stop = house.stop(run)
    _silent(run, 3600)
    house.look(run)
    assert [one.reason for one in fresh(run).interrupts.all()] == ["operator_stop"]
    house.respond(stop)
    house.look(run)
    assert fresh(run).status == "running"
    assert fresh(run).due_at > fresh(run).last_seen_at


def _silent(run, seconds):
    earlier(run, "last_seen_at", seconds)
