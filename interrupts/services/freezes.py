"""The stop switch: once a freeze has answered, no effect in its scope starts in any worker."""

from __future__ import annotations

from uuid import UUID

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from config.errors import InvalidBody
from interrupts import locks
from interrupts.errors import MayNot
from interrupts.models import Attempt, Freeze, FreezeScope, Run, RunStatus, StepStatus, Tool
from interrupts.services.acting import OPERATORS, role_now
from tenants import authority, idempotency, journal
from tenants.journal import Entry
from tenants.models import Agent, Tenant
from tenants.principal import Principal
from tenants.scope import current_tenant_id


def freeze(
    principal: Principal, *, scope: str, name: str = "", note: str = ""
) -> tuple[Freeze, list[UUID]]:
    """Freeze the tenant, an agent or a tool; return it with the attempts already in flight.

    The answer comes after the drain: no intent that saw the tenant unfrozen is open any more.
    Raises MayNot, InvalidBody (no such agent or tool).
    """
    with transaction.atomic(durable=not idempotency.holds_transaction()):
        if role_now(principal) not in OPERATORS:
            raise MayNot("Operators and admins freeze.")
        if fault := name_fault(scope, name):
            raise InvalidBody.at("/name", fault)
        made = Freeze.objects.create(scope=scope, name=name, note=note, created_by=principal.id)
        made.refresh_from_db()
        Tenant.objects.filter(pk=current_tenant_id()).update(freezes=F("freezes") + 1)
        authority.raise_authority()
        journal.append_to_tenant(
            principal.actor,
            Entry("freeze.set", {"freeze": made.pk, "scope": scope, "name": name, "note": note}),
        )
    return made, in_flight(made)


def name_fault(scope: str, name: str) -> str | None:
    """Return why there is nothing in this tenant that such a freeze would be of; None: there is."""
    if scope == FreezeScope.TENANT:
        return "a freeze of the tenant names nothing" if name else None
    rows = Tool.objects if scope == FreezeScope.TOOL else Agent.objects
    return None if rows.filter(name=name).exists() else f"there is no such {scope}"


def in_flight(made: Freeze) -> list[UUID]:
    """The attempts in the freeze's scope that had begun."""
    live = Attempt.objects.filter(settled_at=None, lapsed_at=None)
    if made.scope == FreezeScope.TOOL:
        live = live.filter(step__tool_name=made.name)
    elif made.scope == FreezeScope.AGENT:
        live = live.filter(run__agent__name=made.name)
    return list(live.order_by("id").values_list("pk", flat=True))


def thaw(principal: Principal, freeze_id: UUID) -> None:
    """Lift a freeze; again is no change. What it held is looked at. Raises Freeze.DoesNotExist."""
    with transaction.atomic(durable=not idempotency.holds_transaction()):
        if role_now(principal) not in OPERATORS:
            raise MayNot("Operators and admins lift a freeze.")
        # Nobody who sees the freeze is at work on a run then, or begins before it is lifted: each
        # run that it holds back is found here.
        locks.lock_out_engine()
        if locks.lock_freeze(freeze_id).lifted_at is not None:
            return
        held = Run.objects.filter(status=RunStatus.RUNNING, steps__status=StepStatus.READY)
        Run.objects.filter(pk__in=held.values("pk")).update(due_at=Now())
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE interrupts_freeze SET lifted_at = clock_timestamp(), lifted_by = %s"
                " WHERE id = %s",
                [principal.id, freeze_id],
            )
        Tenant.objects.filter(pk=current_tenant_id()).update(freezes=F("freezes") - 1)
        journal.append_to_tenant(principal.actor, Entry("freeze.lifted", {"freeze": freeze_id}))
