"""The calls of one model turn: each decided by itself, started together, in order of position."""

import threading

import pytest

from config.errors import InvalidBody
from interrupts.errors import NotAuthorized
from interrupts.models import Step
from tests.interrupts.house import fresh, refused


def statuses(steps):
    return [fresh(step).status for step in steps]


def test_nothing_of_a_group_starts_before_each_of_its_gates_is_final(house):
    house.tool("t")
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    run = house.run()
    group = house.propose(run, ("t", {"n": 1}), ("asked", {"n": 2}), ("asked", {"n": 3}))
    assert statuses(group) == ["ready", "waiting", "waiting"]

    house.work(run)
    house.decide(group[1])
    house.work(run)
    assert house.ran == []

    house.decide(group[2], "not this one")
    house.work(run)
    assert house.ran == [1, 2]
    assert statuses(group) == ["succeeded", "succeeded", "rejected"]


def test_a_claim_of_a_group_waits_for_its_gates_too(house):
    house.tool("mine", kind="agent")
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    run = house.run()
    mine, asked = house.propose(run, ("mine", {}), ("asked", {}), parallel=True)
    with refused(Exception, but=frozenset({"last_seen_at"})) as raised:
        house.claim(mine)
    assert raised.value.code == "run-suspended"
    house.decide(asked)
    assert house.claim(mine).fence == 1


def test_each_call_of_a_group_is_judged_by_itself(house):
    for tool in ("t", "asked", "never"):
        house.tool(tool)
    house.policy.verdicts.update(asked="approve", never="deny")
    run = house.run()
    group = house.propose(run, ("never", {}), ("asked", {}), ("t", {}))
    assert statuses(group) == ["denied", "waiting", "ready"]
    assert fresh(group[0]).reason == "because"
    assert fresh(run).usage_steps == 2


def test_a_group_is_recorded_as_a_whole_or_not_at_all(house):
    house.tool("t")
    house.tool("strict", arguments={"type": "object", "required": ["n"]})
    run = house.run()
    with pytest.raises(Exception, match="schema"):
        house.propose(run, ("t", {}), ("strict", {}))
    assert not Step.objects.exists()
    assert fresh(run).last_position == 0


def test_a_step_that_is_to_be_tried_again_holds_back_its_own_group_only(house):
    house.tool("t")
    house.tool("busy")
    house.behaviour["busy"] = _busy
    run = house.run()
    house.propose(run, ("busy", {"n": 1}), ("t", {"n": 2}))
    house.propose(run, ("t", {"n": 3}))
    house.work(run)
    assert house.ran == [1, 3]


def test_a_step_that_ended_holds_back_nothing(house):
    house.tool("t")
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    run = house.run()
    group = house.propose(run, ("asked", {"n": 1}), ("t", {"n": 2}))
    house.decide(group[0], "no")
    house.work(run)
    assert house.ran == [2]


@pytest.mark.parametrize("effect", ["idempotent", "read"])
def test_a_parallel_group_runs_at_once_and_each_of_its_calls_once(house, at_once, effect):
    house.tool("t", effect=effect)
    together = threading.Barrier(3)
    house.behaviour["t"] = lambda *_: together.wait(20)
    run = house.run()
    group = house.propose(run, *[("t", {"n": n}) for n in range(3)], parallel=True)

    made = at_once(*[lambda: house.work(run)] * 3)

    assert sum(made) == 3
    assert sorted(house.ran) == [0, 1, 2]
    assert statuses(group) == ["succeeded"] * 3


def test_each_start_of_a_parallel_group_calls_another_worker_for_the_next(house):
    house.tool("t")
    run = house.run()
    house.propose(run, *[("t", {"n": n}) for n in range(3)], parallel=True)
    during = []
    house.behaviour["t"] = lambda *_: during.append(len(house.sent))
    before = len(house.sent)
    house.work(run)
    assert [count - before for count in during] == [1, 2, 2]


def test_what_comes_after_a_parallel_group_waits_for_all_of_it(house, at_once):
    house.tool("t")
    house.tool("after")
    inside, go = threading.Semaphore(0), threading.Event()

    def slow(arguments, call):
        inside.release()
        assert go.wait(20)

    house.behaviour["t"] = lambda a, c: slow(a, c) if a["n"] == 2 else inside.release()
    run = house.run()
    house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}), parallel=True)
    house.propose(run, ("after", {"n": 3}))

    def first():
        house.work(run)

    def second():
        inside.acquire(timeout=20), inside.acquire(timeout=20)
        assert house.work(run) == 0
        assert 3 not in house.ran
        go.set()

    at_once(first, first, second)
    house.work(run)
    assert house.ran[-1] == 3


def test_an_earlier_step_waits_for_the_parallel_group_that_runs(house, at_once):
    """It was held back while they began, and is not begun by the first of them that ends."""
    house.tool("t")
    house.tool("held")
    inside, one_ended = threading.Barrier(2), threading.Event()
    run = house.run()
    (step,) = house.propose(run, ("held", {"n": 1}))
    house.propose(run, ("t", {"n": 2}), ("t", {"n": 3}), parallel=True)
    last = Step.objects.get(run=run, position=3)
    Step.objects.filter(pk=step.pk).update(status="waiting", held_by="twin")
    beside = []

    def together(arguments, call):
        inside.wait(20)
        if arguments["n"] == 3:
            assert one_ended.wait(20)
        else:  # what held the first step back is over while the others run
            Step.objects.filter(pk=step.pk).update(status="ready", held_by=None)

    def work():
        house.work(run)
        one_ended.set()

    house.behaviour["t"] = together
    house.behaviour["held"] = lambda *_: beside.append(fresh(last).status)
    at_once(work, work)
    assert (house.ran[-1], beside) == (1, ["succeeded"])


def test_a_claim_waits_for_the_earlier_steps_of_its_group(house):
    house.tool("mine", kind="agent")
    run = house.run()
    first, second = house.propose(run, ("mine", {"n": 1}), ("mine", {"n": 2}))
    (other,) = house.propose(run, ("mine", {"n": 3}))
    with refused(NotAuthorized, but=frozenset({"last_seen_at", "updated_at"})):
        house.claim(second)
    house.claim(other)  # of its own group alone
    house.report(house.claim(first))
    house.claim(second)


def test_a_parallel_group_is_claimed_in_any_order(house):
    house.tool("mine", kind="agent")
    run = house.run()
    first, second = house.propose(run, ("mine", {"n": 1}), ("mine", {"n": 2}), parallel=True)
    assert house.claim(second).fence == house.claim(first).fence == 1


def test_a_group_is_continued_by_its_id_in_this_run_only(house):
    house.tool("t")
    run, stranger = house.run(), house.run()
    (first,) = house.propose(run, ("t", {"n": 1}))
    (second,) = house.propose(run, ("t", {"n": 2}), group=first.group)
    assert second.group == first.group
    with refused(InvalidBody):
        house.propose(stranger, ("t", {"n": 3}), group=first.group)


def _busy(arguments, call):
    from interrupts.effects import NotPerformed

    raise NotPerformed("busy", retry_after=60)
