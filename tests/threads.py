"""Real threads, each with a connection of its own, and what makes them meet."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from config.errors import Problem
from tenants.scope import current_tenant_id, tenant_scope

PATIENCE = 20.0  # seconds after which a test fails rather than waits


class Crew:
    """Threads that work for one tenant; each closes its connection at its end."""

    def __init__(self, tenant: UUID, pool: ThreadPoolExecutor) -> None:
        self.tenant, self.pool = tenant, pool

    def start(self, work: Callable[[], Any]) -> Worker:
        worker = Worker()
        worker.future = self.pool.submit(self._run, worker, work)
        assert worker.connected.wait(PATIENCE)
        return worker

    def _run(self, worker: Worker, work: Callable[[], Any]) -> Any:
        try:
            with tenant_scope(self.tenant):
                worker.backend = backend()
                worker.connected.set()
                return work()
        finally:
            worker.connected.set()
            connection.close()


class Worker:
    """One thread's work, and the server process that serves it."""

    def __init__(self) -> None:
        self.future: Future[Any] = Future()
        self.connected = threading.Event()
        self.backend = 0

    def result(self) -> Any:
        return self.future.result(PATIENCE)

    @property
    def over(self) -> bool:
        return self.future.done()

    def waits(self) -> None:
        """Return once the thread's connection waits for a lock; fail if it never does."""
        deadline = time.monotonic() + PATIENCE
        while not is_blocked(self.backend):
            if self.over:
                self.result()
                raise AssertionError("it ended without waiting for a lock")
            assert time.monotonic() < deadline, "it does not wait for a lock"
            time.sleep(0.005)


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def is_blocked(pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [pid])
        return cursor.fetchone()[0]


@contextmanager
def crew_of(tenant: UUID) -> Iterator[Crew]:
    with ThreadPoolExecutor(32) as pool:
        yield Crew(tenant, pool)


@pytest.fixture
def at_once() -> Callable[..., list[Any]]:
    """Run these at once, from a barrier on; return what each returned, an error as itself."""

    def run(*works: Callable[[], Any]) -> list[Any]:
        start = threading.Barrier(len(works))

        def behind(work: Callable[[], Any]) -> Callable[[], Any]:
            def begin() -> Any:
                start.wait(PATIENCE)
                return work()

            return begin

        with crew_of(current_tenant_id()) as crew:
            workers = [crew.start(behind(work)) for work in works]
            return [_outcome(worker) for worker in workers]

    return run


def _outcome(worker: Worker) -> Any:
    try:
        return worker.result()
    except Problem as refusal:
        return refusal


@pytest.fixture
def crew() -> Iterator[Crew]:
    """Threads for the tenant of the test; what they hold is given back at its end."""
    with crew_of(current_tenant_id()) as made:
        yield made


class Pause:
    """A place where a thread stops until the test lets it go on."""

    def __init__(self) -> None:
        self._reached, self._go = threading.Event(), threading.Event()

    def here(self) -> None:
        self._reached.set()
        assert self._go.wait(PATIENCE), "nobody let it go on"

    def reached(self) -> None:
        assert self._reached.wait(PATIENCE), "it never came here"

    def go_on(self) -> None:
        self._go.set()
