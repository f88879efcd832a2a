"""Names of delegation's tasks, and the hint that there is something new to learn from."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from uuid import UUID

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

COLLECT: Final = "delegation.collect"
AGAIN: Final = timedelta(seconds=2)  # after something new was found
IDLE: Final = timedelta(seconds=10)  # after nothing was
OFF: Final = timedelta(minutes=1)  # where nothing is delegated


def collect_soon(tenant: UUID) -> None:
    """Have what is new learned from, after the commit; a lost hint is made good by the sweep."""
    transaction.on_commit(lambda: send(str(tenant)))


def send(tenant_id: str) -> None:
    try:
        current_app.send_task(COLLECT, kwargs={"tenant_id": tenant_id})
    except (OperationalError, OSError):
        return
