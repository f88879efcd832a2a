"""A run's life as its agent and its operators drive it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from config.errors import InvalidBody
from interrupts import imprints, locks
from interrupts.authorizer import authorizer
from interrupts.errors import MayNot, NotYourRun, RunSuspended, StepsOutstanding
from interrupts.models import (
    Guidance,
    Reason,
    Resolution,
    Run,
    RunStatus,
)
from interrupts.services import agentstate
from interrupts.services.acting import OPERATORS, as_agent, as_person, not_ended, role_now
from interrupts.transitions import checkpoints, completion, holds, reservations, runs
from interrupts.work import Work
from tenants import idempotency
from tenants.conditions import ANY_VERSION, IfMatch
from tenants.ids import uuid7
from tenants.journal import SYSTEM
from tenants.models import Membership
from tenants.principal import Principal


def start_run(
    principal: Principal,
    *,
    workflow: str,
    goal: str,
    inputs: dict[str, Any] | None = None,
    parent: UUID | None = None,
    requested_by: str | None = None,
    budget: dict[str, Any] | None = None,
    labels: dict[str, Any] | None = None,
    idle_after: float | None = None,
    agent_state: dict[str, Any] | None = None,
) -> Run:
    """Start a run of the calling agent; a child takes over its parent's requester where it names none.

    Raises InvalidBody (parent, requester, state), NotYourRun, RunSuspended or RunEnded (parent).
    """
    with transaction.atomic(durable=not idempotency.holds_transaction()):
        now, authority_version = _clock(parent)
        mother = _parent(principal, parent) if parent else None
        run = Run(
            id=uuid7(),
            agent_id=principal.id,
            workflow=workflow,
            goal=goal,
            inputs=inputs or {},
            labels=labels or {},
            requested_by_id=_requester(requested_by, mother),
            parent=mother,
            budget={},
            idle_after_seconds=idle_after,
            last_seen_at=now,
            created_at=now,
            updated_at=now,
        )
        run.root = mother.root if mother else run.pk
        run.path = [*mother.path, mother.pk] if mother else []
        run.key_scope = run.pk
        run.budget = limits_in_force(budget or {}, authorizer().limits(run), mother)
        run.save(force_insert=True)
        work = Work(run, now, principal.actor, authority_version)
        work.state_unchanged()  # it starts at the first version
        work.note(
            "run.started",
            workflow=workflow,
            parent=parent,
            requested_by=run.requested_by_id,
            budget={name: str(limit) for name, limit in run.budget.items()},
            imprint=work.imprint(run, imprints.RUN),
        )
        if agent_state is not None:
            checkpoints.take(work, agent_state=agentstate.read(agent_state, None))
        work.due(owner_silent_at(run))
        work.finish()
    return run


def _clock(parent: UUID | None) -> tuple[datetime, int]:
    """The database's time and the authority version; a parent is locked with its family."""
    if parent is not None:
        try:
            return locks.lock_family(parent)
        except Run.DoesNotExist:
            raise InvalidBody.at("/parent", "no such run") from None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT clock_timestamp(), authority_version FROM tenants_tenant"
            " WHERE id = nullif(current_setting('abeyance.tenant_id', true), '')::uuid"
        )
        return cursor.fetchone()  # type: ignore[no-any-return]


def _parent(principal: Principal, parent: UUID) -> Run:
    run = Run.objects.get(pk=parent)
    if run.agent_id != principal.id:
        raise NotYourRun("The parent belongs to another agent.")
    not_ended(run)
    if run.status == RunStatus.SUSPENDED:
        raise RunSuspended("A suspended run starts no child.")
    return run


def _requester(username: str | None, parent: Run | None) -> UUID | None:
    if username is None:
        return parent.requested_by_id if parent else None
    live = Membership.objects.filter(user__username=username, active=True, user__is_active=True)
    user_id = live.values_list("user_id", flat=True).first()
    if user_id is None:
        raise InvalidBody.at("/requested_by", "is no live member of the tenant")
    return user_id


def limits_in_force(
    asked: dict[str, Any], tenant: dict[str, Any], parent: Run | None
) -> dict[str, Any]:
    """The limits in force: the smallest of what is asked, the tenant's and the parent's."""
    limits: dict[str, Any] = {}
    for source in (asked, tenant, parent.budget if parent else {}):
        for name, value in source.items():
            known = limits.get(name)
            if value is not None and (known is None or Decimal(str(value)) < Decimal(str(known))):
                limits[name] = value
    return limits


def owner_silent_at(run: Run) -> datetime | None:
    """When the agent has been silent for longer than it promised, or None."""
    if run.idle_after_seconds is None or run.status != RunStatus.RUNNING:
        return None
    return run.last_seen_at + timedelta(seconds=run.idle_after_seconds)


def claim_run(principal: Principal, run_id: UUID, *, if_match: IfMatch = ANY_VERSION) -> Run:
    """Take the run for the calling process: a new session, which ends the older one's rights.

    Also closes an open ``owner_lost`` interrupt. Raises RunEnded.
    """
    with as_agent(principal, run_id, if_match=if_match) as work:
        not_ended(work.run)
        work.run.session += 1
        work.note("run.claimed", session=work.run.session)
        lost = holds.open_of(work).filter(reason=Reason.OWNER_LOST).first()
        if lost is not None:
            holds.resolve(work, lost, Resolution.RESUME, by=SYSTEM)
        work.due(owner_silent_at(work.run))
    return work.run


def report_usage(
    principal: Principal,
    run_id: UUID,
    *,
    tokens: int = 0,
    cost: Decimal = Decimal(0),
    seconds: Decimal = Decimal(0),
    session: int | None = None,
    if_match: IfMatch = ANY_VERSION,
) -> Run:
    """Add what the agent used; beyond a limit the run is suspended at once. Raises RunEnded.

    Taken while suspended and cancelling too. One that stops nothing raises no version.
    """
    with as_agent(principal, run_id, session=session, if_match=if_match) as work:
        run = work.run
        if run.ended:
            not_ended(run)
        run.usage_tokens += tokens
        run.usage_cost += cost
        run.usage_seconds += seconds
        if tokens or cost or seconds:
            work.note("usage.reported", tokens=tokens, cost=str(cost), seconds=str(seconds))
            reservations.report(work, tokens=tokens, cost=cost, seconds=seconds)
        before = run.open_interrupts
        runs.check_budget(work)
        work.due(owner_silent_at(run))
        if run.open_interrupts == before:
            work.state_unchanged()
    return work.run


def acknowledge(
    principal: Principal,
    run_id: UUID,
    *,
    guidance: list[UUID],
    session: int | None = None,
    if_match: IfMatch = ANY_VERSION,
) -> Run:
    """Say that the agent has read what it was told; again is no change. InvalidBody: unknown id."""
    with as_agent(principal, run_id, session=session, if_match=if_match) as work:
        not_ended(work.run)
        told = {one.pk: one for one in Guidance.objects.filter(run=work.run)}
        for index, pk in enumerate(guidance):
            if pk not in told:
                raise InvalidBody.at(f"/guidance/{index}", "is no guidance of this run")
        new = [pk for pk in dict.fromkeys(guidance) if told[pk].acknowledged_at is None]
        Guidance.objects.filter(pk__in=new).update(acknowledged_at=work.now)
        if new:
            work.note("guidance.acknowledged", guidance=[str(pk) for pk in new])
    return work.run


def complete_run(
    principal: Principal,
    run_id: UUID,
    *,
    output: Any,
    session: int | None = None,
    if_match: IfMatch = ANY_VERSION,
) -> Run:
    """End the run as completed; where a milestone asks, suspend it till a person agrees.

    It is then completed by their answer. Raises RunEnded, RunSuspended, StepsOutstanding (children
    too), CompletionDenied.
    """
    with as_agent(principal, run_id, session=session, if_match=if_match) as work:
        _may_end(work, runs.outstanding)
        completion.complete(work, output)
    return work.run


def fail_run(
    principal: Principal,
    run_id: UUID,
    *,
    error: Any,
    session: int | None = None,
    if_match: IfMatch = ANY_VERSION,
) -> Run:
    """End the run as failed, and cancel its children. Raises as ``complete_run``."""
    with as_agent(principal, run_id, session=session, if_match=if_match) as work:
        _may_end(work, runs.unsettled)
        runs.cancel_children(work, note="its parent failed")
        work.run.error = error
        runs.end(work, RunStatus.FAILED)
    return work.run


def _may_end(work: Work, kept_by: Callable[[Run], str | None]) -> None:
    not_ended(work.run)
    if work.run.status == RunStatus.SUSPENDED:
        raise RunSuspended
    if why := kept_by(work.run):
        raise StepsOutstanding(why)


def cancel_run(
    principal: Principal,
    run_id: UUID,
    *,
    note: str | None = None,
    compensate: bool = False,
    if_match: IfMatch = ANY_VERSION,
) -> Run:
    """Cancel the run and its descendants; a repeat while it is cancelling changes nothing.

    ``compensate``: what was done and can be undone is undone, the newest first. Raises MayNot,
    RunEnded.
    """
    with as_person(principal, run_id, if_match=if_match) as work:
        if role_now(principal) not in OPERATORS:
            raise MayNot("Operators and admins cancel.")
        if work.run.ended:
            not_ended(work.run)
        if work.run.status != RunStatus.CANCELLING:
            runs.cancel(work, note=note, compensate=compensate)
            work.due(work.now)
    return work.run
