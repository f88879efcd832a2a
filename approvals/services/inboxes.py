"""Inboxes after a change of who may decide what."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals import deciders, stages, staging, transitions
from approvals.models import OPEN_GATES, Assignment, Gate, GateState
from interrupts.work import working
from tenants.authority import drain
from tenants.clock import database_now
from tenants.journal import SYSTEM
from tenants.scope import current_tenant_id, tenant_scope

MOST: Final = 200


def refresh_inboxes() -> None:
    """Once the transaction has committed, put each open gate into the inboxes it now belongs in.

    After the drain: a gate that was being opened meanwhile is then there to be found.
    """
    tenant = current_tenant_id()
    transaction.on_commit(lambda: _refresh(tenant))


def _refresh(tenant: UUID) -> None:
    drain(tenant)
    with tenant_scope(tenant):
        for gate_id in _assign_anew():
            recheck(gate_id)


def _assign_anew() -> list[UUID]:
    """Return the gates of which it has changed whether anybody may decide them.

    They are due meanwhile, so that the sweep finds what is not looked at any more.
    """
    with transaction.atomic():
        waits = Gate.objects.filter(state__in=sorted(OPEN_GATES))
        gates = list(waits.values_list("pk", flat=True))
        if not gates:
            return []
        now = database_now()
        deciders.reassign(gates, now)
        somebody = Exists(Assignment.objects.filter(gate=OuterRef("pk")))
        changed = waits.filter(pk__in=gates, stage=None).filter(
            Q(somebody, undecidable_at__isnull=False) | Q(~somebody, undecidable_at=None)
        )
        found = [*changed.values_list("pk", flat=True), *_changed_stages(waits)]
        Gate.objects.filter(pk__in=found, state=GateState.PENDING).update(due_at=now)
    return found


def _changed_stages(waits: QuerySet[Gate]) -> list[UUID]:
    """Return the gates with stages of which another is open by now, or has people or no more."""
    staged = list(waits.exclude(stage=None))
    short, behind = stages.short_of_people(staged), stages.behind(staged)
    stuck = {gate.pk for gate in staged if gate.undecidable_at is not None}
    return sorted(behind | (short ^ stuck))


def recheck(gate_id: UUID) -> None:
    """Look again who may decide an open gate, and at its stages; again changes nothing."""
    run_id = Gate.objects.values_list("run_id", flat=True).get(pk=gate_id)
    with working(run_id, SYSTEM) as work:
        work.state_unchanged()
        gate = Gate.objects.get(pk=gate_id)
        if gate.state not in OPEN_GATES:
            return
        if gate.stages:
            staging.count(work, gate)
        else:
            transitions.check_decidable(work, gate)
        if gate.state == GateState.PENDING and gate.due_at is not None:
            gate.due_at = None
            gate.save(update_fields=["due_at"])


def undecidable() -> list[Gate]:
    """Return the open gates that nobody may decide, the oldest first, up to a bound."""
    rows = Gate.objects.filter(state__in=sorted(OPEN_GATES), undecidable_at__isnull=False)
    return list(rows.select_related("run__agent", "step").order_by("pk")[:MOST])
