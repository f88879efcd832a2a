"""Names of this app's tasks, and the hint that a preview is to be taken.

A hint may be lost: the gate's ``due_at`` is set before it, and the sweep finds what is due.
"""

from __future__ import annotations

from datetime import timedelta

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from approvals.models import Gate

TAKE_PREVIEW = "approvals.take_preview"
GRACE = timedelta(seconds=2)  # how long a hint may take before the sweep sends another
AGAIN = timedelta(seconds=5)  # between hints that the sweep sends


def prepare(gate: Gate) -> None:
    """Have a worker take the gate's preview, after the commit."""
    tenant, gate_id = str(gate.tenant_id), str(gate.pk)
    transaction.on_commit(lambda: send(tenant, gate_id))


def send(tenant_id: str, gate_id: str) -> None:
    """Send the hint now; a broker that is gone costs the hint and nothing else."""
    try:
        current_app.send_task(TAKE_PREVIEW, kwargs={"tenant_id": tenant_id, "gate_id": gate_id})
    except (OperationalError, OSError):
        return
