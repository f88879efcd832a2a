"""Races are run on purpose: one thread holds what another waits for, and the test lets go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from interrupts.models import Attempt, Run, Step
from tests.interrupts.house import authority, house, nothing_remembered, sent
from tests.threads import Crew, Pause, Worker, at_once, crew

__all__ = ["at_once", "authority", "crew", "house", "nothing_remembered", "sent"]


@contextmanager
def run_locked(crew: Crew, run: Run) -> Iterator[None]:
    """The run's row is locked by somebody else for as long as the block takes."""
    with held(crew, lambda: Run.objects.select_for_update(no_key=True).get(pk=run.pk)):
        yield


@contextmanager
def attempt_pending(crew: Crew, step: Step) -> Iterator[None]:
    """Whoever intends the step has looked at everything, and can't write its attempt yet.

    Somebody else has written an attempt of the same fence, and takes it back at the block's end.
    """

    def write() -> None:
        Attempt.objects.create(
            step=step, run_id=step.run_id, fence=step.fence + 1, epoch=1, started_at=step.created_at
        )

    with held(crew, write, back=True):
        yield


@contextmanager
def held(crew: Crew, work: Any, *, back: bool = False) -> Iterator[None]:
    """Hold what ``work`` locks, in a transaction of another thread; it is taken ``back`` at last."""
    pause = Pause()

    def hold() -> None:
        with transaction.atomic():
            work()
            pause.here()
            transaction.set_rollback(back)

    holder = crew.start(hold)
    pause.reached()
    try:
        yield
    finally:
        pause.go_on()
        holder.result()


def waiting(crew: Crew, work: Any) -> Worker:
    """Start ``work`` in a thread and return once it waits for a lock."""
    worker = crew.start(work)
    worker.waits()
    return worker
