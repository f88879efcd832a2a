"""Damaged runs: what does not verify is shown as damaged, and nothing of it starts.

What was found stands on the run until `manage.py verify` finds that it verifies again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from interrupts.errors import Damaged
from interrupts.models import Run

LOOKED_AT_AGAIN: Final = timedelta(minutes=1)
logger = logging.getLogger(__name__)


def show(run_id: UUID, what: str) -> None:
    """Show the run as damaged, with what was found first; the sweep looks at it, but seldom.

    Its journal is not written to: what would be appended would be chained to what is forged.
    """
    logger.error("run %s is damaged: %s", run_id, what)
    run = Run.objects.filter(pk=run_id)
    run.filter(damage=None).update(
        damage=what, damaged_at=Coalesce("damaged_at", Now()), state_version=F("state_version") + 1
    )
    run.filter(ended_at=None).update(due_at=Now() + LOOKED_AT_AGAIN)


def clear(run_id: UUID) -> None:
    """Show the run as damaged no more: all of it verifies, and it is looked at again."""
    Run.objects.filter(pk=run_id, damage__isnull=False).update(
        damage=None, damaged_at=None, state_version=F("state_version") + 1, due_at=Now()
    )


@contextmanager
def shown(run_id: UUID) -> Iterator[None]:
    """Work on a run; where that is refused since the run is damaged, show it and go on."""
    try:
        yield
    except Damaged as damaged:
        show(run_id, damaged.detail)


@contextmanager
def noticed(run_id: UUID) -> Iterator[None]:
    """Do what somebody asked of a run; where it is refused since the run is damaged, show that.

    Not inside a transaction of a request's, which a refusal rolls back.
    """
    try:
        yield
    except Damaged as damaged:
        if not connection.in_atomic_block:
            show(run_id, damaged.detail)
        raise
