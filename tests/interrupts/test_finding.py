"""Finding out: the tool is asked, each time journaled; nothing is repeated before."""

from datetime import timedelta

import pytest
from django.utils.dateparse import parse_datetime

from config.errors import InvalidBody
from interrupts.effects import Finding, Reconciled
from interrupts.models import Attempt, Receipt, Step
from interrupts.services import finding
from tests.interrupts.history import assert_history_holds
from tests.interrupts.house import earlier, fresh, kinds, open_of, refused


@pytest.fixture
def asks(monkeypatch):
    """Steps that a worker was told to ask about; the test asks itself."""
    told = []
    monkeypatch.setattr("interrupts.queue.find_out", told.append)
    return told


def find_out(step):
    """Let the step's time to be asked about come, and ask."""
    over = "2020-01-01T00:00:00Z"
    Step.objects.filter(pk=step.pk, ask_at__isnull=False).update(ask_at=over, unknown_at=over)
    finding.find_out(step.pk, "w")


def says(house, *answers):
    """Have the tool `t` say these one after the other, and the last for good."""
    said, asked = list(answers), []

    def reconcile(arguments, call):
        asked.append(call.idempotency_key)
        return said.pop(0) if len(said) > 1 else said[0]

    house.finds["t"] = reconcile
    return asked


PERFORMED = Reconciled(Finding.PERFORMED, result={"paid": True}, external_id="tx-9")
NOT_PERFORMED = Reconciled(Finding.NOT_PERFORMED)
FAILED = Reconciled(Finding.FAILED)
PENDING = Reconciled(Finding.PENDING)
CANNOT_TELL = Reconciled(Finding.CANNOT_TELL, error="503")


@pytest.fixture
def tool(house):
    house.tool(
        "t",
        effect="reversible",
        reconcile={"settle_after": 30, "attempts": 2, "backoff": 4},
        key_lifetime=3600,
    )


@pytest.mark.parametrize(
    ("answer", "status", "outcome"),
    [(PERFORMED, "succeeded", "succeeded"), (FAILED, "failed", "failed")],
)
def test_what_the_tool_says_settles_the_step_and_the_run_goes_on(
    house, tool, asks, answer, status, outcome
):
    says(house, answer)
    run, step = house.lost(n=1)
    find_out(step)
    step, run = fresh(step), fresh(run)
    assert (step.status, step.outcome, run.status) == (status, outcome, "running")
    assert Receipt.objects.get(step=step, source="reconciliation").outcome == outcome
    assert "reconciliation.asked" in kinds(run)
    assert house.ran == [1]
    assert_history_holds(run)


def test_nobody_asks_before_the_call_can_have_landed(house, tool, asks):
    says(house, PERFORMED)
    run, step = house.lost()
    assert step.ask_at == step.unknown_at + timedelta(seconds=30)
    house.look(run)
    assert asks == []
    assert fresh(run).due_at <= step.ask_at


def test_a_due_question_is_asked_by_a_worker_and_again_where_the_hint_is_lost(house, tool, asks):
    says(house, PERFORMED)
    run, step = house.lost()
    for times in (1, 2):
        Step.objects.filter(pk=step.pk).update(ask_at="2020-01-01T00:00:00Z")
        house.look(run)
        assert asks == [step.pk] * times
        assert fresh(run).due_at is not None


def test_not_performed_is_sent_again_under_the_same_key(house, tool, asks):
    says(house, NOT_PERFORMED)
    run, step = house.lost(n=1)
    find_out(step)
    assert fresh(step).status == "ready"
    Step.objects.filter(pk=step.pk).update(due_at=None)
    house.work(run)
    step = fresh(step)
    assert (step.status, step.attempts, step.fence) == ("succeeded", 2, 2)
    assert [key for _, _, key in house.calls] == [str(step.pk)] * 2


def test_what_it_cannot_tell_is_asked_again_later_up_to_the_bound(house, tool, asks):
    asked = says(house, PENDING, CANNOT_TELL)
    run, step = house.lost(n=1)
    find_out(step)
    first = fresh(step)
    assert (first.status, first.asked, first.ask_at is not None) == ("unknown", 1, True)
    find_out(step)
    second = fresh(step)
    assert (second.status, second.asked, second.ask_at) == ("unknown", 2, None)
    evidence = open_of(step).evidence
    assert (evidence["asked"], evidence["last_answer"], evidence["next_at"]) == (
        2,
        "cannot_tell",
        None,
    )
    assert kinds(run).count("reconciliation.asked") == 2
    assert "reconciliation.exhausted" in kinds(run)
    assert len(asked) == 2
    assert house.ran == [1]


def test_check_again_asks_at_once_and_leaves_the_question_open(house, tool, asks):
    says(house, CANNOT_TELL)
    run, step = house.lost()
    find_out(step)
    find_out(step)
    interrupt = open_of(step)
    house.respond(interrupt, value={"outcome": "check_again"})
    assert asks == [step.pk]
    assert open_of(step).pk == interrupt.pk
    assert fresh(step).asked == 0
    assert fresh(run).status == "suspended"


def test_an_answer_about_an_older_try_says_nothing_of_a_newer_one(house, tool, asks):
    def reconcile(arguments, call):
        # Meanwhile a person says that it was not performed, and it is sent again.
        house.recover(Step.objects.get(pk=call.step), "skip")
        return PERFORMED

    house.finds["t"] = reconcile
    _run, step = house.lost(n=1)
    find_out(step)
    assert fresh(step).status == "failed"
    assert not Receipt.objects.filter(step=step, source="reconciliation").exists()


def test_a_persons_hasty_word_does_not_beat_a_call_that_landed(house, tool, asks):
    says(house, PERFORMED)
    run, step = house.lost(n=1)
    house.recover(step, "not_performed")
    assert fresh(step).ask_first is True
    Step.objects.filter(pk=step.pk).update(due_at=None)
    house.work(run)
    assert fresh(step).status == "succeeded"
    assert house.ran == [1]
    assert Receipt.objects.filter(step=step, source="reconciliation").count() == 1


def test_sending_once_more_is_not_offered_once_the_key_is_forgotten(house, asks):
    house.tool("t", effect="irreversible", reconcile={"settle_after": 1}, key_lifetime=60)
    says(house, CANNOT_TELL)
    _run, step = house.lost()
    earlier(Attempt.objects.get(step=step), "started_at", 61)
    interrupt = open_of(step)
    with refused(InvalidBody):
        house.respond(interrupt, value={"outcome": "not_performed", "evidence": "x"})


def test_evidence_is_needed_for_all_but_checking_again(house, tool, asks):
    says(house, CANNOT_TELL)
    _run, step = house.lost()
    with refused(InvalidBody):
        house.respond(open_of(step), value={"outcome": "performed"})


# Where nobody can be asked


def test_a_repeatable_effect_is_asked_by_its_key(house, asks):
    house.tool("t", effect="idempotent")
    run, step = house.lost(n=1)
    assert step.ask_at is not None
    find_out(step)
    step, run = fresh(step), fresh(run)
    assert (step.status, step.attempts, step.fence, run.status) == ("succeeded", 2, 2, "running")
    assert [key for _, _, key in house.calls] == [str(step.pk)] * 2
    assert_history_holds(run)


@pytest.mark.parametrize("held_up", ["stop", "freeze", "authority"])
def test_it_is_not_sent_again_while_anything_else_holds_it(house, asks, held_up):
    house.tool("t", effect="idempotent")
    run, step = house.lost(n=1)
    if held_up == "stop":
        house.stop(run)
    elif held_up == "freeze":
        house.freeze()
    else:
        house.withdraw_authority()
    find_out(step)
    assert fresh(step).status == "unknown"
    assert fresh(step).ask_at is not None
    assert house.ran == [1]


def test_an_effect_that_must_not_be_repeated_goes_straight_to_a_person(house, asks):
    house.tool("t", effect="irreversible")
    run, step = house.lost(n=1)
    assert (step.ask_at, open_of(step).evidence["how"]) == (None, None)
    finding.find_out(step.pk, "w")
    house.look(run)
    assert asks == []
    offered = open_of(step).schema["properties"]["outcome"]["enum"]
    assert offered == ["performed", "skip", "unresolvable"]
    assert house.ran == [1]


def test_a_step_that_killed_its_worker_again_and_again_is_set_aside(house, asks):
    house.tool("t", effect="reversible", reconcile={"settle_after": 1})
    says(house, NOT_PERFORMED)
    run = house.run()
    house.break_off("t")
    (step,) = house.propose(run, ("t", {"n": 1}))
    for _ in range(3):
        Step.objects.filter(pk=step.pk).update(due_at=None)
        house.work(fresh(run))
        find_out(step)
    step = fresh(step)
    assert (step.status, step.ask_at) == ("unknown", None)
    assert open_of(step).evidence["set_aside"] is True
    assert house.ran == [1, 1, 1]
    assert parse_datetime(open_of(step).evidence["asked_at"]) is not None


def test_what_was_sent_again_without_a_word_is_set_aside_and_its_question_says_so(house, asks):
    house.tool("t", effect="idempotent")
    run = house.run()
    house.break_off("t")
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.work(run)
    question = open_of(step)
    assert question.evidence["next_at"] is not None
    for _ in range(4):
        find_out(step)
    step, evidence = fresh(step), open_of(step).evidence
    assert (step.status, step.attempts, step.ask_at) == ("unknown", 3, None)
    assert (evidence["attempts"], evidence["next_at"], evidence["set_aside"]) == (3, None, True)
    assert open_of(step).pk == question.pk
    assert house.ran == [1, 1, 1]


def test_what_may_not_be_sent_again_any_more_says_that_a_person_settles_it(house, asks):
    house.tool("t", effect="idempotent", key_lifetime=60)
    _run, step = house.lost(n=1)
    earlier(Attempt.objects.get(step=step), "started_at", 61)
    find_out(step)
    assert (fresh(step).status, fresh(step).ask_at) == ("unknown", None)
    assert open_of(step).evidence["next_at"] is None
    assert house.ran == [1]


@pytest.mark.parametrize("early", ["a hint that comes twice", "a person who asks at once"])
def test_that_it_was_not_performed_proves_nothing_while_it_may_still_land(house, tool, asks, early):
    asked = says(house, NOT_PERFORMED, PENDING, NOT_PERFORMED)
    run, step = house.lost(n=1)
    if early == "a person who asks at once":
        house.respond(open_of(step), value={"outcome": "check_again"})
    finding.find_out(step.pk, "w")
    seen = fresh(step)
    assert (seen.status, seen.ask_at) == ("unknown", step.unknown_at + timedelta(seconds=30))
    assert fresh(run).due_at <= seen.ask_at
    assert open_of(step).evidence["last_answer"] == "not_performed"
    assert house.ran == [1]
    earlier(step, "unknown_at", 31)
    finding.find_out(step.pk, "w")
    finding.find_out(step.pk, "w")
    assert (fresh(step).status, len(asked)) == ("ready", 3)
    assert_history_holds(run)


def test_a_late_hint_asks_nobody_about_what_only_a_person_settles(house, tool, asks):
    asked = says(house, CANNOT_TELL)
    _run, step = house.lost(n=1)
    find_out(step)
    find_out(step)
    assert fresh(step).ask_at is None
    finding.find_out(step.pk, "w")
    assert (len(asked), fresh(step).status) == (2, "unknown")
