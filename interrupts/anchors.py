"""Anchors: the heads of journal streams, written outside the database.

A database that was put back to an older state verifies by itself: each chain in it is whole, only
shorter. The anchor remembers how long each stream was and under which hash, so what it remembers
and the database does not have was lost or taken away. Each head that was ever written counts: a
stream that was cut short and then grew past what was cut has another hash there.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connections

from interrupts.verification import Fault
from tenants.models import JournalEntry
from tenants.scope import current_tenant_id

EVERY_SECONDS: Final = 10.0
BATCH: Final = 5000
# A run says when it was changed before its transaction commits: what came to be seen late is looked
# for again this long.
OVERLAP: Final = "1 minute"
logger = logging.getLogger(__name__)


class Head(NamedTuple):
    tenant: UUID
    stream: UUID
    seq: int
    hash: str


Heads = Mapping[UUID, Sequence[Head]]  # by tenant


def path() -> Path:
    return Path(settings.ABEYANCE_ANCHOR)


@dataclass(slots=True)
class Writer:
    """What one process knows of what has been written."""

    at: float = float("-inf")
    since: str = "-infinity"
    written: dict[UUID, Head] | None = None  # None: the file is to be read first

    def write(self) -> int:
        """Append the heads that have moved; return how many."""
        if self.written is None:
            self.written = {head.stream: head for head in _heads()}
        moved, until = 0, self.since
        seen: dict[UUID, Head] = {}
        for heads, newest in _batches(self.since):
            fresh = [head for head in heads if self.written.get(head.stream) != head]
            if fresh:
                _append(fresh)
            seen.update((head.stream, head) for head in heads)
            self.written.update((head.stream, head) for head in fresh)
            moved, until = moved + len(fresh), newest or until
        # What moved before the overlap is not read again.
        self.written, self.since = seen, until
        return moved


_writer = Writer()


def write_due() -> int:
    """Append the heads that have moved since the last time, at most every EVERY_SECONDS.

    A sweeper: one process writes at a time. Returns how many heads were written.
    """
    if time.monotonic() - _writer.at < EVERY_SECONDS:
        return 0
    _writer.at = time.monotonic()
    return write()


def write() -> int:
    """Append the heads that have moved since this process wrote last; return how many."""
    return _writer.write()


def forget() -> None:
    """Begin anew, as a process does that has just started."""
    _writer.at, _writer.since, _writer.written = float("-inf"), "-infinity", None


def _batches(since: str) -> Iterator[tuple[list[Head], str | None]]:
    """Yield the heads of tenants, then of the runs that changed after ``since``, in order."""
    with connections["sweep"].cursor() as cursor:
        cursor.execute(
            "SELECT id, id, journal_seq, encode(journal_hash, 'hex') FROM tenants_tenant"
            " WHERE journal_seq > 0"
        )
        yield [Head(*row) for row in cursor.fetchall()], None
        after: tuple[Any, ...] = (since, UUID(int=0))
        floor = f"(%s::timestamptz - interval '{OVERLAP}')" if since != "-infinity" else "%s"
        while True:
            cursor.execute(
                "SELECT tenant_id, id, journal_seq, encode(journal_hash, 'hex'), updated_at::text"  # noqa: S608 - words of ours
                f" FROM interrupts_run WHERE (updated_at, id) > ({floor}::timestamptz, %s)"
                " ORDER BY updated_at, id LIMIT %s",
                [*after, BATCH],
            )
            rows = cursor.fetchall()
            if not rows:
                return
            after, floor = (rows[-1][4], rows[-1][1]), "%s"
            yield [Head(*row[:4]) for row in rows], rows[-1][4]


def _append(heads: Sequence[Head]) -> None:
    lines = [
        json.dumps([str(head.tenant), str(head.stream), head.seq, head.hash]) for head in heads
    ]
    path().parent.mkdir(parents=True, exist_ok=True)
    with path().open("ab+") as file:
        # A write that broke off left half a line: what follows begins on one of its own.
        if file.tell() and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
            file.write(b"\n")
        file.write(("\n".join(lines) + "\n").encode())
        file.flush()
        os.fsync(file.fileno())


def _heads() -> Iterator[Head]:
    """Yield every head in the anchor, in the order written."""
    if not path().exists():
        return
    with path().open() as file:
        for number, line in enumerate(file, 1):
            try:
                tenant, stream, seq, hashed = json.loads(line)
                head = Head(UUID(tenant), UUID(stream), int(seq), str(hashed))
            except ValueError:
                logger.warning("line %s of the anchor is not a head and is passed over", number)
                continue
            yield head


def read() -> Heads:
    """Return every head that the anchor remembers, by tenant."""
    heads: dict[UUID, dict[Head, None]] = defaultdict(dict)
    for head in _heads():
        heads[head.tenant][head] = None
    return {tenant: list(mine) for tenant, mine in heads.items()}


def faults(heads: Heads, stream: UUID | None = None) -> Iterator[Fault]:
    """Yield what the anchor remembers of the current tenant and the database does not have.

    ``stream``: of that stream alone.
    """
    mine = [
        head
        for head in heads.get(current_tenant_id(), ())
        if stream is None or head.stream == stream
    ]
    for start in range(0, len(mine), BATCH):
        yield from _missing(mine[start : start + BATCH])


def _missing(heads: Sequence[Head]) -> Iterator[Fault]:
    wanted: dict[UUID, set[int]] = defaultdict(set)
    for head in heads:
        wanted[head.stream].add(head.seq)
    found = JournalEntry.objects.filter(
        stream__in=list(wanted), seq__in=set().union(*wanted.values())
    )
    stored = {
        (stream, seq): bytes(hashed).hex()
        for stream, seq, hashed in found.values_list("stream", "seq", "hash").iterator()
        if seq in wanted[stream]
    }
    for head in heads:
        if stored.get((head.stream, head.seq)) != head.hash:
            yield Fault(
                head.stream, f"entry {head.seq}", "is in the anchor and not in the database"
            )
