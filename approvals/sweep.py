"""Gates that are due: a preview whose hint was lost, or whose worker was, is asked for again; and
whoever may decide a pending one is looked for again.

Expiry is not among them: an expired gate's run is due, and the engine looks at it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from uuid import UUID

from django.db import DatabaseError, connections
from django.db.models.functions import Now

from approvals import queue
from approvals.models import Gate, GateState
from approvals.services.inboxes import recheck
from tenants.scope import tenant_scope

BATCH = 500
logger = logging.getLogger(__name__)


def sweep_gates() -> int:
    """Send the hint for each gate that is due once more; return how many were."""
    due = _due()
    for tenant_id, gates in due.items():
        with tenant_scope(tenant_id):
            for gate_id in gates:
                try:
                    _send_again(tenant_id, gate_id)
                except DatabaseError:
                    # One gate that cannot be looked at keeps no other waiting; it stays due.
                    logger.exception("gate %s could not be looked at", gate_id)
    return sum(map(len, due.values()))


def _due() -> dict[UUID, list[UUID]]:
    by_tenant: dict[UUID, list[UUID]] = defaultdict(list)
    with connections["sweep"].cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id, id FROM approvals_gate WHERE due_at <= clock_timestamp()"
            " ORDER BY due_at LIMIT %s",
            [BATCH],
        )
        for tenant_id, gate_id in cursor.fetchall():
            by_tenant[tenant_id].append(gate_id)
    return by_tenant


def _send_again(tenant_id: UUID, gate_id: UUID) -> None:
    if Gate.objects.filter(pk=gate_id, state=GateState.PENDING).exists():
        recheck(gate_id)
        return
    overdue = Gate.objects.filter(pk=gate_id, state=GateState.PREPARING, due_at__lte=Now())
    if overdue.update(due_at=Now() + queue.AGAIN):
        queue.send(str(tenant_id), str(gate_id))
