"""What is known not to have begun is tried again; what is not known of a read is too."""

import socket
from datetime import timedelta

import pytest

from interrupts import worker
from interrupts.effects import NotPerformed, Observed, Outcome, Refused
from interrupts.models import Attempt, Interrupt, Receipt, Step
from interrupts.transitions.attempts import READ_TRIES, backoff
from tests.interrupts.house import earlier, fresh, kinds, open_of


def over(step):
    """Let the wait before the step's next try be over."""
    earlier(step, "due_at", 7200)


def busy(retry_after=None):
    def behave(arguments, call):
        raise NotPerformed("busy", retry_after=retry_after)

    return behave


def waits(step):
    last = Receipt.objects.filter(step=step).latest("id")
    return fresh(step).due_at - last.observed_at


@pytest.mark.parametrize("effect", ["idempotent", "read"])
def test_it_is_tried_again_under_the_same_key_with_a_doubling_wait(house, effect):
    house.tool("t", effect=effect)
    house.behaviour["t"] = busy()
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    seen = []
    for _ in range(7):
        house.work(run)
        seen.append(waits(step).total_seconds())
        assert house.work(run) == 0  # not before its time
        over(step)
    assert seen == [1, 2, 4, 8, 16, 30, 30]
    assert {key for _, _, key in house.calls} == {str(step.pk)}
    step = fresh(step)
    assert (step.status, step.outcome, step.attempts) == ("ready", "not_performed", 7)
    assert fresh(run).status == "running"


def test_between_two_tries_nothing_is_in_flight(house):
    house.tool("t")
    house.behaviour["t"] = busy()
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    house.work(run)
    house.stop(run)
    assert fresh(run).suspension == "safely_suspended"
    assert not Attempt.objects.filter(settled_at=None).exists()


def test_the_far_ends_own_wait_is_respected_within_an_hour(house):
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    for asked, granted in ((90, 90), (0.5, 2), (10**6, 3600)):
        house.behaviour["t"] = busy(asked)
        house.work(run)
        assert waits(step) == timedelta(seconds=granted)
        over(step)


@pytest.mark.parametrize("attempts", [0, 1, 10_000])
def test_no_number_of_tries_makes_a_wait_that_is_none(attempts):
    assert 1 <= backoff(attempts, None) <= 30


def test_a_try_after_the_wait_succeeds(house):
    house.tool("t")
    house.behaviour["t"] = busy()
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.work(run)
    del house.behaviour["t"]
    over(step)
    house.work(run)
    step = fresh(step)
    assert (step.status, step.attempts, step.fence) == ("succeeded", 2, 2)
    assert [one.outcome for one in Attempt.objects.order_by("fence")] == [
        "not_performed",
        "succeeded",
    ]


def test_a_run_that_is_stopped_tries_nothing_again_before_it_goes_on(house):
    house.tool("t")
    house.behaviour["t"] = busy()
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.work(run)
    stop = house.stop(run)
    over(step)
    house.look(run)
    assert house.work(run) == 0
    house.respond(stop)
    assert house.work(run) == 1


def test_what_is_due_again_is_found_by_the_sweep(house):
    house.tool("t")
    house.behaviour["t"] = busy(300)
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.work(run)
    house.look(run)
    assert fresh(run).due_at == fresh(step).due_at
    over(step)
    sent = len(house.sent)
    house.look(run)
    assert len(house.sent) == sent + 1


def test_a_definite_refusal_fails_the_step_and_the_run_goes_on(house):
    house.tool("t")
    house.tool("u")
    house.behaviour["t"] = refuse
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.propose(run, ("u", {"n": 2}))
    house.work(run)
    step = fresh(step)
    assert (step.status, step.outcome, step.error) == ("failed", "failed", "no such account")
    assert house.ran == [1, 2]


def refuse(arguments, call):
    raise Refused("no such account")


@pytest.mark.parametrize("effect", ["idempotent", "read"])
def test_where_the_tool_says_so_a_refusal_asks_people(house, effect):
    house.tool("t", effect=effect, on_failure="interrupt")
    house.behaviour["t"] = refuse
    run = house.run()
    house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}))
    house.work(run)
    assert house.ran == [1]
    assert open_of(run).reason == "effect_failed"


# Reads


@pytest.mark.parametrize("parallel", [False, True])
def test_an_unknown_read_is_tried_again_and_suspends_nothing_and_fails_after_five(house, parallel):
    house.tool("look", effect="read")
    house.break_off("look")
    run = house.run()
    (step,) = house.propose(run, ("look", {"n": 1}), parallel=parallel)
    for tries in range(1, READ_TRIES + 1):
        house.work(run)
        assert (fresh(step).attempts, fresh(run).status) == (tries, "running")
        if tries < READ_TRIES:
            assert fresh(step).status == "ready"
            over(step)
    assert fresh(step).status == "failed"
    assert not Interrupt.objects.exists()
    assert kinds(run).count("step.retried") == READ_TRIES - 1


def test_an_agents_read_that_is_lost_is_tried_again_and_suspends_nothing(house):
    house.tool("look", effect="read", kind="agent", on_failure="interrupt")
    run = house.run()
    (step,) = house.propose(run, ("look", {"n": 1}))
    for _ in range(READ_TRIES - 1):
        house.lapse(house.claim(step))
        assert (fresh(step).status, fresh(run).status) == ("ready", "running")
    house.report(house.claim(step), "unknown")
    assert fresh(step).status == "failed"
    assert open_of(run).reason == "effect_failed"


def test_a_read_has_no_intent_and_leaves_attempt_and_receipt_together(house):
    house.tool("look", effect="read")
    run = house.run()
    (step,) = house.propose(run, ("look", {"n": 1}))
    during = []
    house.behaviour["look"] = lambda *_: during.append(
        (fresh(step).status, Attempt.objects.count())
    )
    house.work(run)
    assert during == [("ready", 0)]
    assert (Attempt.objects.count(), Receipt.objects.count()) == (1, 1)
    assert "attempt.started" not in kinds(run)


# What a worker sends, and what it leaves


def test_exactly_what_was_authorised_is_sent_and_nothing_that_was_changed(house):
    house.tool("t")
    run = house.run()
    first, second = (house.propose(run, ("t", {"n": n}))[0] for n in (1, 2))
    Step.objects.filter(pk=first.pk).update(arguments=second.arguments)
    house.work(run)
    assert house.ran == [2]
    assert fresh(first).status == "failed"
    assert "not the one that was authorised" in fresh(first).error


def test_a_turn_that_is_over_wakes_its_successor(house, monkeypatch):
    house.tool("t")
    run = house.run()
    house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}))
    monkeypatch.setattr(worker, "TURN_SECONDS", -1.0)
    sent = len(house.sent)
    assert house.work(run) == 0
    assert house.sent[sent:] == [(str(house.tenant.pk), str(run.pk), 1)]


def test_no_effect_starts_that_would_not_fit_into_what_is_left_of_the_hard_limit(
    house, monkeypatch
):
    house.tool("t", timeout=30)
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    monkeypatch.setattr(worker, "HARD_LIMIT_SECONDS", 34.0)
    sent = len(house.sent)
    assert house.work(run) == 0
    assert len(house.sent) == sent + 1
    assert fresh(step).status == "ready"


def test_a_call_has_a_lease_of_its_timeout_and_two_seconds(house):
    house.tool("t", timeout=7)
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.work(run)
    attempt = Attempt.objects.get(step=step)
    assert attempt.lease_expires_at - attempt.started_at == timedelta(seconds=9)


def test_a_host_with_the_longest_of_names_records_what_it_did(house, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "h" * 64)
    house.tool("t")
    house.tool("look", effect="read")
    house.behaviour["look"] = lambda *_: Observed(Outcome.UNKNOWN)
    run = house.run()
    steps = house.propose(run, ("t", {"n": 1}), ("look", {"n": 2}))
    house.work(run)
    assert [fresh(step).attempts for step in steps] == [1, 1]
    assert fresh(steps[0]).status == "succeeded"


def test_no_transaction_is_open_during_a_call(house):
    from django.db import connection

    house.tool("t")
    house.tool("look", effect="read")
    during = []
    for tool in ("t", "look"):
        house.behaviour[tool] = lambda *_: during.append(
            (connection.in_atomic_block, connection.connection.info.transaction_status.name)
        )
    run = house.run()
    house.propose(run, ("t", {}), ("look", {}))
    house.work(run)
    assert during == [(False, "IDLE"), (False, "IDLE")]
