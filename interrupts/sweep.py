"""The sweep: it finds what is due in every tenant, whatever messages were lost.

It runs in every worker process, and from beat as well; an advisory lock makes one of them the
sweeper at a time. What is due is found under the sweep role, which sees nothing else; each run is
then looked at in its own tenant, under the app role.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
)
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from config.errors import Problem
from interrupts.models import Run, SweepRound
from interrupts.services import draining, looking
from tenants.scope import tenant_scope
from tenants.sealing import SealBroken

LOCK = 7342
BATCH = 500
PAUSE_SECONDS = 0.5
NOTE_SECONDS = 1.0  # between two writes of what the rounds were
# A drained host sweeps where no other has for so long: its sweep wakes nobody.
LEFT_TO_OTHERS = timedelta(seconds=3)
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
            began = time.monotonic()
            looked, unworkable = sweep_runs()
            looked += sum(map(_swept, _others()))
            _rounds.note(time.monotonic() - began, unworkable)
            return looked
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


class _Rounds:
    """What this process's rounds were, written for /metrics at most once a second."""

    def __init__(self) -> None:
        self.unwritten, self.written_at = 0, 0.0

    def note(self, seconds: float, unworkable: int) -> None:
        self.unwritten += 1
        if time.monotonic() - self.written_at < NOTE_SECONDS:
            return
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO interrupts_sweepround AS r (id, ended_at, seconds, rounds, unworkable)"
                " VALUES (%s, clock_timestamp(), %s, %s, %s) ON CONFLICT (id) DO UPDATE SET"
                " ended_at = excluded.ended_at, seconds = excluded.seconds,"
                " rounds = r.rounds + excluded.rounds, unworkable = excluded.unworkable",
                [SweepRound.ONLY, seconds, self.unwritten, unworkable],
            )
        self.unwritten, self.written_at = 0, time.monotonic()


_rounds = _Rounds()


def _others() -> list[Callable[[], int]]:
    return [import_string(name) for name in settings.SWEEPERS]


def _swept(sweeper: Callable[[], int]) -> int:
    """One that can't do its work keeps no other, and no lease, from being looked at."""
    try:
        return sweeper()
    except (OperationalError, InterfaceError):
        raise  # the database is gone, for the others too
    except (*UNWORKABLE, OSError):
        logger.exception("%s could not sweep", sweeper.__qualname__)
        return 0


def due_runs() -> list[tuple[UUID, UUID]]:
    """(tenant, run) of the runs that are due, the longest overdue first."""
    with connections["sweep"].cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id, id FROM interrupts_run WHERE due_at <= statement_timestamp()"
            " ORDER BY due_at LIMIT %s",
            [BATCH],
        )
        return [(tenant, run) for tenant, run in cursor.fetchall()]


def sweep_runs() -> tuple[int, int]:
    """Look at what is due; return how many runs that were, and how many could not be looked at."""
    due, unworkable = due_runs(), 0
    for tenant_id, run_id in due:
        try:
            with tenant_scope(tenant_id):
                looking.look(run_id)
        except Run.DoesNotExist:
            continue
        except UNWORKABLE:
            # One run that can't be looked at must not keep the others waiting; it stays due.
            unworkable += 1
            logger.exception("run %s could not be looked at", run_id)
    return len(due), unworkable


class Sweeper(threading.Thread):
    """Sweeps from a thread of the worker's main process until it is told to stop.

    It also sees when the host is drained, and tells ``on_drain``, so that messages are left to
    the workers of other hosts.
    """

    def __init__(self) -> None:
        super().__init__(name="sweep", daemon=True)
        self.on_drain: Callable[[bool], None] = lambda _drained: None
        self._drained = False
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(PAUSE_SECONDS):
            try:
                self._round()
            except (DatabaseError, InterfaceError):
                logger.warning("the sweep lost its database and tries again", exc_info=True)
                connections["sweep"].close()
                close_old_connections()

    def _round(self) -> None:
        self._see_drain()
        if self._drained and swept_lately():
            return
        while sweep_once() >= BATCH and not self._stopped.is_set():
            pass

    def _see_drain(self) -> None:
        drained = draining.is_drained(draining.this_host())
        if drained == self._drained:
            return
        logger.warning("this host is drained" if drained else "the drain of this host has ended")
        self._drained = drained  # before it is told: see tell()
        self.on_drain(drained)

    def tell(self, on_drain: Callable[[bool], None]) -> None:
        """Have this told of drains from now on, and of one that was seen already."""
        self.on_drain = on_drain
        if self._drained:
            on_drain(self._drained)

    def stop(self) -> None:
        self._stopped.set()


def swept_lately() -> bool:
    return SweepRound.objects.filter(ended_at__gt=Now() - LEFT_TO_OTHERS).exists()
