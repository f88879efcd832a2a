"""Forks: an ended run goes on as a new one, and what was done is not done again."""

import pytest

from config.errors import InvalidBody
from interrupts.errors import Damaged, MayNot
from interrupts.models import Checkpoint, Run, Step
from interrupts.services import checkpoints, forks
from interrupts.services.forks import RunNotEnded
from tests.database import rewrite
from tests.interrupts.house import fresh, kinds, refused

STATE = {"format": "f", "version": "1", "data": {"at": [1]}}


@pytest.fixture
def ended(house):
    house.tool("t")
    run = house.run()
    house.keyed(run, "a", "t", {"n": 1})
    house.work(run)
    start = checkpoints.put_state(house.agent, run.pk, agent_state=STATE)
    house.keyed(run, "b", "t", {"n": 2})
    house.cancel(run)
    return fresh(run), start


def test_a_fork_has_the_state_and_nothing_else_of_the_run(house, ended):
    run, start = ended
    fork = forks.fork_run(house.people["olga"], run.pk, checkpoint=start.pk)
    fork = fresh(fork)
    assert (fork.forked_from_id, fork.agent_id, fork.status) == (run.pk, run.agent_id, "running")
    assert (fork.usage_steps, fork.last_position, fork.epoch) == (0, 0, 1)
    checkpoint = Checkpoint.objects.get(pk=fork.checkpoint_id)
    assert checkpoint.run_id == fork.pk
    assert checkpoints.agent_state_of(checkpoint) == {"at": [1]}
    assert kinds(fork)[:2] == ["run.started", "run.forked"]
    assert fresh(run).status == "cancelled"


def test_what_succeeded_under_a_key_is_that_step_and_what_did_not_is_asked_anew(house, ended):
    run, start = ended
    fork = forks.fork_run(house.people["olga"], run.pk, checkpoint=start.pk)
    done, is_new = house.keyed(fork, "a", "t", {"n": 1})
    assert (done.run_id, is_new, done.status) == (run.pk, False, "succeeded")
    again, is_new = house.keyed(fork, "b", "t", {"n": 2})
    assert (again.run_id, is_new) == (fork.pk, True)
    house.work(fork)
    assert house.ran == [1, 2]


def test_a_run_whose_history_does_not_verify_is_not_forked(house, ended):
    run, start = ended
    done = Step.objects.get(run=run, key="a")
    rewrite(done, key="b2")  # as if nothing had succeeded under it
    shown = frozenset({"damage", "damaged_at", "state_version"})
    with refused(Damaged, but=shown):
        forks.fork_run(house.people["olga"], run.pk, checkpoint=start.pk)
    assert fresh(run).damage is not None


def test_a_fork_grows_the_state_it_began_with(house, ended):
    run, start = ended
    fork = forks.fork_run(house.people["olga"], run.pk, checkpoint=start.pk)
    grown = checkpoints.put_state(
        house.agent,
        fork.pk,
        agent_state={
            "format": "f", "version": "1", "base": str(fork.checkpoint_id), "append": {"/at": [2]},
        },
    )  # fmt: skip
    assert checkpoints.agent_state_of(grown) == {"at": [1, 2]}


def test_only_an_ended_run_is_forked_by_an_operator_from_its_own_checkpoint(house, ended):
    run, start = ended
    other = house.run()
    with refused(MayNot):
        forks.fork_run(house.people["alice"], run.pk, checkpoint=start.pk)
    with refused(RunNotEnded):
        forks.fork_run(house.people["olga"], other.pk, checkpoint=start.pk)
    house.cancel(other)
    with refused(InvalidBody):
        forks.fork_run(house.people["olga"], other.pk, checkpoint=start.pk)
    assert Run.objects.filter(forked_from__isnull=False).count() == 0
