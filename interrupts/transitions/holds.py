"""Interrupts: opening one suspends its run and every descendant, the last answer resumes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from interrupts import imprints
from interrupts.authorizer import authorizer
from interrupts.models import (
    Attempt,
    InFlight,
    Interrupt,
    InterruptStatus,
    Reason,
    Resolution,
    ResponseKind,
    RunStatus,
)
from interrupts.transitions import checkpoints, verdicts, wording
from interrupts.transitions.moves import move_run
from interrupts.work import Work, descendants
from tenants.ids import uuid7
from tenants.imprints import of_value
from tenants.journal import SYSTEM, Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An interrupt to be opened: why, and the response that it requires."""

    reason: Reason
    kind: ResponseKind
    question: str
    who: tuple[str, ...] = ("operator", "admin")
    allowed: tuple[Resolution, ...] = (Resolution.RESUME, Resolution.CANCEL)
    schema: dict[str, Any] | None = None
    step: UUID | None = None
    gate: UUID | None = None
    in_flight: InFlight = InFlight.FINISH
    evidence: dict[str, Any] = field(default_factory=dict)
    note: str | None = None
    expires_at: datetime | None = None
    on_expiry: str | None = None
    id: UUID = field(default_factory=uuid7)


def open_holds(work: Work, *holds: Hold) -> list[Interrupt]:
    """Suspend the run (and its descendants) and open these interrupts on one checkpoint.

    In a cancelling run the interrupts are opened and the run stays cancelling.
    """
    suspending = work.run.status == RunStatus.RUNNING
    if suspending:
        _suspend(work, holds[0].reason)
    cancelling = any(hold.in_flight == InFlight.CANCEL for hold in holds)
    if cancelling:
        _request_cancel(work)
    checkpoint = checkpoints.take(work, pending_gates=_gates_with(work, holds))
    opened = [_open(work, hold, checkpoint.pk) for hold in holds]
    for interrupt in opened:
        authorizer().tell_of_interrupt(work, interrupt)
    if suspending or cancelling:
        for child in descendants(work, SYSTEM):
            if cancelling:
                _request_cancel(child)
            if suspending:
                _suspend_child(child)
    return opened


def _gates_with(work: Work, holds: tuple[Hold, ...]) -> list[UUID]:
    pending = checkpoints.gates_pending(work.run)
    return pending + [h.gate for h in holds if h.gate is not None and h.gate not in pending]


def _suspend(work: Work, reason: Reason) -> None:
    move_run(work.run, RunStatus.SUSPENDED)
    work.run.epoch += 1
    work.note("run.suspended", reason=reason, epoch=work.run.epoch)


def _request_cancel(work: Work) -> None:
    Attempt.objects.filter(run=work.run, settled_at=None, lapsed_at=None).update(
        cancel_requested=True
    )


def _open(work: Work, hold: Hold, checkpoint: UUID) -> Interrupt:
    interrupt = Interrupt.objects.create(
        id=hold.id,
        run=work.run,
        reason=hold.reason,
        step=hold.step,
        gate=hold.gate,
        checkpoint=checkpoint,
        in_flight=hold.in_flight,
        evidence=hold.evidence,
        note=hold.note,
        kind=hold.kind,
        question=hold.question,
        schema=hold.schema,
        who=list(hold.who),
        allowed=wording.consequences(
            hold.reason,
            hold.allowed,
            gated=hold.gate is not None,
            of_step=hold.step is not None,
        ),
        expires_at=hold.expires_at,
        on_expiry=hold.on_expiry,
        opened_by=work.actor.as_json,
        opened_at=work.now,
    )
    work.run.open_interrupts += 1
    work.due(hold.expires_at)
    work.note(
        "interrupt.opened",
        interrupt=interrupt.pk,
        reason=hold.reason,
        checkpoint=checkpoint,
        step=hold.step,
        gate=hold.gate,
        in_flight=hold.in_flight,
        imprint=work.imprint(interrupt, imprints.INTERRUPT),
        asked=work.imprint(interrupt, imprints.ASKED),
    )
    return interrupt


def ask_otherwise(work: Work, interrupt: Interrupt, **changes: Any) -> None:
    """Change what an open interrupt asks: whom, until when, and what is known by now."""
    for name, value in changes.items():
        setattr(interrupt, name, value)
    interrupt.save(update_fields=list(changes))
    work.note(
        "interrupt.changed",
        interrupt=interrupt.pk,
        asked=work.imprint(interrupt, imprints.ASKED),
    )


def _suspend_child(child: Work) -> None:
    if child.run.status != RunStatus.RUNNING:
        already = open_of(child).filter(reason=Reason.PARENT_INTERRUPTED).exists()
        if already or child.run.status != RunStatus.SUSPENDED:
            return
    else:
        _suspend(child, Reason.PARENT_INTERRUPTED)
    checkpoint = checkpoints.take(child)
    _open(
        child,
        Hold(
            reason=Reason.PARENT_INTERRUPTED,
            kind=ResponseKind.RELEASE,
            question=wording.PARENT_INTERRUPTED,
            allowed=(Resolution.CANCEL,),
            evidence={"parent": str(child.run.parent_id)},
        ),
        checkpoint.pk,
    )
    child.finish()


def open_of(work: Work) -> Any:
    """The run's open interrupts, as a queryset."""
    return Interrupt.objects.filter(run=work.run, status=InterruptStatus.OPEN)


def resolve(
    work: Work,
    interrupt: Interrupt,
    resolution: Resolution,
    *,
    by: Actor,
    response: dict[str, Any] | None = None,
) -> None:
    """Resolve an open interrupt; the last one of a suspended run resumes it."""
    interrupt.status = InterruptStatus.RESOLVED
    interrupt.resolution = resolution
    interrupt.response = response
    interrupt.resolved_by = by.as_json
    interrupt.resolved_at = work.now
    interrupt.save(update_fields=["status", "resolution", "response", "resolved_by", "resolved_at"])
    work.run.open_interrupts -= 1
    kind = "interrupt.expired" if resolution == Resolution.TIME_OUT else "interrupt.resolved"
    work.note(
        kind,
        interrupt=interrupt.pk,
        resolution=resolution,
        by=by.as_json,
        **_said(work, response),
    )
    if interrupt.reason == Reason.VERIFIER_REJECTED:
        verdicts.answered(work, interrupt, resolution)
    last = work.run.open_interrupts == 0 and work.run.status == RunStatus.SUSPENDED
    if last and not work.ending:
        resume(work)


def _said(work: Work, response: dict[str, Any] | None) -> dict[str, str]:
    """The imprint of a response; one that is a gate's decision is told of by the decision."""
    if response is None or "decision" in response:
        return {}
    return {"response": of_value(work.run.pk, response)}


def resume(work: Work) -> None:
    """Go on: the run, and each child that only its parent's interrupt held."""
    move_run(work.run, RunStatus.RUNNING)
    work.run.last_seen_at = work.now  # a silent owner's clock starts anew
    work.note("run.resumed", epoch=work.run.epoch)
    work.wake()
    for child in descendants(work, SYSTEM):
        if child.run.parent_id != work.run.pk:
            continue  # its own parent's going on resumes it
        held = open_of(child).filter(reason=Reason.PARENT_INTERRUPTED).first()
        if held is not None:
            resolve(child, held, Resolution.RESUME, by=SYSTEM)
            child.finish()
