"""A key names one call of a run for ever: an agent that repeats itself pays once."""

import pytest

from config.errors import InvalidBody
from interrupts.errors import RunSuspended, StaleSession, StepKeyReused
from interrupts.models import Step
from interrupts.services import runs, steps
from tests.interrupts.house import fresh, refused

CALLED = frozenset({"last_seen_at", "updated_at"})


def test_a_known_key_gives_the_same_step_and_performs_nothing_again(house):
    house.tool("t")
    run = house.run()
    step, is_new = house.keyed(run, "k", "t", {"n": 1})
    house.work(run)
    again, is_again_new = house.keyed(run, "k", "t", {"n": 1})
    house.work(run)
    assert (is_new, is_again_new, again.pk) == (True, False, step.pk)
    assert house.ran == [1]


def test_the_same_arguments_in_another_order_are_the_same_call(house):
    house.tool("t")
    run = house.run()
    step, _ = house.keyed(run, "k", "t", {"a": 1, "b": 1.0})
    assert house.keyed(run, "k", "t", {"b": 1, "a": 1})[0].pk == step.pk


@pytest.mark.parametrize("other", [("t", {"n": 2}), ("u", {"n": 1})])
def test_another_call_under_a_known_key_is_refused(house, other):
    house.tool("t")
    house.tool("u")
    run = house.run()
    house.keyed(run, "k", "t", {"n": 1})
    with refused(StepKeyReused):
        house.keyed(run, "k", *other)


def test_an_agent_that_starts_anew_gets_its_step_also_while_the_run_is_suspended(house):
    house.tool("t")
    run = house.run()
    step, _ = house.keyed(run, "k", "t", {"n": 1})
    house.stop(run)
    runs.claim_run(house.agent, run.pk)
    again, is_new = house.keyed(run, "k", "t", {"n": 1}, session=1)
    assert (again.pk, is_new) == (step.pk, False)
    with refused(RunSuspended):
        house.keyed(run, "another", "t", {"n": 1})


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_a_known_key_gives_its_step_also_after_the_run_ended(house, end):
    house.tool("t")
    run = house.run()
    step, _ = house.keyed(run, "k", "t", {"n": 1})
    house.work(run)
    if end == "complete":
        runs.complete_run(house.agent, run.pk, output=None)
    else:
        house.cancel(run)
    assert house.keyed(run, "k", "t", {"n": 1})[0].pk == step.pk


def test_session_then_key_then_state_is_the_order_of_the_checks(house):
    house.tool("t")
    run = house.run()
    house.keyed(run, "k", "t", {"n": 1})
    for _ in range(2):
        runs.claim_run(house.agent, run.pk)
    house.stop(run)
    with refused(StaleSession):
        house.keyed(run, "k", "t", {"n": 2}, session=1)
    with refused(StepKeyReused):
        house.keyed(run, "k", "t", {"n": 2}, session=2)
    with refused(RunSuspended):
        house.keyed(run, "new", "t", {"n": 2}, session=2)


def test_in_a_group_each_known_key_gives_its_step(house):
    house.tool("t")
    run = house.run()
    first, _ = house.keyed(run, "a", "t", {"n": 1})
    calls = [{"tool": "t", "arguments": {"n": n}, "key": key} for n, key in ((1, "a"), (2, "b"))]
    made, is_new = steps.propose(house.agent, run.pk, proposals=calls)
    again, is_again_new = steps.propose(house.agent, run.pk, proposals=calls)
    assert (made[0].pk, is_new) == (first.pk, True)
    assert ([one.pk for one in again], is_again_new) == ([one.pk for one in made], False)
    assert Step.objects.filter(run=run).count() == 2


def test_a_key_twice_in_one_group_is_refused(house):
    house.tool("t")
    run = house.run()
    calls = [{"tool": "t", "arguments": {"n": n}, "key": "k"} for n in (1, 2)]
    with refused(InvalidBody):
        steps.propose(house.agent, run.pk, proposals=calls)


def test_a_key_names_the_call_as_first_proposed_whatever_an_edit_made_of_it(house):
    house.tool("t")
    run = house.run()
    step, _ = house.keyed(run, "k", "t", {"n": 1})
    Step.objects.filter(pk=step.pk).update(digest="sha256:" + "1" * 64)  # as an edit leaves it
    assert house.keyed(run, "k", "t", {"n": 1})[0].pk == step.pk


def test_a_revised_step_keeps_its_key(house):
    house.tool("t")
    run = house.run()
    step, _ = house.keyed(run, "k", "t", {"n": 1})
    stop = house.stop(run)
    house.respond(stop, "revise", value={"guidance": "not so", "withdraw": [str(step.pk)]})
    again, _ = house.keyed(run, "k", "t", {"n": 1})
    assert (again.pk, fresh(again).status) == (step.pk, "revised")


def test_keys_of_other_runs_are_their_own(house):
    house.tool("t")
    first, _ = house.keyed(house.run(), "k", "t", {"n": 1})
    second, is_new = house.keyed(house.run(), "k", "t", {"n": 2})
    assert is_new
    assert second.pk != first.pk
