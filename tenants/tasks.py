"""Celery tasks of tenants: ids in, the tenant's scope, one service."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from tenants import outbox, queue
from tenants.scope import tenant_scope


@shared_task(name=queue.SEND_OUTBOX)
def send_outbox(*, tenant_id: str, **_newer: object) -> None:
    with tenant_scope(UUID(tenant_id)):
        outbox.send_due()
