"""The unit of work of the engine: one run (and its descendants) locked, one clock, one commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from interrupts import locks, queue
from interrupts.days import Days
from interrupts.models import Run, RunStatus
from interrupts.suspension import counts_of
from tenants import idempotency, imprints, journal
from tenants.journal import Actor, Entry

# What transitions change of a run; the rest is written once.
CHANGING = [
    "status",
    "suspension",
    "count_unknown",
    "count_in_flight",
    "count_partial",
    "epoch",
    "state_version",
    "journal_seq",
    "journal_hash",
    "last_position",
    "next_step",
    "open_interrupts",
    "verdicts_awaited",
    "verdicts_holding",
    "checkpoint",
    "session",
    "last_seen_at",
    "budget",
    "usage_steps",
    "usage_cost",
    "usage_seconds",
    "usage_tokens",
    "output",
    "error",
    "compensating",
    "due_at",
    "reserved_cost",
    "reading",
    "reading_until",
    "updated_at",
    "ended_at",
]


@dataclass(slots=True)
class Work:
    """A locked run, the database's clock read under the lock, and who acts.

    Transitions take it, change ``run`` and note what happened; the journal, the new
    ``state_version`` and the run's row are written once, at the end.
    """

    run: Run
    now: datetime
    actor: Actor
    authority_version: int
    entries: list[Entry] = field(default_factory=list)
    counts: bool = True  # whether what happened raises the state version
    wakes: bool = False
    ending: bool = False  # the last answer does not resume a run that is about to end
    family: Days | None = None  # a descendant counts in its ancestor's work: they are one agent's
    admitted: int = 0  # of what is judged together: how many before count as used steps
    memo: dict[Any, Any] = field(default_factory=dict)  # what the authorizer has read, once
    speaker: Actor | None = None  # whose words are noted, where not those of whoever acts
    days: Days = field(init=False)

    def __post_init__(self) -> None:
        self.days = self.family or Days(self.run.agent_id)

    def note(self, kind: str, **data: Any) -> None:
        self.entries.append(Entry(kind, data, self.speaker))

    @contextmanager
    def speaking(self, speaker: Actor | None) -> Iterator[None]:
        """Have what is noted meanwhile told as this one's; None: as whoever's it was."""
        before = self.speaker
        self.speaker = speaker or before
        try:
            yield
        finally:
            self.speaker = before

    def imprint_of(self, text: str | None) -> str | None:
        """Return what the run's journal tells of a text that it does not say."""
        return imprints.of_text(self.run.pk, text)

    def imprint(self, row: Any, columns: Sequence[str]) -> str:
        """Return the imprint of these columns of a row of the run, as they are stored."""
        return imprints.of_row(self.run.pk, row, columns)

    @property
    def journal_seq(self) -> int:
        """The sequence of the last entry, with those noted but not yet written."""
        return self.run.journal_seq + len(self.entries)

    def due(self, at: datetime | None) -> None:
        """Have the sweep look at the run no later than ``at``."""
        if at is not None and (self.run.due_at is None or at < self.run.due_at):
            self.run.due_at = at

    def wake(self) -> None:
        """Have a worker look at the run once this has committed, and the sweep soon after."""
        self.wakes = True
        self.due(self.now + queue.GRACE)

    def state_unchanged(self) -> None:
        """Let what is noted raise no state version: nothing that others wait for has changed."""
        self.counts = False

    def finish(self) -> None:
        """Write the journal and the run, and send the wake with the commit."""
        run = self.run
        self._say_how_it_is_suspended()
        if self.entries:
            run.journal_seq, run.journal_hash = journal.extend(
                run.pk,
                seq=run.journal_seq,
                head=bytes(run.journal_hash),
                at=self.now,
                actor=self.actor,
                entries=self.entries,
            )
            self.entries = []
            if self.counts:
                run.state_version += 1
        run.updated_at = self.now
        run.save(update_fields=CHANGING)
        if self.family is None:
            self.days.write()
        if self.wakes and not run.ended:
            queue.wake(run)

    def _say_how_it_is_suspended(self) -> None:
        run = self.run
        if run.status in (RunStatus.SUSPENDED, RunStatus.CANCELLING):
            counts = counts_of(run.pk, run.next_step)
            run.suspension = counts.suspension
            run.count_unknown, run.count_in_flight, run.count_partial = counts
        elif run.suspension is not None:
            run.suspension = None
            run.count_unknown = run.count_in_flight = run.count_partial = 0


@contextmanager
def working(run_id: UUID, actor: Actor) -> Iterator[Work]:
    """Lock the run with its descendants and do one thing to it, in a transaction of its own.

    Holds the tenant's drain lock shared, so an authority read inside stays current till the
    commit. Raises Run.DoesNotExist for an unknown id or another tenant's.
    """
    with transaction.atomic(durable=not idempotency.holds_transaction()):
        work = locked(run_id, actor)
        yield work
        work.finish()


def locked(run_id: UUID, actor: Actor) -> Work:
    """Return the work on a run whose family is locked till the transaction ends."""
    now, authority_version = locks.lock_family(run_id)
    run = Run.objects.get(pk=run_id)
    return Work(run=run, now=now, actor=actor, authority_version=authority_version)


def descendants(work: Work, actor: Actor) -> list[Work]:
    """Return the work on each descendant that has not ended; ``working`` has locked them."""
    family = Run.objects.filter(root=work.run.root, path__contains=[work.run.pk], ended_at=None)
    return [
        Work(run, work.now, actor, work.authority_version, family=work.days)
        for run in family.order_by("id")
    ]
