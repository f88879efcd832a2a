"""Undoing effects, with no transaction open during the call; one at a time, the newest first."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import UUID

from config.errors import DomainError
from interrupts import catalogue, content, queue
from interrupts.effects import Observed
from interrupts.errors import MayNot
from interrupts.models import Attempt, Outcome, Source, Step, StepStatus
from interrupts.services import damage, draining, starting
from interrupts.services.acting import OPERATORS, as_person, role_now
from interrupts.services.finding import call_of
from interrupts.transitions import compensation, runs
from interrupts.transitions.finding import version_of
from interrupts.transitions.moves import move_step
from interrupts.transitions.receipts import Seen
from interrupts.verification import live
from interrupts.work import Work, working
from tenants.journal import SYSTEM
from tenants.principal import Principal
from tenants.scope import current_tenant_id

MARGIN_SECONDS = 2.0
LOST_HINT = timedelta(seconds=15)
HELD_UP = timedelta(seconds=5)


class NotCompensable(DomainError):
    """The step is no effect that can be undone."""

    code = "not-compensable"


def compensate_step(principal: Principal, step_id: UUID, *, note: str | None = None) -> Step:
    """Have one effect undone, also of an ended run; wanted already, it changes nothing.

    Raises MayNot, NotCompensable.
    """
    run_id = Step.objects.values_list("run_id", flat=True).get(pk=step_id)
    with as_person(principal, run_id) as work:
        if role_now(principal) not in OPERATORS:
            raise MayNot("Operators and admins have effects undone.")
        step = Step.objects.get(pk=step_id)
        done = step.status in (StepStatus.COMPENSATING, StepStatus.COMPENSATED)
        if done or step.undo_wanted:
            work.state_unchanged()
            return step
        if not compensation.can_be_undone(step):
            raise NotCompensable(f"The step is {step.status}, or its tool can't undo it.")
        work.note("compensation.requested", step=step.pk, note=note)
        compensation.want(work, step)
    return step


def send_due(work: Work) -> None:
    """Have the next compensation sent whose time has come; a lost hint is sent again."""
    step = compensation.next_one(work)
    if step is None:
        return
    if step.status == StepStatus.COMPENSATING and (
        step.due_at is None or Attempt.objects.filter(step=step, settled_at=None, lapsed_at=None)
    ):
        return  # it is in flight, or a person is asked about it
    if step.due_at is not None and step.due_at > work.now:
        work.due(step.due_at)
        return
    step.due_at = work.now + timedelta(seconds=step.timeout_seconds) + LOST_HINT
    step.save(update_fields=["due_at"])
    work.due(step.due_at)
    queue.compensate(step.pk)


def watch(work: Work) -> None:
    """Have the run looked at, ended or not, until what is to be undone is."""
    step = compensation.next_one(work)
    if step is not None and (step.status == StepStatus.SUCCEEDED or step.due_at is not None):
        work.due(step.due_at or work.now + HELD_UP)


def compensate(step_id: UUID, worker: str) -> None:
    """Intend one compensation, send it, and record what came of it."""
    run_id = Step.objects.values_list("run_id", flat=True).filter(pk=step_id).first()
    if run_id is None:
        return
    begun = None
    with damage.shown(run_id), working(run_id, SYSTEM) as work:
        begun = _begin(work, step_id, worker)
        if begun is None:
            work.state_unchanged()
    if begun is None:
        return
    step, attempt, first = begun
    version = version_of(step)
    result = json.loads(content.get(step.result)) if step.result is not None else None
    effect = catalogue.effect(current_tenant_id(), version.pk, catalogue.authority_now())
    observed = effect.compensate(call_of(step, first), result, step.external_id)
    with working(run_id, SYSTEM) as work:
        step = Step.objects.get(pk=step_id)
        attempt = Attempt.objects.get(pk=attempt.pk)
        if attempt.settled_at is not None:
            work.state_unchanged()
            return
        compensation.record(work, step, attempt, _seen(observed, worker))
        runs.finish_cancel(work)
        send_due(work)


def _begin(work: Work, step_id: UUID, worker: str) -> tuple[Step, Attempt, Attempt] | None:
    """The intent: the attempt and its lease, committed before the call."""
    step = compensation.next_one(work)
    if step is None or step.pk != step_id:
        return None
    if Attempt.objects.filter(step=step, settled_at=None, lapsed_at=None).exists():
        return None
    if starting.frozen(work.run, step) or draining.may_not_begin(worker):
        step.due_at = work.now + HELD_UP
        step.save(update_fields=["due_at"])
        work.due(step.due_at)
        return None
    live.check_undoing(work.run.pk, step)
    if step.status == StepStatus.SUCCEEDED:
        move_step(step, StepStatus.COMPENSATING)
    first = Attempt.objects.filter(step=step, compensation=False).order_by("-fence").first()
    if first is None:
        return None
    step.fence += 1
    step.undo_tries += 1
    step.due_at = work.now + timedelta(seconds=step.timeout_seconds) + LOST_HINT
    step.save(update_fields=["status", "fence", "undo_tries", "due_at"])
    attempt = starting.lease(work, step, worker=worker, margin=MARGIN_SECONDS, compensation=True)
    work.note(
        "compensation.started",
        step=step.pk,
        attempt=attempt.pk,
        tries=step.undo_tries,
        worker=worker,
    )
    return step, attempt, first


def _seen(observed: Observed, worker: str) -> Seen:
    return Seen(
        outcome=Outcome(observed.outcome.value),
        source=Source.EXECUTOR,
        by=f"worker:{worker}",
        external_id=observed.external_id,
        error=observed.error,
        retry_after=observed.retry_after,
    )
