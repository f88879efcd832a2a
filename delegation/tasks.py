"""Celery tasks of delegation: ids in, the tenant's scope, one service."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from delegation import queue
from delegation.services import learning
from tenants.scope import tenant_scope


@shared_task(name=queue.COLLECT)
def collect(*, tenant_id: str, **_newer: object) -> None:
    with tenant_scope(UUID(tenant_id)):
        learning.catch_up()
