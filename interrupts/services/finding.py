"""Finding out what became of a call whose outcome is unknown, with no transaction open meanwhile.

The tool is asked after waiting out the longest time the call could still land; what it says is
journaled, each time. A tool that can't be asked, but whose effect may be repeated under its key, is
sent the same call again, as an attempt of its own. Nothing is ever taken for failed by default.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from config import jsontext
from interrupts import catalogue, content, queue
from interrupts.effects import Call, Finding, Reconciled
from interrupts.effects import Outcome as Saw
from interrupts.models import (
    Attempt,
    Interrupt,
    InterruptStatus,
    Outcome,
    Reason,
    RunStatus,
    Source,
    Step,
    StepStatus,
)
from interrupts.services import attempts as facts
from interrupts.services import cancelling, damage, draining, starting
from interrupts.transitions import attempts, finding, holds
from interrupts.transitions.receipts import Seen
from interrupts.verification import live
from interrupts.work import Work, working
from tenants.clock import database_now
from tenants.journal import SYSTEM
from tenants.scope import current_tenant_id

LOST_HINT = timedelta(seconds=15)  # over the call's own time: then it is asked by another
HELD_UP = timedelta(seconds=5)  # a call that can't be sent again now is looked at again after this
_OUTCOMES: Final = {
    Finding.PERFORMED: Outcome.SUCCEEDED,
    Finding.FAILED: Outcome.FAILED,
    Finding.NOT_PERFORMED: Outcome.NOT_PERFORMED,
}


@dataclass(frozen=True, slots=True)
class Lost:
    """A call whose outcome is unknown, as it was sent."""

    run: UUID
    step: UUID
    fence: int
    version: UUID
    authority: int
    asked_at: datetime  # by the database's clock, before the tool is asked
    call: Call


def ask_due(work: Work) -> None:
    """Have every step asked about whose time has come; a hint that is lost is sent again."""
    due = Step.objects.filter(run=work.run, status=StepStatus.UNKNOWN, ask_at__lte=work.now)
    for step in due.order_by("position"):
        step.ask_at = work.now + timedelta(seconds=step.timeout_seconds) + LOST_HINT
        step.save(update_fields=["ask_at"])
        queue.find_out(step.pk)


def find_out(step_id: UUID, worker: str) -> None:
    """Ask about one step of unknown outcome, or send its call again, and record what came."""
    # Hints come twice and late: only what is still to be found out is asked about.
    wanted = Step.objects.filter(pk=step_id, status=StepStatus.UNKNOWN, ask_at__isnull=False)
    step = wanted.first()
    if step is None:
        return
    if finding.how(step) == "resend":
        with damage.shown(step.run_id):
            _send_again(step, worker)
        return
    lost = _lost(step)
    if lost is not None:
        _take(lost, _ask(lost))


def _lost(step: Step) -> Lost | None:
    attempt = Attempt.objects.filter(step=step, fence=step.fence).first()
    version = finding.version_of(step)
    if attempt is None:
        return None
    return Lost(
        run=attempt.run_id,
        step=step.pk,
        fence=step.fence,
        version=version.pk,
        authority=catalogue.authority_now(),
        asked_at=database_now(),
        call=call_of(step, attempt),
    )


def call_of(step: Step, attempt: Attempt) -> Call:
    return Call(
        tool=step.tool_name,
        tool_version=step.tool_number,
        arguments=content.get(step.arguments),
        run=str(step.run_id),
        step=str(step.pk),
        attempt=str(attempt.pk),
        idempotency_key=str(step.pk),
        timeout=step.timeout_seconds,
    )


def _ask(lost: Lost) -> Reconciled:
    return catalogue.effect(current_tenant_id(), lost.version, lost.authority).reconcile(lost.call)


def _take(lost: Lost, said: Reconciled) -> None:
    """Record what the tool said of the call it was asked about; of a newer one it says nothing."""
    with working(lost.run, SYSTEM) as work:
        step = Step.objects.get(pk=lost.step)
        if step.status != StepStatus.UNKNOWN or step.fence != lost.fence:
            work.state_unchanged()
            return
        outcome, lands_until = _OUTCOMES.get(said.outcome), finding.lands_until(step)
        early = lost.asked_at < lands_until
        step.asked += not early
        _note(work, step, said)
        if early and outcome in (None, Outcome.NOT_PERFORMED):
            # Asked by a person at once, or by a hint of an earlier try: it may land yet.
            _ask_later(work, step, said, at=lands_until)
            return
        sends = outcome == Outcome.NOT_PERFORMED and not finding.set_aside(step)
        if outcome is None or (outcome == Outcome.NOT_PERFORMED and not sends):
            _ask_later(work, step, said, aside=outcome is not None)
            return
        step.ask_at = None
        step.save(update_fields=["asked", "ask_at"])
        facts.found_out(
            work,
            step,
            outcome=outcome,
            source=Source.RECONCILIATION,
            by=SYSTEM,
            evidence="the tool was asked",
            result=said.result if outcome == Outcome.SUCCEEDED else None,
            external_id=said.external_id,
        )


def _note(work: Work, step: Step, said: Reconciled) -> None:
    work.note(
        "reconciliation.asked",
        step=step.pk,
        asked=step.asked,
        answer=said.outcome.value,
        error=said.error,
        external_id=said.external_id,
    )


def _ask_later(
    work: Work, step: Step, said: Reconciled, *, aside: bool = False, at: datetime | None = None
) -> None:
    if at is not None:
        finding.plan_at(work, step, at)
    elif aside or not finding.plan_next(work, step):
        step.ask_at = None
        work.note("reconciliation.exhausted", step=step.pk, asked=step.asked, set_aside=aside)
    step.save(update_fields=["asked", "ask_at"])
    interrupt = _recovery(work, step)
    if interrupt is not None:
        evidence = {
            **interrupt.evidence,
            "asked": step.asked,
            "last_answer": said.outcome.value,
            "last_error": said.error,
            "asked_at": work.now.isoformat(),
            "next_at": step.ask_at.isoformat() if step.ask_at else None,
            "set_aside": aside,
        }
        holds.ask_otherwise(work, interrupt, evidence=evidence)


def _recovery(work: Work, step: Step) -> Interrupt | None:
    found: Interrupt | None = (
        holds.open_of(work).filter(step=step.pk, reason=Reason.OUTCOME_UNKNOWN).first()
    )
    return found


# Sending again


def _send_again(step: Step, worker: str) -> None:
    """Send the same call under its key once more; it is an effect, and held up as one."""
    started: tuple[Attempt, bytes] | None = None
    with working(step.run_id, SYSTEM) as work:
        step = Step.objects.get(pk=step.pk)
        if step.status != StepStatus.UNKNOWN or step.ask_at is None:
            work.state_unchanged()
            return
        if not finding.key_is_honoured(work, step) or step.asked >= finding.bound(step):
            _leave_to_people(work, step)
            return
        if not _may_send_again(work, step, worker):
            step.ask_at = work.now + HELD_UP
            step.save(update_fields=["ask_at"])
            work.due(step.ask_at)
            work.state_unchanged()
            return
        live.check_one(work.run.pk, step)
        arguments = content.get(step.arguments)
        step.asked += 1
        step.ask_at = None
        step.save(update_fields=["asked", "ask_at"])
        work.note("reconciliation.asked", step=step.pk, asked=step.asked, answer="sent_again")
        started = starting.start(work, step, arguments, worker=worker, margin=2.0), arguments
    attempt, _ = started
    version = finding.version_of(step)
    effect = catalogue.effect(current_tenant_id(), version.pk, catalogue.authority_now())
    observed = cancelling.execute(effect, call_of(step, attempt))
    if not observed.sent:  # it proves nothing of the call that was lost
        observed = dataclasses.replace(observed, outcome=Saw.NOT_PERFORMED)
    seen = Seen.by_worker(observed, worker, version)
    facts.record_seen(attempt.run_id, step.pk, attempt.pk, seen, SYSTEM)


def _leave_to_people(work: Work, step: Step) -> None:
    step.ask_at = None
    step.save(update_fields=["ask_at"])
    work.note("reconciliation.exhausted", step=step.pk, asked=step.asked, set_aside=False)
    interrupt = _recovery(work, step)
    if interrupt is not None:
        evidence = {**interrupt.evidence, "asked": step.asked, "next_at": None}
        holds.ask_otherwise(work, interrupt, evidence=evidence)


def _may_send_again(work: Work, step: Step, worker: str) -> bool:
    """Only the unknown outcome holds the run, nothing is frozen, the authorization is current."""
    if work.run.verdicts_holding:
        return False
    if work.run.status != RunStatus.SUSPENDED or draining.may_not_begin(worker):
        return False
    others = Interrupt.objects.filter(run=work.run, status=InterruptStatus.OPEN).exclude(
        step=step.pk, reason=Reason.OUTCOME_UNKNOWN
    )
    if others.exists() or starting.frozen(work.run, step):
        return False
    return starting.stamp_is_current(work, step)


# Once more, before what a person called not performed is sent again


def ask_first(step_id: UUID) -> None:
    """Ask the tool once more about a call that is to be sent again; if it was performed, it was."""
    step = Step.objects.filter(pk=step_id, status=StepStatus.READY, ask_first=True).first()
    if step is None:
        return
    lost = _lost(step)
    said = _ask(lost) if lost is not None else None
    with working(step.run_id, SYSTEM) as work:
        step = Step.objects.get(pk=step_id)
        if step.status != StepStatus.READY or not step.ask_first:
            work.state_unchanged()
            return
        step.asked += 1
        step.ask_first = False
        step.save(update_fields=["asked", "ask_first"])
        if said is None:
            return
        _note(work, step, said)
        if said.outcome == Finding.PERFORMED:
            attempt = Attempt.objects.filter(step=step, fence=step.fence).first()
            result = None if said.result is None else jsontext.canonical(said.result)
            attempts.record(
                work,
                step,
                attempt,
                Seen(
                    outcome=Outcome.SUCCEEDED,
                    source=Source.RECONCILIATION,
                    by=str(SYSTEM),
                    result=result,
                    external_id=said.external_id,
                    evidence="the tool was asked",
                    sensitive=bool(finding.version_of(step).sensitive),
                ),
            )


def check_again(work: Work, step: Step) -> None:
    """Ask at once, with the bound starting anew; the interrupt stays open."""
    step.asked = 0
    step.ask_at = work.now
    step.save(update_fields=["asked", "ask_at"])
    ask_due(work)
    work.due(work.now + queue.GRACE)
