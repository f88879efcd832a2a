"""Whatever is done twice at once is done once."""

import threading
from collections import Counter
from decimal import Decimal

import pytest
from django.db import connection

from interrupts import worker
from interrupts.errors import AlreadyClaimed, AlreadyResolved
from interrupts.models import Attempt, Receipt, Step
from interrupts.services import responses, runs
from tests.interrupts.history import assert_history_holds, assert_states_are_rebuilt
from tests.interrupts.house import fresh, kinds


def test_twenty_writers_of_one_run_leave_one_history(house, at_once):
    """Proposals, claims, receipts, workers' commits and usage, all at the same row."""
    house.tool("t")
    house.tool("mine", kind="agent")
    run = house.run()
    mine = [house.propose(run, ("mine", {"n": n}))[0] for n in range(5)]
    before = fresh(run).state_version

    def propose(n):
        def work():
            for m in range(3):
                house.propose(run, ("t", {"n": 10 * n + m}))

        return work

    def claim_and_report(step):
        return lambda: house.report(house.claim(step))

    def use():
        for _ in range(3):
            runs.report_usage(house.agent, run.pk, tokens=1, cost=Decimal("0.01"))

    writers = [
        *(propose(n) for n in range(7)),
        *(claim_and_report(step) for step in mine),
        *([lambda: house.work(run)] * 4),
        *([use] * 4),
    ]
    for outcome in at_once(*writers):
        assert not isinstance(outcome, Exception), outcome
    house.work(run)

    run = fresh(run)
    assert sorted(house.ran) == sorted(10 * n + m for n in range(7) for m in range(3))
    assert (run.usage_tokens, run.usage_cost, run.usage_steps) == (12, Decimal("0.12"), 26)
    assert (run.last_position, run.next_step) == (26, 27)
    assert run.state_version == before + commits(run) - 5  # the first five were before it
    assert_history_holds(run)
    assert_states_are_rebuilt(run)


def commits(run):
    """The transactions that the journal tells of, but for the start and what stopped nothing."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(DISTINCT xid) FROM tenants_journalentry"
            " WHERE stream = %s AND kind NOT IN ('usage.reported', 'run.started')",
            [run.pk],
        )
        return cursor.fetchone()[0]


@pytest.mark.parametrize("effect", ["idempotent", "read"])
def test_two_workers_of_one_run_call_each_step_once_and_in_order(house, at_once, effect):
    house.tool("t", effect=effect)
    run = house.run()
    steps = house.propose(run, *[("t", {"n": n}) for n in range(15)])
    at_once(*[lambda: house.work(run)] * 3)
    house.work(run)
    settled = [entry for entry in kinds(run) if entry == "step.settled"]
    assert len(settled) == len(steps) == Receipt.objects.count() == Attempt.objects.count()
    if effect == "idempotent":  # a read may be looked at twice, and has one result
        assert house.ran == list(range(15))
    assert {fresh(step).attempts for step in steps} == {1}


def test_one_at_a_time_means_that_no_two_overlap(house, at_once):
    house.tool("t")
    inside, overlaps = threading.Semaphore(1), []

    def alone(arguments, call):
        if not inside.acquire(blocking=False):
            overlaps.append(arguments["n"])
            return
        inside.release()

    house.behaviour["t"] = alone
    run = house.run()
    for n in range(12):
        house.propose(run, ("t", {"n": n}))
    at_once(*[lambda: house.work(run)] * 4)
    house.work(run)
    assert (overlaps, len(house.ran)) == ([], 12)


def test_a_step_claimed_twice_at_once_is_claimed_once(house, at_once):
    house.tool("mine", kind="agent")
    run = house.run()
    for n in range(4):
        (step,) = house.propose(run, ("mine", {"n": n}))
        outcomes = at_once(*[lambda step=step: house.claim(step)] * 3)
        assert Counter(type(one) for one in outcomes) == {Attempt: 1, AlreadyClaimed: 2}
        assert Attempt.objects.filter(step=step).count() == 1


def test_one_key_proposed_many_times_at_once_is_one_step(house, at_once):
    house.tool("t")
    run = house.run()
    made = at_once(*[lambda: house.keyed(run, "k", "t", {"n": 1})] * 6)
    assert len({step.pk for step, _ in made}) == 1
    assert [is_new for _, is_new in made].count(True) == 1
    assert Step.objects.count() == 1


def test_two_claims_of_a_run_are_two_sessions(house, at_once):
    run = house.run()
    sessions = at_once(*[lambda: runs.claim_run(house.agent, run.pk).session] * 4)
    assert sorted(sessions) == [1, 2, 3, 4]


def test_the_same_response_many_times_at_once_is_one(house, at_once):
    run = house.run()
    stop = house.stop(run)

    def respond():
        return responses.respond(
            house.people["olga"], stop.pk, checkpoint=stop.checkpoint, resolution="resume"
        )[1]

    assert sorted(at_once(*[respond] * 5)) == [False, True, True, True, True]
    assert kinds(run).count("run.resumed") == 1


def test_of_contrary_responses_one_wins_and_the_other_is_a_conflict(house, at_once):
    for _ in range(4):
        run = house.run()
        stop = house.stop(run)
        outcomes = at_once(
            lambda stop=stop: house.respond(stop, "resume"),
            lambda stop=stop: house.respond(stop, "cancel", by="ada"),
        )
        assert Counter(type(one) for one in outcomes)[AlreadyResolved] == 1
        expected = {"resume": "running", "cancel": "cancelled"}[fresh(stop).resolution]
        assert fresh(run).status == expected


def test_a_receipt_reported_many_times_at_once_is_one(house, at_once):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    assert sorted(at_once(*[lambda: house.report(attempt)] * 4)) == [False, False, False, True]
    assert Receipt.objects.count() == 1


def test_a_worker_that_is_woken_for_every_message_works_once(house, at_once):
    house.tool("t")
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    turns = at_once(*[lambda: worker.work_run(run.pk, 1)] * 6)
    assert sorted(turns) == [0, 0, 0, 0, 0, 1]
