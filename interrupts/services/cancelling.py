"""Making a call, and cancelling it under way where its run was stopped with ``in_flight: cancel``.

One thread of a process looks after all of its calls, on a connection of its own, in autocommit. A
call shorter than LOOK_SECONDS is never looked at, and while nothing is in flight nothing is.
Compensations are not made here: one that was cut would only be sent again.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Final
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection

from interrupts import selectors
from interrupts.effects import Call, Effect, Observed, Outcome
from tenants.scope import current_tenant_id, tenant_scope

LOOK_SECONDS: Final = 1.0  # between two looks, and before the first one at a call
DROPPED: Final = "The read was dropped: its run was stopped."
logger = logging.getLogger(__name__)


def execute(effect: Effect, call: Call, *, is_read: bool = False) -> Observed:
    """Make the call, and cut it where a stop asks for that.

    What was not sent by then is not performed. Of anything else nothing is known, but of a read
    there is nothing to know: it is dropped, and tried again if its run goes on.
    """
    with _watched(call, is_read=is_read):
        observed = effect.execute(call)
    if is_read and call.cancel_requested and observed.outcome is Outcome.UNKNOWN:
        return Observed(Outcome.NOT_PERFORMED, error=DROPPED)
    return observed


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _InFlight:
    tenant: UUID
    call: Call
    is_read: bool
    began: float


class _Watcher:
    """The process's calls in flight, and the thread that looks after them while there are any."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: set[_InFlight] = set()
        self._thread: Thread | None = None
        self._over = Event()  # nothing is in flight that the connection would be kept for
        self._is_connected = False

    def add(self, one: _InFlight) -> None:
        with self._lock:
            self._calls.add(one)
            if self._thread is None or not self._thread.is_alive():  # as after a fork
                self._thread = Thread(target=self._watch, name="cancelling", daemon=True)
                self._thread.start()

    def remove(self, one: _InFlight) -> None:
        with self._lock:
            self._calls.discard(one)
            if self._is_connected and not self._calls:
                self._over.set()

    def _watch(self) -> None:
        while not self._is_over():
            due = self._due()
            if due:
                self._is_connected = True
                _look_after(due)

    def _is_over(self) -> bool:
        """Wait for the next look; True: nothing is in flight, and the thread ends."""
        self._over.wait(LOOK_SECONDS)
        with self._lock:
            if self._calls:
                self._over.clear()
                return False
            self._over.clear()
            self._is_connected = False
            self._thread = None
        connection.close()
        return True

    def _due(self) -> list[_InFlight]:
        before = time.monotonic() - LOOK_SECONDS
        with self._lock:
            return [
                one
                for one in self._calls
                if one.began <= before and not one.call.cancellation.asked
            ]


_watcher = _Watcher()


@contextmanager
def _watched(call: Call, *, is_read: bool) -> Iterator[None]:
    one = _InFlight(current_tenant_id(), call, is_read, time.monotonic())
    _watcher.add(one)
    try:
        yield
    finally:
        _watcher.remove(one)


def _look_after(calls: Iterable[_InFlight]) -> None:
    """Cancel those of the calls that are asked to be; what can't be read now is asked again."""
    of_tenant = defaultdict(list)
    for one in calls:
        of_tenant[one.tenant].append(one)
    try:
        for tenant, its in of_tenant.items():
            with tenant_scope(tenant):
                _cancel(its)
    except (DatabaseError, InterfaceError):
        logger.warning("whether calls are to be cancelled could not be read", exc_info=True)
        connection.close()


def _cancel(calls: list[_InFlight]) -> None:
    effects = {UUID(one.call.attempt): one.call for one in calls if not one.is_read}
    asked = [effects[pk] for pk in selectors.asked_to_cancel(effects)] if effects else []
    reads = (one.call for one in calls if one.is_read)
    asked += [call for call in reads if selectors.is_stopped_at_once(UUID(call.run))]
    for call in asked:
        logger.info("attempt %s of %s is cancelled under way", call.attempt, call.tool)
        call.cancellation.ask()
