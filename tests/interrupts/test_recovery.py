"""Unknown outcomes: who may settle them, by which answers, and what each answer does."""

from datetime import timedelta

import pytest

from config.errors import InvalidBody
from interrupts.errors import AlreadyResolved, MayNot
from interrupts.models import Interrupt, Receipt
from tests.interrupts.history import assert_history_holds
from tests.interrupts.house import earlier, fresh, kinds, open_of, refused


@pytest.fixture
def lost(house):
    house.tool("t", reconcile={"settle_after": 30})
    return house.lost(n=1)


def test_an_unknown_outcome_opens_one_recovery_a_step(house):
    house.tool("mine", kind="agent")
    run = house.run()
    steps = house.propose(run, ("mine", {"n": 1}), ("mine", {"n": 2}), parallel=True)
    for attempt in [house.claim(step) for step in steps]:
        house.report(attempt, "unknown")
    assert [open_of(step).reason for step in steps] == ["outcome_unknown"] * 2
    assert (fresh(run).count_unknown, fresh(run).suspension) == (2, "unknown_outcome")
    house.recover(steps[0], "performed")
    assert (fresh(run).status, fresh(run).count_unknown) == ("suspended", 1)
    house.recover(steps[1], "performed")
    assert fresh(run).status == "running"


def test_an_unknown_outcome_is_never_tried_again_by_itself(house, lost):
    run, _step = lost
    for _ in range(3):
        house.look(run)
        house.work(run)
    assert house.ran == [1]


def test_performed_is_taken_with_its_evidence(house, lost):
    run, step = lost
    house.recover(step, "performed", result={"paid": True}, external_id="tx-1")
    step = fresh(step)
    assert (step.status, step.outcome, step.external_id) == ("succeeded", "succeeded", "tx-1")
    receipt = Receipt.objects.get(step=step, source="person")
    assert (receipt.evidence, receipt.by) == (
        "seen in the log",
        str(house.people["olga"].actor),
    )
    assert fresh(run).status == "running"


def test_not_performed_is_sent_again_no_earlier_than_the_call_could_still_land(house, lost):
    run, step = lost
    unknown_at = step.unknown_at
    house.recover(step, "not_performed")
    step = fresh(step)
    assert (step.status, fresh(run).status) == ("ready", "running")
    assert step.due_at == unknown_at + timedelta(seconds=30)
    assert house.work(run) == 0


def test_it_is_then_sent_under_the_same_key(house):
    house.tool("t")
    run, step = house.lost(n=1)
    house.recover(step, "not_performed")
    earlier(step, "due_at", 7200)
    house.work(run)
    assert house.ran == [1, 1]
    assert {key for _, _, key in house.calls} == {str(step.pk)}
    assert (fresh(step).status, fresh(step).fence) == ("succeeded", 2)


def test_skip_is_not_performed_and_not_sent_again(house, lost):
    run, step = lost
    house.recover(step, "skip")
    step = fresh(step)
    assert (step.status, step.outcome) == ("failed", "not_performed")
    assert Receipt.objects.get(source="person").outcome == "not_performed"
    assert fresh(run).status == "running"
    house.work(run)
    assert house.ran == [1]


def test_unresolvable_ends_the_run_and_the_step_stays_unknown(house, lost):
    run, step = lost
    child = None
    house.recover(step, "unresolvable")
    run = fresh(run)
    assert (run.status, fresh(step).status, run.open_interrupts) == ("failed", "unknown", 0)
    assert run.error == {"detail": "an outcome could not be found out"}
    assert not Interrupt.objects.filter(status="open").exists()
    assert child is None


def test_unresolvable_cancels_what_had_not_begun_children_too(house):
    house.tool("t")
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    run = house.run()
    child = house.run(parent=run.pk)
    house.break_off("t")
    steps = house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}))
    house.work(run)
    house.recover(steps[0], "unresolvable")
    assert [fresh(step).status for step in steps] == ["unknown", "cancelled"]
    assert fresh(child).status == "cancelled"
    assert_history_holds(child)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"outcome": "performed"},
        {"outcome": "performed", "evidence": ""},
        {"outcome": "perhaps", "evidence": "x"},
        {"evidence": "x"},
        {"outcome": "performed", "evidence": "x", "more": 1},
    ],
)
def test_an_answer_without_evidence_or_off_the_list_is_refused(house, lost, value):
    _run, step = lost
    asked = open_of(step)
    with refused(InvalidBody):
        house.respond(asked, value=value)


def test_only_operators_and_admins_recover(house):
    house.tool("t")
    _run, step = house.lost(run=house.run(requested_by=house.people["bob"].name))
    house.policy.deciders.add(house.people["alice"].id)
    for who in ("bob", "alice", "vera"):
        with refused(MayNot):
            house.recover(step, "performed", by=who)
    house.recover(step, "performed", by="ada")


def test_one_that_was_found_out_meanwhile_is_closed_by_the_system(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    house.lapse(attempt)
    asked = open_of(step)
    house.report(attempt)
    assert fresh(asked).resolved_by == {"kind": "system", "id": "abeyance"}
    with refused(AlreadyResolved):
        house.respond(asked, value={"outcome": "performed", "evidence": "x"})


def test_what_is_unknown_in_a_cancelling_run_leaves_it_cancelling(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    house.cancel(run)
    house.report(attempt, "unknown")
    run = fresh(run)
    assert (run.status, run.suspension) == ("cancelling", "unknown_outcome")
    assert [one["resolution"] for one in open_of(step).allowed] == ["resume"]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("performed", "succeeded"), ("not_performed", "cancelled"), ("skip", "cancelled")],
)
def test_a_cancelling_run_ends_once_it_is_found_out(house, lost, outcome, status):
    run, step = lost
    asked = open_of(step)
    house.cancel(run)
    assert (fresh(run).status, fresh(asked).status) == ("cancelling", "open")
    house.recover(step, outcome)
    assert (fresh(step).status, fresh(run).status) == (status, "cancelled")
    house.work(run)
    assert house.ran == [1]


def test_unresolvable_in_a_cancelling_run_cancels_it(house, lost):
    run, step = lost
    house.cancel(run)
    house.recover(step, "unresolvable")
    assert (fresh(run).status, fresh(step).status) == ("cancelled", "unknown")


def test_a_run_that_is_cancelled_by_the_answer_still_asks_what_happened(house, lost):
    run, step = lost
    first = open_of(step)
    house.respond(first, "cancel")
    assert fresh(run).status == "cancelling"
    asked = open_of(step)
    assert asked.pk != first.pk
    house.respond(asked, value={"outcome": "performed", "evidence": "x"})
    assert (fresh(run).status, fresh(step).status) == ("cancelled", "succeeded")


def test_every_recovery_is_in_the_journal(house, lost):
    run, step = lost
    house.recover(step, "not_performed")
    assert kinds(run)[-4:] == [
        "interrupt.resolved",
        "receipt.recorded",
        "step.retried",
        "run.resumed",
    ]
