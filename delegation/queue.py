"""The name of delegation's task, and when there may be something new to learn from."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from celery import current_app
from kombu.exceptions import OperationalError

from interrupts import queue

COLLECT: Final = queue.LEARN
AGAIN: Final = timedelta(seconds=2)  # after something new was found
IDLE: Final = timedelta(seconds=10)  # after nothing was, at least
LONGEST: Final = timedelta(minutes=5)  # and at most
OFF: Final = timedelta(minutes=1)  # where nothing is delegated, or nothing was ever decided


def send(tenant_id: str) -> None:
    """Send the hint now; a broker that is gone costs the hint, and the sweep sends another."""
    try:
        current_app.send_task(COLLECT, kwargs={"tenant_id": tenant_id})
    except (OperationalError, OSError):
        return
