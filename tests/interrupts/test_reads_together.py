"""Reads that come back at once are recorded in one commit; everything else is as one by one."""

import time
from decimal import Decimal

import pytest

from interrupts import hot, worker
from interrupts.effects import NotPerformed, Observed, Outcome
from interrupts.models import Attempt, Content, Receipt, Run, Step
from tenants.ids import uuid7
from tests.interrupts.house import everything, fresh, kinds


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """On a busy machine too, everything is quick unless a test says otherwise."""
    monkeypatch.setattr(worker, "QUICK_SECONDS", 60.0)
    monkeypatch.setattr(worker, "READS_SECONDS", 60.0)
    worker._quick.clear()


@pytest.fixture
def slow(monkeypatch):
    monkeypatch.setattr(worker, "QUICK_SECONDS", 0.0)


@pytest.fixture
def commits(monkeypatch):
    """How many outcomes each commit of a worker recorded."""
    advance, made = hot.advance, []

    def counted(*args, **more):
        at = advance(*args, **more)
        if more["done"] and at.recorded == "recorded":
            made.append(len(more["done"]))
        return at

    monkeypatch.setattr(hot, "advance", counted)
    return made


def reads(house, number=6, **more):
    """A run with so many reads to be made, the argument ``n`` counting from 1."""
    house.tool("r", effect="read", **more)
    run = house.run()
    return run, house.propose(run, *(("r", {"n": n + 1}) for n in range(number)))


def statuses(steps):
    return [fresh(step).status for step in steps]


def test_the_first_alone_and_the_others_in_one_commit(house, commits):
    run, steps = reads(house)
    before = fresh(run).state_version
    assert house.work(run) == 6
    assert commits == [1, 5]
    assert house.ran == [1, 2, 3, 4, 5, 6]
    assert set(statuses(steps)) == {"succeeded"}
    assert fresh(run).state_version == before + 2
    assert (fresh(run).next_step, fresh(run).reading) == (steps[-1].position + 1, None)


def test_what_is_kept_is_what_one_by_one_would_keep(house, commits, monkeypatch):
    run, steps = reads(house, 4)
    house.work(run)
    monkeypatch.setattr(worker, "READS_TOGETHER", 1)
    other = house.run()
    alone = house.propose(other, *(("r", {"n": n + 1}) for n in range(4)))
    house.work(other)
    assert commits == [1, 3, 1, 1, 1, 1]
    assert kinds(run) == kinds(other)
    for one, same in zip(steps, alone, strict=True):
        assert kept(Step, pk=one.pk) == kept(Step, pk=same.pk)
        assert kept(Attempt, step=one) == kept(Attempt, step=same)
        assert kept(Receipt, step=one) == kept(Receipt, step=same)


OWN = {"id", "run_id", "step_id", "attempt", "run", "step", "key", "key_scope", "group"}


def kept(model, **which):
    (row,) = model.objects.filter(**which).values()
    return {
        name: value
        for name, value in row.items()
        if name not in OWN and not name.endswith(("_at", "_until"))
    }


def test_no_more_than_a_number_are_recorded_together(house, commits, monkeypatch):
    monkeypatch.setattr(worker, "READS_TOGETHER", 3)
    run, _ = reads(house, 8)
    house.work(run)
    assert commits == [1, 3, 3, 1]


def test_a_slow_read_is_recorded_before_the_next_is_made(house, slow):
    run, _ = reads(house, 4)
    house.behaviour["r"] = lambda given, _: Receipt.objects.filter(run=run).count()
    house.work(run)
    assert results(run) == [0, 1, 2, 3]


def test_what_came_back_does_not_wait_for_a_tool_that_was_slow_the_last_time(house, commits):
    slow = house.tool("s", effect="read")
    run, _ = reads(house, 1)
    house.propose(run, *((tool, {"n": 0}) for tool in "srrsrr"))
    house.behaviour["s"] = lambda *_: time.sleep(0.01)
    worker._quick[slow.pk] = True

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worker, "QUICK_SECONDS", 0.01)
        house.work(run)
    assert worker._quick[slow.pk] is False
    assert len(commits) >= 4


def test_reads_are_begun_together_for_a_short_time_only(house, commits, monkeypatch):
    monkeypatch.setattr(worker, "READS_SECONDS", 0.0)
    run, _ = reads(house, 4)
    house.work(run)
    assert commits == [1, 1, 1, 1]


def test_what_cost_something_is_recorded_before_the_next_is_made(house):
    house.policy.budget = {"cost": "1.00"}
    run, steps = reads(house, 5)
    free = Observed(Outcome.SUCCEEDED, result={"n": 1})
    paid = Observed(Outcome.SUCCEEDED, result={"n": 1}, cost=Decimal("0.60"))
    house.behaviour["r"] = lambda given, _: paid if given["n"] > 2 else free
    house.work(run)
    assert house.ran == [1, 2, 3, 4]
    assert fresh(run).status == "suspended"
    assert statuses(steps[:3]) == ["succeeded"] * 3


@pytest.mark.parametrize("kind", ["effect", "agent", "parallel", "tried", "due", "longer"])
def test_what_is_no_plain_read_is_asked_for_by_itself(house, commits, kind):
    house.tool("e", effect="idempotent")
    house.tool("a", effect="read", kind="agent")
    house.tool("l", effect="read", timeout=20)
    run, _ = reads(house, 3)
    other = {"effect": "e", "agent": "a", "longer": "l"}.get(kind, "r")
    (step,) = house.propose(run, (other, {"n": 4}))
    house.propose(run, ("r", {"n": 5}), ("r", {"n": 6}))
    column = {
        "parallel": {"parallel": True},
        "tried": {"fence": 1, "attempts": 1},
        "due": {"due_at": step.created_at},
    }
    Step.objects.filter(pk=step.pk).update(**column.get(kind, {"risk": step.risk}))
    house.work(run)
    assert commits[:2] == [1, 2]


def test_each_stale_authorization_is_asked_about_before_its_read(house, commits):
    run, _ = reads(house, 4)
    house.withdraw_authority()
    asked = house.policy.asked
    house.work(run)
    assert (commits, house.policy.asked) == ([1, 1, 1, 1], asked + 4)


def test_what_failed_is_tried_again_and_what_came_before_it_is_kept(house):
    run, steps = reads(house, 5)

    def behave(given, _):
        if given["n"] == 4:
            raise NotPerformed("busy")
        return given["n"]

    house.behaviour["r"] = behave
    house.work(run)
    assert statuses(steps) == ["succeeded"] * 3 + ["ready"] * 2
    assert (fresh(steps[3]).attempts, fresh(steps[3]).outcome) == (1, "not_performed")
    assert house.ran == [1, 2, 3, 4]


def test_a_stop_in_the_middle_keeps_what_was_read_and_starts_no_more(house):
    run, steps = reads(house, 5)

    def behave(given, _):
        if given["n"] == 3:
            house.stop(run)
            worker.QUICK_SECONDS = 0.0
        return given["n"]

    house.behaviour["r"] = behave
    house.work(run)
    assert house.ran == [1, 2, 3]
    assert statuses(steps) == ["succeeded"] * 3 + ["ready"] * 2
    assert fresh(run).status == "suspended"


def test_another_worker_starts_nothing_meanwhile(house):
    run, _ = reads(house, 5)
    house.behaviour["r"] = lambda given, _: house.work(run) if given["n"] == 4 else given["n"]
    house.work(run)
    assert house.ran == [1, 2, 3, 4, 5]
    assert results(run) == [1, 2, 3, 0, 5]


def test_what_is_sensitive_is_sealed(house):
    run, _ = reads(house, 4, sensitive=["/n"])
    house.behaviour["r"] = lambda given, _: {"secret": f"s{given['n']}"}
    house.work(run)
    receipts = Receipt.objects.filter(run=run)
    bodies = Content.objects.filter(digest__in=[one.result for one in receipts])
    assert len(bodies) == 4
    assert all(one.cipher and b"secret" not in bytes(one.body) for one in bodies)


def test_equal_results_are_one_content(house):
    run, steps = reads(house, 5)
    house.behaviour["r"] = lambda *_: "the same"
    house.work(run)
    assert len({bytes(fresh(step).result) for step in steps}) == 1


@pytest.mark.parametrize("which", [0, 1], ids=["before", "last"])
def test_where_one_is_not_ready_any_more_nothing_is_recorded(house, which):
    run, steps = reads(house, 3)
    advance(house, run, [])
    done = [read(step) for step in steps[:2]]
    Step.objects.filter(pk=steps[which].pk).update(status="cancelled")
    before = everything()
    assert advance(house, run, done).recorded == "long"
    assert everything() == before


def test_what_does_not_follow_one_another_is_not_recorded(house):
    run, steps = reads(house, 3)
    advance(house, run, [])
    before = everything()
    assert advance(house, run, [read(steps[0]), read(steps[2])]).recorded == "long"
    assert everything() == before


def test_what_follows_comes_with_what_is_next(house):
    run, steps = reads(house, 6)
    advance(house, run, [])
    at = advance(house, run, [read(step) for step in steps[:3]], ahead=1)
    assert (at.start.step, [one.step for one in at.ahead]) == (steps[3].pk, [steps[4].pk])


def read(step):
    return hot.Done(
        step=step.pk,
        attempt=uuid7(),
        fence=None,
        outcome="succeeded",
        result=b"1",
        external_id=None,
        cost=None,
        error=None,
        sensitive=False,
    )


def advance(house, run, done, ahead=0):
    return hot.advance(
        house.agent.tenant_id,
        run.pk,
        worker="w",
        done=done,
        attempt=uuid7(),
        epoch=Run.objects.get(pk=run.pk).epoch,
        seconds_left=60,
        ahead=ahead,
    )


def results(run):
    """What each read said, in order, where it is a number."""
    digests = [bytes(step.result) for step in Step.objects.filter(run=run).order_by("position")]
    bodies = {bytes(one.digest): bytes(one.body) for one in Content.objects.all()}
    return [int(bodies[digest]) for digest in digests]
