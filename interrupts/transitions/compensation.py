"""Compensations: wanted newest first, each begun once, sent under its own key until it holds."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q

from interrupts import catalogue, queue
from interrupts.models import (
    Attempt,
    Effect,
    Outcome,
    Reason,
    Receipt,
    Resolution,
    ResponseKind,
    RunStatus,
    Step,
    StepStatus,
)
from interrupts.transitions import holds, verdicts, wording
from interrupts.transitions.finding import version_of
from interrupts.transitions.moves import move_step
from interrupts.transitions.receipts import Seen, backoff, write_receipt
from interrupts.work import Work

TRY_AGAIN, LEAVE = "try_again", "leave"
REFUSED_SCHEMA = {
    "type": "object",
    "required": ["action"],
    "additionalProperties": False,
    "properties": {"action": {"enum": [TRY_AGAIN, LEAVE]}},
}
# In the reverse of the order in which they were done, which is not always that of their positions.
NEWEST_FIRST = ("-settled_at", "-position")
FIELDS = ["status", "undo_wanted", "undo_tries", "due_at", "error"]


def can_be_undone(step: Step) -> bool:
    """Say whether the step is an effect that happened and whose tool can undo it.

    Reads and persons' answers did nothing.
    """
    if step.effect == Effect.READ or not step.attempts or step.status != StepStatus.SUCCEEDED:
        return False
    return catalogue.offers(version_of(step), step.tool_name).compensate


def want(work: Work, step: Step) -> None:
    """Have the step undone, once; what was wanted later was done earlier, and is undone after."""
    if step.undo_wanted or not can_be_undone(step):
        return
    step.undo_wanted = True
    step.save(update_fields=["undo_wanted"])
    work.note("compensation.wanted", step=step.pk, position=step.position)
    work.due(work.now)


def want_all(work: Work) -> None:
    done = Step.objects.filter(run=work.run, status=StepStatus.SUCCEEDED)
    for step in done.order_by(*NEWEST_FIRST):
        want(work, step)


def pending(work: Work) -> bool:
    """Say whether a compensation is wanted or begun and not done."""
    begun, wanted = Q(status=StepStatus.COMPENSATING), Q(undo_wanted=True)
    rows = Step.objects.filter(begun | wanted & Q(status=StepStatus.SUCCEEDED), run=work.run)
    return bool(rows.exists())


def next_one(work: Work) -> Step | None:
    """The one that is begun, else the newest that is wanted: one at a time, newest first."""
    rows = Step.objects.filter(run=work.run)
    begun = rows.filter(status=StepStatus.COMPENSATING).order_by(*NEWEST_FIRST).first()
    wanted = rows.filter(status=StepStatus.SUCCEEDED, undo_wanted=True)
    return begun or wanted.order_by(*NEWEST_FIRST).first()


def record(work: Work, step: Step, attempt: Attempt, seen: Seen) -> Receipt:
    """Record what came of a try: done, refused (a person is asked), or to be sent again."""
    receipt = write_receipt(work, step, attempt, seen, compensation=True)
    attempt.outcome, attempt.settled_at = seen.outcome, work.now
    attempt.save(update_fields=["outcome", "settled_at"])
    work.note("compensation.recorded", step=step.pk, attempt=attempt.pk, outcome=seen.outcome.value)
    superseded = attempt.fence != step.fence and seen.outcome != Outcome.SUCCEEDED
    if step.status != StepStatus.COMPENSATING or superseded:
        return receipt  # a fact; what a newer try is at stays as it is
    if seen.outcome == Outcome.SUCCEEDED:
        move_step(step, StepStatus.COMPENSATED)
        step.undo_wanted, step.due_at, step.error = False, None, None
        step.save(update_fields=FIELDS)
        work.note("step.settled", step=step.pk, position=step.position, status=step.status)
        verdicts.undone(work, step)
        work.due(work.now)
        queue.learn_soon()
    elif seen.outcome == Outcome.FAILED:
        _refused(work, step, seen)
    else:
        again(work, step, seen)
    return receipt


def again(work: Work, step: Step, seen: Seen) -> None:
    step.due_at = work.now + timedelta(seconds=backoff(step.undo_tries, seen.retry_after))
    step.error = seen.error
    step.save(update_fields=FIELDS)
    work.due(step.due_at)


def _refused(work: Work, step: Step, seen: Seen) -> None:
    """A clear refusal: a person says whether it is tried again or left as it is."""
    step.due_at, step.error = None, seen.error
    if work.run.ended:
        # An ended run holds nothing: it stays as it is until it is asked for again.
        leave(work, step)
        return
    step.save(update_fields=FIELDS)
    holds.open_holds(
        work,
        holds.Hold(
            reason=Reason.EFFECT_FAILED,
            kind=ResponseKind.RECOVERY,
            question=wording.COMPENSATION_REFUSED,
            allowed=(Resolution.COMPENSATE,),
            schema=REFUSED_SCHEMA,
            step=step.pk,
            evidence={"error": seen.error, "tool": step.tool_name, "compensation": True},
        ),
    )


def try_again(work: Work, step: Step) -> None:
    step.due_at = work.now
    step.save(update_fields=FIELDS)
    work.due(work.now)


def leave(work: Work, step: Step) -> None:
    """Leave the effect as it is: done, and not undone."""
    move_step(step, StepStatus.SUCCEEDED)
    step.undo_wanted, step.due_at = False, None
    step.save(update_fields=FIELDS)
    work.note("compensation.left", step=step.pk, position=step.position, error=step.error)
    verdicts.undone(work, step)
    work.due(work.now)


def of_late_success(work: Work, step: Step) -> None:
    """What turns out to be done in a run that was cancelled with compensation is undone too."""
    cancelled = work.run.status in (RunStatus.CANCELLING, RunStatus.CANCELLED)
    if cancelled and work.run.compensating:
        want(work, step)
