"""Inboxes after a change of who may decide what."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from approvals import deciders
from approvals.models import OPEN_GATES, Assignment, Gate
from tenants.authority import drain
from tenants.clock import database_now
from tenants.scope import current_tenant_id, tenant_scope


def refresh_inboxes() -> None:
    """Once the transaction has committed, put each open gate into the inboxes it now belongs in.

    After the drain: a gate that was being opened meanwhile is then there to be found.
    """
    tenant = current_tenant_id()
    transaction.on_commit(lambda: _refresh(tenant))


def _refresh(tenant: UUID) -> None:
    drain(tenant)
    with tenant_scope(tenant), transaction.atomic():
        gates = list(Gate.objects.filter(state__in=sorted(OPEN_GATES)).values_list("pk", flat=True))
        if not gates:
            return
        assigned = list(Assignment.objects.filter(gate__in=gates))
        entitled = deciders.entitled(gates, {one.user_id for one in assigned})
        stale = [one.pk for one in assigned if one.user_id not in entitled.get(one.gate_id, ())]
        Assignment.objects.filter(pk__in=stale).delete()
        deciders.assign(gates, database_now())
