"""Starting steps: what may start now, and the claim of those the agent runs itself."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db.models import Q

from config.errors import Problem
from interrupts import content
from interrupts.digests import step_digest
from interrupts.errors import AlreadyClaimed, Damaged, NotAuthorized, RunSuspended
from interrupts.models import (
    Attempt,
    Executor,
    Freeze,
    FreezeScope,
    Run,
    RunStatus,
    Step,
    StepStatus,
)
from interrupts.services.acting import as_agent, key_now, not_ended
from interrupts.transitions import steps
from interrupts.transitions.moves import move_step
from interrupts.verification import live
from interrupts.work import Work, working
from tenants.journal import Actor
from tenants.principal import Principal


def renew(run_id: UUID, step_id: UUID, actor: Actor) -> bool:
    """Ask authorization again about a ready step whose stamp is stale; True: it may start."""
    with working(run_id, actor) as work:
        step = Step.objects.get(pk=step_id, run=work.run)
        if step.status != StepStatus.READY or work.run.status != RunStatus.RUNNING:
            work.state_unchanged()
            return False
        return steps.renew(work, step)


def claim_step(
    principal: Principal, step_id: UUID, *, session: int | None = None
) -> tuple[Attempt, Step, bytes]:
    """Intend a step that the agent runs itself: the attempt, the step and its exact arguments.

    Raises NotAuthorized, AlreadyClaimed, RunSuspended, RunEnded, StaleSession, NotYourRun,
    Unauthenticated.
    """
    run_id = Step.objects.values_list("run_id", flat=True).get(pk=step_id)
    with as_agent(principal, run_id, session=session) as work:
        key_now(principal)  # a claim is an intent: none commits once its key's withdrawal answered
        step = Step.objects.get(pk=step_id)
        if step.executor != Executor.AGENT:
            raise NotAuthorized("The service runs this step itself.")
        not_ended(work.run)
        if step.status in (StepStatus.EXECUTING, StepStatus.UNKNOWN) or step.settled_at:
            raise AlreadyClaimed(f"The step is {step.status}.")
        if work.run.status == RunStatus.SUSPENDED:
            raise RunSuspended
        if work.run.verdicts_holding:
            raise NotAuthorized("What was done before is being judged.")
        problem = _may_start(work, step)
        if problem is None:
            arguments = content.get(step.arguments)
            attempt = start(work, step, arguments, worker=f"agent:{principal.id}")
    if problem is not None:
        raise problem
    return attempt, step, arguments


def _may_start(work: Work, step: Step) -> Problem | None:
    """None where the step may start now; what a renewal changed is committed either way."""
    if step.status != StepStatus.READY:
        return NotAuthorized(f"The step is {step.status}.")
    live.check_one(work.run.pk, step)
    if step.due_at is not None and step.due_at > work.now:
        return NotAuthorized("The step is not to start yet.")
    if frozen(work.run, step):
        return NotAuthorized("A freeze holds this step.")
    if not step.parallel and (
        Step.objects.filter(
            run=work.run, group=step.group, position__lt=step.position, settled_at=None
        ).exists()
    ):
        return NotAuthorized("An earlier step of its group is not settled.")
    if not stamp_is_current(work, step) and not steps.renew(work, step):
        return NotAuthorized(f"The step is {step.status}.")
    return None


def stamp_is_current(work: Work, step: Step) -> bool:
    return (
        step.authorized_under == work.authority_version
        and (step.authorized_until is None or step.authorized_until > work.now)
        and steps.is_call_authorized(step)
    )


def frozen(run: Run, step: Step) -> bool:
    return Freeze.objects.filter(
        Q(scope=FreezeScope.TENANT)
        | Q(scope=FreezeScope.TOOL, name=step.tool_name)
        | Q(scope=FreezeScope.AGENT, name=run.agent.name),
        lifted_at=None,
    ).exists()


def start(work: Work, step: Step, arguments: bytes, *, worker: str, margin: float = 0.0) -> Attempt:
    """Intend: the attempt, its fence and its lease; what runs is what was authorised."""
    if step_digest(step.tool_name, step.tool_number, arguments) != step.authorized_digest:
        raise Damaged("The stored arguments are not those that were authorised.")
    move_step(step, StepStatus.EXECUTING)
    step.fence += 1
    step.attempts += 1
    step.due_at = None
    step.save(update_fields=["status", "fence", "attempts", "due_at"])
    attempt = lease(work, step, worker=worker, margin=margin)
    work.note(
        "attempt.started", attempt=attempt.pk, step=step.pk, fence=attempt.fence, worker=worker
    )
    return attempt


def lease(
    work: Work, step: Step, *, worker: str, margin: float, compensation: bool = False
) -> Attempt:
    """Make the attempt of the step's newest fence, leased for its timeout and the margin."""
    seconds = step.timeout_seconds + margin
    attempt = Attempt.objects.create(
        step=step,
        run=work.run,
        fence=step.fence,
        epoch=work.run.epoch,
        worker=worker,
        compensation=compensation,
        started_at=work.now,
        lease_seconds=seconds,
        lease_expires_at=work.now + timedelta(seconds=seconds),
    )
    work.due(attempt.lease_expires_at)
    return attempt
