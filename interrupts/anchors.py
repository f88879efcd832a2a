"""Anchors: the heads of journal streams, written outside the database.

A database that was put back to an older state verifies by itself: each chain in it is whole, only
shorter. The anchor remembers how long each stream was and under which hash, so what it remembers
and the database does not have was lost or taken away.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connections

from interrupts.verification import Fault
from tenants.models import JournalEntry
from tenants.scope import current_tenant_id

EVERY_SECONDS: Final = 10.0
BATCH: Final = 5000


class Head(NamedTuple):
    tenant: UUID
    stream: UUID
    seq: int
    hash: str


Heads = Mapping[UUID, Head]
_last: dict[str, float | str] = {"at": 0.0, "since": "-infinity"}


def path() -> Path:
    return Path(settings.ABEYANCE_ANCHOR)


def write_due() -> int:
    """Append the heads that have moved since the last time, at most every EVERY_SECONDS.

    A sweeper: one process writes at a time. Returns how many heads were written.
    """
    if time.monotonic() - float(_last["at"]) < EVERY_SECONDS:
        return 0
    _last["at"] = time.monotonic()
    return write()


def write() -> int:
    """Append the heads that have moved since this process wrote last."""
    with connections["sweep"].cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id, id, journal_seq, encode(journal_hash, 'hex'), updated_at::text"
            " FROM interrupts_run WHERE updated_at > %s::timestamptz ORDER BY updated_at LIMIT %s",
            [_last["since"], BATCH],
        )
        runs = cursor.fetchall()
        cursor.execute(
            "SELECT id, id, journal_seq, encode(journal_hash, 'hex') FROM tenants_tenant"
        )
        tenants = cursor.fetchall()
    heads = [Head(*row[:4]) for row in runs] + [Head(*row) for row in tenants if row[2]]
    if heads:
        _append(heads)
    if runs:
        _last["since"] = runs[-1][4]
    return len(runs)


def _append(heads: list[Head]) -> None:
    lines = [
        json.dumps([str(head.tenant), str(head.stream), head.seq, head.hash]) for head in heads
    ]
    path().parent.mkdir(parents=True, exist_ok=True)
    with path().open("a") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read() -> Heads:
    """Return the furthest head of each stream that the anchor remembers."""
    heads: dict[UUID, Head] = {}
    if not path().exists():
        return heads
    with path().open() as file:
        for line in file:
            tenant, stream, seq, hashed = json.loads(line)
            head = Head(UUID(tenant), UUID(stream), seq, hashed)
            known = heads.get(head.stream)
            if known is None or head.seq > known.seq:
                heads[head.stream] = head
    return heads


def faults(heads: Heads) -> list[Fault]:
    """Return what the anchor remembers of the current tenant and the database does not have."""
    mine = [head for head in heads.values() if head.tenant == current_tenant_id()]
    stored = {
        (entry.stream, entry.seq): bytes(entry.hash).hex()
        for start in range(0, len(mine), 500)
        for entry in JournalEntry.objects.filter(
            stream__in=[head.stream for head in mine[start : start + 500]],
            seq__in={head.seq for head in mine[start : start + 500]},
        )
    }
    return [
        Fault(head.stream, f"entry {head.seq}", "is in the anchor and not in the database")
        for head in mine
        if stored.get((head.stream, head.seq)) != head.hash
    ]
