"""Receipts are facts: taken late, from superseded attempts, and after the end."""

from decimal import Decimal

import pytest

from config.errors import Forbidden
from interrupts.errors import NotUnknown, NotYourRun, ReceiptConflict, StaleClaim
from interrupts.models import Attempt, Interrupt, Outcome, Receipt, Source, Step
from interrupts.services import attempts, runs
from interrupts.transitions.receipts import Seen
from tenants.journal import SYSTEM
from tests.interrupts.history import assert_history_holds, assert_states_are_rebuilt
from tests.interrupts.house import fresh, kinds, nothing_changes, open_of, refused

CALLED = frozenset({"last_seen_at", "updated_at"})


@pytest.fixture
def claimed(house):
    """A step of the agent's own, claimed."""
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {"n": 1}))
    return run, step, house.claim(step)


def test_the_same_receipt_again_is_the_first_one(house, claimed):
    run, _step, attempt = claimed
    assert house.report(attempt, result={"a": 1, "b": 2}, cost=Decimal("0.10"))
    version = fresh(run).state_version
    assert not house.report(attempt, result={"b": 2, "a": 1}, cost=Decimal("0.1"))
    assert (fresh(run).state_version, Receipt.objects.count()) == (version, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"outcome": "failed"},
        {"outcome": "unknown"},
        {"outcome": "not_performed"},
        {"result": 2},
        {"external_id": "x"},
        {"cost": Decimal(1)},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_different_receipt_is_a_conflict_that_the_journal_keeps(house, claimed, other):
    run, step, attempt = claimed
    house.report(attempt, result=1)
    before = (fresh(step).status, fresh(run).state_version, Receipt.objects.count())
    with pytest.raises(ReceiptConflict):
        house.report(attempt, **{"outcome": "succeeded", "result": 1, **other})
    assert (fresh(step).status, fresh(run).state_version, Receipt.objects.count()) == before
    assert kinds(run)[-1] == "receipt.conflict"


def test_another_fence_than_the_attempts_is_stale(house, claimed):
    _, _, attempt = claimed
    for fence in (0, 2):
        with refused(StaleClaim):
            house.report(attempt, fence=fence)


def test_a_receipt_after_the_lease_lapsed_settles_the_unknown(house, claimed):
    run, step, attempt = claimed
    house.lapse(attempt)
    assert (fresh(step).status, fresh(run).suspension) == ("unknown", "unknown_outcome")
    asked = open_of(step)
    house.report(attempt, result="late")
    assert (fresh(step).status, fresh(run).status) == ("succeeded", "running")
    assert (fresh(asked).resolution, fresh(asked).resolved_by["kind"]) == ("resume", "system")


def test_a_receipt_after_an_unknown_one_settles_it(house, claimed):
    run, step, attempt = claimed
    house.report(attempt, "unknown", error="lost sight of it")
    assert fresh(step).status == "unknown"
    assert not house.report(attempt, "unknown", error="lost sight of it")
    house.report(attempt, "failed", error="exit 1")
    assert (fresh(step).status, fresh(run).status) == ("failed", "running")


def test_a_late_receipt_of_a_superseded_attempt_settles_the_step_and_ends_the_newer(house, claimed):
    run, step, attempt = claimed
    house.lapse(attempt)
    house.recover(step, "not_performed")
    newer = house.claim(step)
    house.report(attempt, result="late")
    assert (fresh(step).status, fresh(step).fence) == ("succeeded", 2)
    with refused(StaleClaim, but=CALLED):
        attempts.heartbeat(house.agent, newer.pk, fence=newer.fence)
    assert "receipt.late" in kinds(run)
    assert fresh(run).status == "running"


def test_it_settles_the_step_also_where_the_newer_attempt_is_unknown(house, claimed):
    run, step, attempt = claimed
    house.lapse(attempt)
    house.recover(step, "not_performed")
    house.lapse(house.claim(step))
    assert fresh(step).status == "unknown"
    house.report(attempt, result="late")
    assert (fresh(step).status, fresh(run).status) == ("succeeded", "running")
    assert not Interrupt.objects.filter(status="open").exists()


def test_success_of_what_a_person_took_as_not_performed_is_a_fact_too(house, claimed):
    run, step, attempt = claimed
    house.lapse(attempt)
    house.recover(step, "not_performed")
    assert fresh(step).status == "ready"
    house.report(attempt, result="late")
    assert fresh(step).status == "succeeded"
    assert "receipt.late" in kinds(run)


@pytest.mark.parametrize("outcome", ["not_performed", "skip"])
def test_a_workers_late_success_is_not_repeated_whatever_a_person_said(house, outcome):
    """The worker was slow, its lease lapsed, a person answered: then its call came back."""
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    meanwhile = {}

    def slow(arguments, call):
        if not meanwhile:
            meanwhile["attempt"] = Attempt.objects.get(step=step)
            house.lapse(meanwhile["attempt"])
            house.recover(step, outcome)
        return "late"

    house.behaviour["t"] = slow
    house.work(run)
    step = fresh(step)
    assert (step.status, Receipt.objects.filter(source="executor").count()) == ("succeeded", 1)
    house.work(run)
    assert house.ran == [1]
    assert "receipt.late" in kinds(run)


def test_what_a_person_took_as_performed_stays_whatever_comes_late(house, claimed):
    run, step, attempt = claimed
    house.lapse(attempt)
    house.recover(step, "performed", result="by hand")
    house.report(attempt, "failed", error="exit 1")
    assert fresh(step).status == "succeeded"
    assert Receipt.objects.filter(step=step).count() == 2
    assert kinds(run)[-1] == "receipt.late"


def test_a_receipt_after_a_cancel_is_taken_and_the_run_then_ends(house, claimed):
    run, step, attempt = claimed
    assert house.cancel(run).status == "cancelling"
    house.report(attempt)
    assert (fresh(step).status, fresh(run).status) == ("succeeded", "cancelled")


def test_one_after_the_run_ended_corrects_the_step_and_the_run_stays_ended(house, claimed):
    run, step, attempt = claimed
    house.lapse(attempt)
    house.recover(step, "unresolvable")
    assert (fresh(run).status, fresh(step).status) == ("failed", "unknown")
    house.report(attempt, result="late")
    assert (fresh(run).status, fresh(step).status) == ("failed", "succeeded")


@pytest.mark.parametrize("outcome", ["failed", "unknown", "not_performed"])
def test_what_was_in_flight_when_a_run_failed_for_good_is_still_recorded(house, outcome):
    house.tool("mine", kind="agent", on_failure="interrupt")
    run = house.run()
    steps = house.propose(run, ("mine", {"n": 1}), ("mine", {"n": 2}), parallel=True)
    lost, in_flight = (house.claim(step) for step in steps)
    house.report(lost, "unknown")
    house.recover(steps[0], "unresolvable")
    assert (fresh(run).status, fresh(steps[1]).status) == ("failed", "executing")
    house.report(in_flight, outcome)
    expected = {"failed": "failed", "unknown": "unknown", "not_performed": "cancelled"}[outcome]
    assert (fresh(run).status, fresh(steps[1]).status) == ("failed", expected)
    assert not Interrupt.objects.filter(status="open").exists()
    assert_history_holds(run)
    assert_states_are_rebuilt(run)


@pytest.mark.parametrize("status", ["compensating", "compensated"])
def test_late_success_of_what_was_undone_since_is_a_fact_and_changes_nothing(
    house, claimed, status
):
    run, step, attempt = claimed
    house.lapse(attempt)
    house.recover(step, "not_performed")
    house.report(house.claim(step))
    for undone in ("compensating", "compensated")[: 1 + (status == "compensated")]:
        Step.objects.filter(pk=step.pk).update(status=undone)
    assert house.report(attempt, result="late")
    assert fresh(step).status == status
    assert kinds(run)[-1] == "receipt.late"


def test_a_lease_that_ends_after_its_run_is_looked_at(house):
    house.tool("mine", kind="agent")
    run = house.run()
    steps = house.propose(run, ("mine", {"n": 1}), ("mine", {"n": 2}), parallel=True)
    lost, silent = (house.claim(step) for step in steps)
    house.report(lost, "unknown")
    house.recover(steps[0], "unresolvable")
    assert fresh(run).due_at == fresh(silent).lease_expires_at
    house.lapse(silent)
    assert (fresh(steps[1]).status, fresh(run).due_at) == ("unknown", None)


def test_a_refusal_that_asks_people_suspends_the_run(house):
    house.tool("mine", kind="agent", on_failure="interrupt")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    house.report(house.claim(step), "failed", error="no such account")
    asked = open_of(step)
    assert (asked.reason, asked.kind, fresh(run).status) == (
        "effect_failed",
        "release",
        "suspended",
    )
    house.respond(asked)
    assert (fresh(run).status, fresh(step).status) == ("running", "failed")


def test_an_agent_says_nothing_of_a_call_that_the_service_makes(house):
    """It could have a call sent twice by saying that it was not performed."""
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    seen = []

    def during(arguments, call):
        attempt = Attempt.objects.get(step=step)
        with refused(Forbidden):
            attempts.heartbeat(house.agent, attempt.pk, fence=attempt.fence)
        for outcome in ("not_performed", "succeeded"):
            with refused(Forbidden):
                house.report(attempt, outcome)
        seen.append(True)
        raise RuntimeError("lost")

    house.behaviour["t"] = during
    house.work(run)
    assert seen == [True]
    with refused(Forbidden):
        attempts.reconcile(house.agent, step.pk, outcome="not_performed", evidence="trust me")


def test_the_agent_says_what_became_of_its_own_call(house, claimed):
    run, step, attempt = claimed
    with refused(NotUnknown):
        attempts.reconcile(house.agent, step.pk, outcome="performed", evidence="exit code")
    house.lapse(attempt)
    with refused(NotYourRun):
        attempts.reconcile(house.other, step.pk, outcome="performed", evidence="exit code")
    attempts.reconcile(house.agent, step.pk, outcome="performed", evidence="exit code", result=0)
    assert (fresh(step).status, fresh(run).status) == ("succeeded", "running")
    assert Receipt.objects.get().evidence == "exit code"


def test_a_receipt_is_recorded_once_though_the_worker_records_it_twice(house):
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.work(run)
    attempt = Attempt.objects.get(step=step)
    seen = Seen(outcome=Outcome.SUCCEEDED, source=Source.EXECUTOR, by="worker:x", result=b"1")
    with nothing_changes(but=frozenset({"updated_at"})):
        attempts.record_seen(run.pk, step.pk, attempt.pk, seen, SYSTEM)


def test_a_read_whose_step_was_withdrawn_meanwhile_changes_nothing(house):
    house.tool("look", effect="read")
    run = house.run()
    (step,) = house.propose(run, ("look", {"n": 1}))
    house.behaviour["look"] = lambda *_: house.cancel(run).status
    house.work(run)
    assert (fresh(step).status, fresh(run).status) == ("cancelled", "cancelled")
    assert not Attempt.objects.exists()


def test_an_ended_run_takes_no_receipt_for_what_never_began(house):
    house.tool("mine", kind="agent")
    run = house.run()
    runs.complete_run(house.agent, run.pk, output=None)
    with refused(Attempt.DoesNotExist):
        attempts.report(house.agent, run.pk, fence=1, outcome="succeeded")
