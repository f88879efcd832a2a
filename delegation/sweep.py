"""Tenants whose decisions are to be looked at: the hint is sent for each that is due."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import connections, transaction

from delegation import locks, queue
from tenants.clock import database_now
from tenants.scope import tenant_scope

BATCH: Final = 500
_DUE: Final = """
SELECT t.id FROM tenants_tenant t LEFT JOIN delegation_eventstream s ON s.tenant_id = t.id
WHERE s.due_at IS NULL OR s.due_at <= clock_timestamp()
ORDER BY s.due_at NULLS FIRST LIMIT %s
"""


def sweep_events() -> int:
    """Send the hint for each tenant that is due; return how many were."""
    with connections["sweep"].cursor() as cursor:
        cursor.execute(_DUE, [BATCH])
        due: list[UUID] = [tenant for (tenant,) in cursor.fetchall()]
    for tenant in due:
        with tenant_scope(tenant), transaction.atomic():
            stream = locks.lock_stream()
            # Should the hint be lost, the next is sent then.
            stream.due_at = database_now() + queue.IDLE
            stream.save(update_fields=["due_at"])
        queue.send(str(tenant))
    return len(due)
