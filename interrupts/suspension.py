"""How a run is suspended: one pure function of its steps, and the statement that reads them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from interrupts.models import OPEN_STEPS, Effect, StepStatus, Suspension


class StepFacts(NamedTuple):
    group: UUID
    status: str
    effect: str
    attempts: int  # a person's answer has none
    undo_wanted: bool = False


class Counts(NamedTuple):
    unknown: int
    in_flight: int
    partial: int

    @property
    def suspension(self) -> Suspension:
        """The first that applies, in the order in which nothing hides."""
        if self.unknown:
            return Suspension.UNKNOWN_OUTCOME
        if self.in_flight:
            return Suspension.STILL_CANCELLING
        if self.partial:
            return Suspension.PARTIALLY_COMPLETE
        return Suspension.SAFELY_SUSPENDED


def count(steps: Iterable[StepFacts]) -> Counts:
    """Count the unknown, the in flight, and the groups that are partly done.

    A group is partly done while one of its effects succeeded and another of its steps is not
    settled; reads and persons' answers do not count as done. A compensation that is begun and
    not done makes its group partly done too.
    """
    groups: dict[UUID, list[StepFacts]] = defaultdict(list)
    for step in steps:
        groups[step.group].append(step)
    everything = [step for group in groups.values() for step in group]
    return Counts(
        unknown=sum(step.status == StepStatus.UNKNOWN for step in everything),
        in_flight=sum(step.status == StepStatus.EXECUTING for step in everything),
        partial=sum(map(_partly_done, groups.values())),
    )


def _partly_done(group: list[StepFacts]) -> bool:
    if any(step.status == StepStatus.COMPENSATING or _to_be_undone(step) for step in group):
        return True
    done = any(
        step.status == StepStatus.SUCCEEDED and step.effect != Effect.READ and step.attempts
        for step in group
    )
    return done and any(step.status in OPEN_STEPS for step in group)


def _to_be_undone(step: StepFacts) -> bool:
    return step.undo_wanted and step.status == StepStatus.SUCCEEDED


def counts_of(run_id: UUID, next_step: int) -> Counts:
    """Count over the run's steps, reading only groups in which something is open."""
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT "group", status, effect, attempts, undo_wanted FROM interrupts_step s'
            ' WHERE run_id = %(run)s AND "group" IN ('
            '   SELECT o."group" FROM interrupts_step o'
            "   WHERE o.run_id = %(run)s AND (o.position >= %(next)s"
            "     OR o.status = 'compensating' OR o.undo_wanted))",
            {"run": run_id, "next": next_step},
        )
        return count(StepFacts(*row) for row in cursor.fetchall())
