"""Celery tasks of approvals: ids in, the tenant's scope, one service."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from approvals import queue
from approvals.services import preview
from tenants.scope import tenant_scope


@shared_task(name=queue.TAKE_PREVIEW)
def take_preview(*, tenant_id: str, gate_id: str, **_newer: object) -> None:
    with tenant_scope(UUID(tenant_id)):
        preview.take_preview(UUID(gate_id))
