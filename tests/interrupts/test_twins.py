"""A call equal to one whose outcome is unknown waits for it, across the runs of the same work."""

import pytest

from interrupts.models import Run
from interrupts.services import runs, steps
from tests.interrupts.house import fresh, open_of


@pytest.fixture
def lost(house):
    house.tool("t")
    return house.lost(n=1)


def test_an_equal_call_of_another_run_waits_and_that_run_is_not_suspended(house, lost):
    run = house.run()
    twin, other = house.propose(run, ("t", {"n": 1})), house.propose(run, ("t", {"n": 2}))
    assert (fresh(twin[0]).status, fresh(twin[0]).held_by) == ("waiting", "twin")
    assert (fresh(twin[0]).twin, fresh(run).status) == (lost[1].pk, "running")
    house.work(run)
    assert house.ran == [1, 2]
    assert fresh(other[0]).status == "succeeded"


@pytest.mark.parametrize("outcome", ["performed", "not_performed", "skip"])
def test_it_is_judged_once_the_outcome_is_known(house, lost, outcome):
    run = house.run()
    (twin,) = house.propose(run, ("t", {"n": 1}))
    house.recover(lost[1], outcome)
    assert fresh(run).due_at is not None
    house.look(run)
    assert fresh(twin).status == "ready"


def test_a_run_that_holds_one_looks_from_time_to_time_by_itself(house, lost):
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    assert fresh(run).due_at is not None
    for _ in range(2):
        house.look(run)
        assert fresh(run).due_at is not None


@pytest.mark.parametrize("when", ["proposed before", "proposed after"])
def test_one_that_stays_unknown_for_good_is_asked_about_whatever_policy_says(house, lost, when):
    run = house.run()
    if when == "proposed after":
        house.recover(lost[1], "unresolvable")
    (twin,) = house.propose(run, ("t", {"n": 1}))
    if when == "proposed before":
        house.recover(lost[1], "unresolvable")
        house.look(run)
    twin = fresh(twin)
    assert (twin.status, twin.held_by, twin.twin) == ("waiting", "gate", lost[1].pk)
    assert open_of(twin).kind == "decision"
    assert "nobody knows" in house.policy.reasons[-1]
    house.decide(twin)
    house.work(run)
    assert house.ran == [1, 1]


def test_what_policy_denies_is_denied_all_the_same(house, lost):
    house.recover(lost[1], "unresolvable")
    house.policy.verdicts["t"] = "deny"
    (twin,) = house.propose(house.run(), ("t", {"n": 1}))
    assert fresh(twin).status == "denied"


def test_it_waits_for_each_of_several(house, lost):
    """Both were proposed before either was lost."""
    first = Run.objects.filter(pk=lost[0].pk)
    first.update(workflow="elsewhere")
    _, second = house.lost(n=1)
    first.update(workflow="w")
    run = house.run()
    (twin,) = house.propose(run, ("t", {"n": 1}))
    house.recover(second, "performed")
    house.look(run)
    assert (fresh(twin).status, fresh(twin).held_by) == ("waiting", "twin")
    house.recover(lost[1], "performed")
    house.look(run)
    assert fresh(twin).status == "ready"


def test_a_call_of_other_work_does_not_wait(house, lost):
    (step,) = house.propose(house.run(workflow="other"), ("t", {"n": 1}))
    assert fresh(step).status == "ready"


def test_another_agents_call_does_not_wait(house, lost):
    run = runs.start_run(house.other, workflow="w", goal="g")
    (step,), _ = steps.propose(
        house.other, run.pk, proposals=[{"tool": "t", "arguments": {"n": 1}}]
    )
    assert fresh(step).status == "ready"


def test_a_rejected_call_of_the_same_run_is_rejected_before_anything_is_asked(house):
    house.tool("t")
    house.policy.verdicts["t"] = "approve"
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.decide(step, "not this one")
    asked = house.policy.asked
    (again,) = house.propose(run, ("t", {"n": 1}))
    assert (fresh(again).status, again.reason, again.gate) == ("rejected", "not this one", None)
    assert house.policy.asked == asked
    assert fresh(run).usage_steps == 1  # one that nobody was asked about uses up nothing
    (elsewhere,) = house.propose(house.run(), ("t", {"n": 1}))
    assert fresh(elsewhere).status == "waiting"
