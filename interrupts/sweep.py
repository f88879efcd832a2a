"""The sweep: it finds what is due in every tenant, whatever messages were lost.

It runs in every worker process, and from beat as well; an advisory lock makes one of them the
sweeper at a time. What is due is found under the sweep role, which sees nothing else; each run is
then looked at in its own tenant, under the app role.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from django.utils.module_loading import import_string

from config.errors import Problem
from interrupts.models import Run
from interrupts.services import looking
from tenants.scope import tenant_scope
from tenants.sealing import SealBroken

LOCK = 7342
BATCH = 500
PAUSE_SECONDS = 0.5
# What a run raises whose rows are damaged, or that the database can't work on now.
UNWORKABLE = (DatabaseError, InterfaceError, ObjectDoesNotExist, Problem, SealBroken, ValueError)
logger = logging.getLogger(__name__)


def sweep_once() -> int:
    """Sweep if no other process does; return how many things were looked at."""
    with connections["sweep"].cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        (mine,) = cursor.fetchone()
        if not mine:
            return 0
        try:
            return sweep_runs() + sum(sweeper() for sweeper in _others())
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def _others() -> list[Callable[[], int]]:
    return [import_string(name) for name in settings.SWEEPERS]


def due_runs() -> list[tuple[UUID, UUID]]:
    """(tenant, run) of the runs that are due, the longest overdue first."""
    with connections["sweep"].cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id, id FROM interrupts_run WHERE due_at <= clock_timestamp()"
            " ORDER BY due_at LIMIT %s",
            [BATCH],
        )
        return [(tenant, run) for tenant, run in cursor.fetchall()]


def sweep_runs() -> int:
    due = due_runs()
    for tenant_id, run_id in due:
        try:
            with tenant_scope(tenant_id):
                looking.look(run_id)
        except Run.DoesNotExist:
            continue
        except UNWORKABLE:
            # One run that can't be looked at must not keep the others waiting; it stays due.
            logger.exception("run %s could not be looked at", run_id)
    return len(due)


class Sweeper(threading.Thread):
    """Sweeps from a thread of the worker's main process until it is told to stop."""

    def __init__(self) -> None:
        super().__init__(name="sweep", daemon=True)
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(PAUSE_SECONDS):
            try:
                while sweep_once() >= BATCH:
                    pass
            except (DatabaseError, InterfaceError):
                logger.warning("the sweep lost its database and tries again", exc_info=True)
                connections["sweep"].close()
                close_old_connections()

    def stop(self) -> None:
        self._stopped.set()
