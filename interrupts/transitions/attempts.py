"""Attempts and receipts: a receipt is a fact, taken under any epoch and from any attempt."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

from interrupts import catalogue
from interrupts.authorizer import authorizer
from interrupts.models import (
    Attempt,
    Effect,
    Executor,
    Outcome,
    Reason,
    Receipt,
    Resolution,
    ResponseKind,
    RunStatus,
    Source,
    Step,
    StepStatus,
)
from interrupts.transitions import (
    compensation,
    finding,
    holds,
    reservations,
    runs,
    steps,
    verdicts,
    wording,
)
from interrupts.transitions.moves import move_step
from interrupts.transitions.receipts import Seen, backoff, write_receipt
from interrupts.work import Work
from tenants.journal import SYSTEM

READ_TRIES = 5
# That it was performed is known of these already, whatever has been undone since.
PERFORMED = (StepStatus.SUCCEEDED, StepStatus.COMPENSATING, StepStatus.COMPENSATED)


def record(work: Work, step: Step, attempt: Attempt | None, seen: Seen) -> Receipt:
    """Write the receipt, and settle the attempt, the step and the run by what it says.

    ``attempt`` is None for a person's or a reconciliation's finding about an unknown step.
    """
    receipt = write_receipt(work, step, attempt, seen)
    newest = attempt is None or attempt.fence == step.fence
    if attempt is not None and attempt.settled_at is None and seen.outcome != Outcome.UNKNOWN:
        attempt.outcome, attempt.settled_at = seen.outcome, work.now
        attempt.save(update_fields=["outcome", "settled_at"])
    reservations.spend(work, step, seen.cost)
    if newest and step.status in (StepStatus.EXECUTING, StepStatus.UNKNOWN):
        _settle(work, step, attempt, seen, receipt)
    elif seen.outcome == Outcome.SUCCEEDED and step.status not in PERFORMED:
        _late_success(work, step, seen, receipt)
    else:
        work.note("receipt.late", receipt=receipt.pk, step=step.pk)
        if seen.outcome == Outcome.SUCCEEDED:
            _tell_if_doubled(work, step, receipt)
    runs.check_budget(work)
    return receipt


def _tell_if_doubled(work: Work, step: Step, receipt: Receipt) -> None:
    """Say of a step that two of its attempts succeeded, unless it was one effect all the same.

    One effect is what the far end names alike, and what may be repeated under its key; two names
    are two effects, whatever was declared.
    """
    if receipt.evidence is not None:
        return
    first = (
        Receipt.objects.filter(
            step=step, compensation=False, outcome=Outcome.SUCCEEDED, evidence=None
        )
        .exclude(attempt=receipt.attempt)
        .order_by("id")
        .first()
    )
    if first is None:
        return
    names = [first.external_id, receipt.external_id]
    harmless = step.effect in (Effect.READ, Effect.IDEMPOTENT)
    if names[0] != names[1] if all(names) else not harmless:
        work.note("effect.doubled", step=step.pk, external_ids=names)


def _settle(work: Work, step: Step, attempt: Attempt | None, seen: Seen, receipt: Receipt) -> None:
    was_unknown = step.status == StepStatus.UNKNOWN
    if seen.outcome == Outcome.UNKNOWN:
        if not was_unknown:
            become_unknown(work, step, attempt, seen.error)
        return
    if seen.outcome == Outcome.NOT_PERFORMED and _is_repeated(work, step):
        _unknown_as_before(work, step)
        return
    if seen.outcome == Outcome.NOT_PERFORMED and (_starts_nothing(work) or not seen.for_good):
        _not_performed(work, step, seen)
    else:
        _conclude(work, step, seen, receipt)
    if was_unknown or _is_being_found_out(work, step):
        _found_out(work, step)
    if seen.outcome == Outcome.FAILED and seen.on_failure == "interrupt":
        _ask_about_failure(work, step)
    runs.finish_cancel(work)


def _conclude(work: Work, step: Step, seen: Seen, receipt: Receipt) -> None:
    """Settle the step as succeeded or failed; what is skipped failed without being performed."""
    succeeded = seen.outcome == Outcome.SUCCEEDED
    move_step(step, StepStatus.SUCCEEDED if succeeded else StepStatus.FAILED)
    step.outcome = seen.outcome
    step.ask_at, step.ask_first = None, False
    step.result = receipt.result
    step.external_id = seen.external_id
    step.error = seen.error
    step.unknown_at = None
    step.settled_at = work.now
    _save(step)
    work.note("step.settled", **steps.told(step))
    reservations.give_back(work, step)
    if succeeded:
        verdicts.expect(work, step, receipt)
    steps.settled(work)
    if not succeeded:
        authorizer().tell_of_outcome(work, step)
    if succeeded and work.run.compensating:
        compensation.of_late_success(work, step)


def _not_performed(work: Work, step: Step, seen: Seen) -> None:
    """Between two tries nothing is in flight: the step is ready again, or cancelled."""
    if _starts_nothing(work):
        move_step(step, StepStatus.CANCELLED)
        step.outcome, step.settled_at = Outcome.NOT_PERFORMED, work.now
        _save(step)
        work.note("step.settled", **steps.told(step))
        reservations.give_back(work, step)
        steps.settled(work)
        return
    move_step(step, StepStatus.READY)
    step.outcome, step.error, step.unknown_at = Outcome.NOT_PERFORMED, seen.error, None
    step.ask_at = None
    if step.executor != Executor.AGENT:
        again = work.now + timedelta(seconds=backoff(step.attempts, seen.retry_after))
        # A call that was lost and may still land is waited out, however short the backoff.
        step.due_at = max(step.due_at or again, again)
        work.due(step.due_at)
    _save(step)
    work.note("step.retried", step=step.pk, attempts=step.attempts, due_at=step.due_at)
    if step.executor == Executor.AGENT and work.run.status == RunStatus.RUNNING:
        work.wake()


def _is_repeated(work: Work, step: Step) -> bool:
    """Say whether this is a call sent again to find out what became of the one that was lost."""
    return step.status == StepStatus.EXECUTING and _is_being_found_out(work, step)


def _unknown_as_before(work: Work, step: Step) -> None:
    """The same call, sent again to find out, did not begin: of the lost one it proves nothing."""
    move_step(step, StepStatus.UNKNOWN)
    step.outcome, step.unknown_at = Outcome.UNKNOWN, step.unknown_at or work.now
    if not finding.plan_next(work, step):
        work.note("reconciliation.exhausted", step=step.pk, asked=step.asked, set_aside=False)
    _save(step)
    work.note("step.unknown", step=step.pk, position=step.position)


def _starts_nothing(work: Work) -> bool:
    return work.run.ended or work.run.status == RunStatus.CANCELLING


def become_unknown(work: Work, step: Step, attempt: Attempt | None, why: str | None) -> None:
    """Say that nobody knows the outcome: the run is suspended until it is found out.

    A read has no effect: it is tried again, READ_TRIES times in all, then it failed.
    """
    if step.effect == Effect.READ:
        _read_again(work, step, attempt, why)
        return
    move_step(step, StepStatus.UNKNOWN)
    step.outcome, step.error, step.unknown_at = Outcome.UNKNOWN, why, work.now
    if attempt is not None and attempt.lapsed_at is None:
        attempt.outcome, attempt.lapsed_at = Outcome.UNKNOWN, work.now
        attempt.save(update_fields=["outcome", "lapsed_at"])
    finding.plan(work, step)
    _save(step)
    work.note("step.unknown", step=step.pk, position=step.position)
    if not work.run.ended:
        # One that ended with this in flight starts nothing that could be held.
        _ask_about_outcome(work, step, recovery_hold(work, step, why))


def _ask_about_outcome(work: Work, step: Step, hold: holds.Hold) -> None:
    """Open the step's recovery; one that is open, since it was sent again, says how it is now."""
    known = holds.open_of(work).filter(step=step.pk, reason=Reason.OUTCOME_UNKNOWN).first()
    if known is None:
        holds.open_holds(work, hold)
    else:
        holds.ask_otherwise(work, known, evidence={**known.evidence, **hold.evidence})
    authorizer().tell_of_outcome(work, step)


def _read_again(work: Work, step: Step, attempt: Attempt | None, why: str | None) -> None:
    if attempt is not None and attempt.lapsed_at is None and attempt.settled_at is None:
        attempt.outcome, attempt.lapsed_at = Outcome.UNKNOWN, work.now
        attempt.save(update_fields=["outcome", "lapsed_at"])
    if step.attempts < READ_TRIES or _starts_nothing(work):
        _not_performed(
            work, step, Seen(outcome=Outcome.UNKNOWN, source=Source.EXECUTOR, by="", error=why)
        )
        return
    move_step(step, StepStatus.FAILED)
    step.outcome, step.error, step.settled_at = Outcome.FAILED, why, work.now
    _save(step)
    work.note("step.settled", **steps.told(step))
    reservations.give_back(work, step)
    steps.settled(work)
    if catalogue.version(step.tenant_id, step.tool_version_id).on_failure == "interrupt":
        _ask_about_failure(work, step)


def _is_being_found_out(work: Work, step: Step) -> bool:
    return bool(holds.open_of(work).filter(step=step.pk, reason=Reason.OUTCOME_UNKNOWN).exists())


def recovery_hold(work: Work, step: Step, why: str | None) -> holds.Hold:
    cancelling = work.run.status == RunStatus.CANCELLING
    return holds.Hold(
        reason=Reason.OUTCOME_UNKNOWN,
        kind=ResponseKind.RECOVERY,
        question=wording.OUTCOME_UNKNOWN,
        allowed=(Resolution.RESUME,) if cancelling else (Resolution.RESUME, Resolution.CANCEL),
        schema=finding.recovery_schema(finding.on_offer(work, step)),
        step=step.pk,
        evidence={
            "seen": why,
            "attempts": step.attempts,
            "tool": step.tool_name,
            "how": finding.how(step),
            "next_at": step.ask_at.isoformat() if step.ask_at else None,
            "set_aside": finding.set_aside(step),
        },
    )


def _found_out(work: Work, step: Step) -> None:
    interrupt = holds.open_of(work).filter(step=step.pk, reason=Reason.OUTCOME_UNKNOWN).first()
    if interrupt is not None:
        holds.resolve(work, interrupt, Resolution.RESUME, by=SYSTEM)
    authorizer().tell_of_outcome(work, step)
    steps.release_twins(work, step)


def _ask_about_failure(work: Work, step: Step) -> None:
    if work.run.ended:
        return
    holds.open_holds(
        work,
        holds.Hold(
            reason=Reason.EFFECT_FAILED,
            kind=ResponseKind.RELEASE,
            question=wording.EFFECT_FAILED,
            step=step.pk,
            evidence={"error": step.error},
        ),
    )


def _late_success(work: Work, step: Step, seen: Seen, receipt: Receipt) -> None:
    """The step was taken as not performed, or is tried anew: it was performed after all."""
    Attempt.objects.filter(step=step, settled_at=None, lapsed_at=None).update(lapsed_at=work.now)
    if step.status == StepStatus.WAITING and step.gate is not None:
        authorizer().close_gate(work, step.gate, "withdrawn", "it was performed already")
    was_unknown = step.status == StepStatus.UNKNOWN
    work.note("receipt.late", receipt=receipt.pk, step=step.pk, status=step.status)
    _conclude(work, step, seen, receipt)
    for interrupt in holds.open_of(work).filter(step=step.pk):
        holds.resolve(work, interrupt, Resolution.RESUME, by=SYSTEM)
    if was_unknown:
        authorizer().tell_of_outcome(work, step)
        steps.release_twins(work, step)
    runs.finish_cancel(work)


def lapse(work: Work, attempt: Attempt) -> None:
    """Say of an attempt whose lease is over without a receipt that its outcome is unknown."""
    step = Step.objects.get(pk=attempt.step_id)
    work.note("attempt.lapsed", attempt=attempt.pk, step=step.pk, fence=attempt.fence)
    attempt.lapsed_at, attempt.outcome = work.now, Outcome.UNKNOWN
    attempt.save(update_fields=["lapsed_at", "outcome"])
    if attempt.compensation:  # sent again under its key until it holds
        step.due_at = work.now
        step.save(update_fields=["due_at"])
        return
    if step.status == StepStatus.EXECUTING and step.fence == attempt.fence:
        become_unknown(work, step, None, "its lease lapsed without a receipt")


def _save(step: Step) -> None:
    step.save(
        update_fields=[
            "status",
            "outcome",
            "result",
            "external_id",
            "error",
            "reason",
            "unknown_at",
            "asked",
            "ask_at",
            "ask_first",
            "due_at",
            "settled_at",
        ]
    )


def record_read(work: Work, step: Step, seen: Seen, worker: str) -> None:
    """Record a try at a read, attempt and receipt together: it has no effect to be unsure of.

    What is unknown of it is tried again with backoff, READ_TRIES times in all, then it failed.
    """
    step.fence += 1
    step.attempts += 1
    attempt = Attempt.objects.create(
        step=step,
        run=work.run,
        fence=step.fence,
        epoch=work.run.epoch,
        worker=worker,
        started_at=work.now,
        settled_at=work.now,
        outcome=seen.outcome,
    )
    receipt = write_receipt(work, step, attempt, seen)
    reservations.spend(work, step, seen.cost)
    again = seen.outcome in (Outcome.UNKNOWN, Outcome.NOT_PERFORMED) and (
        step.attempts < READ_TRIES or seen.outcome == Outcome.NOT_PERFORMED
    )
    if again:
        step.due_at = work.now + timedelta(seconds=backoff(step.attempts, seen.retry_after))
        step.outcome, step.error = Outcome.NOT_PERFORMED, seen.error
        work.due(step.due_at)
        step.save(update_fields=["fence", "attempts", "due_at", "outcome", "error"])
        work.note("step.retried", step=step.pk, attempts=step.attempts, due_at=step.due_at)
        return
    step.save(update_fields=["fence", "attempts"])
    succeeded = seen.outcome == Outcome.SUCCEEDED
    final = seen if succeeded else dataclasses.replace(seen, outcome=Outcome.FAILED)
    _conclude(work, step, final, receipt)
    if not succeeded and seen.on_failure == "interrupt":
        _ask_about_failure(work, step)
    runs.check_budget(work)
