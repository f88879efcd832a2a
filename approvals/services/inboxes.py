"""Inboxes after a change of who may decide what."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from approvals import deciders, transitions
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
        gates = list(Gate.objects.filter(state__in=sorted(OPEN_GATES)).values_list("pk", flat=True))
        if not gates:
            return []
        now = database_now()
        deciders.reassign(gates, now)
        somebody = Exists(Assignment.objects.filter(gate=OuterRef("pk")))
        changed = Gate.objects.filter(pk__in=gates).filter(
            Q(somebody, undecidable_at__isnull=False) | Q(~somebody, undecidable_at=None)
        )
        found = list(changed.values_list("pk", flat=True))
        Gate.objects.filter(pk__in=found, state=GateState.PENDING).update(due_at=now)
    return found


def recheck(gate_id: UUID) -> None:
    """Look again whether anybody may decide an open gate; again changes nothing."""
    run_id = Gate.objects.values_list("run_id", flat=True).get(pk=gate_id)
    with working(run_id, SYSTEM) as work:
        work.state_unchanged()
        gate = Gate.objects.get(pk=gate_id)
        if gate.state not in OPEN_GATES:
            return
        transitions.check_decidable(work, gate)
        if gate.state == GateState.PENDING and gate.due_at is not None:
            gate.due_at = None
            gate.save(update_fields=["due_at"])


def undecidable() -> list[Gate]:
    """Return the open gates that nobody may decide, the oldest first, up to a bound."""
    rows = Gate.objects.filter(state__in=sorted(OPEN_GATES), undecidable_at__isnull=False)
    return list(rows.select_related("run__agent", "step").order_by("pk")[:MOST])
