"""Names of this app's tasks, and the hint that something is to be told.

A hint may be lost: the message's ``due_at`` is set before it, and the sweep finds what is due.
"""

from __future__ import annotations

from typing import Final

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from tenants.scope import current_tenant_id

SEND_OUTBOX: Final = "tenants.send_outbox"


def tell_soon() -> None:
    """Have a worker send what is due to be told, after the commit."""
    tenant = str(current_tenant_id())
    transaction.on_commit(lambda: send(tenant))


def send(tenant_id: str) -> None:
    """Send the hint now; a broker that is gone costs the hint and nothing else."""
    try:
        current_app.send_task(SEND_OUTBOX, kwargs={"tenant_id": tenant_id})
    except (OperationalError, OSError):
        return
