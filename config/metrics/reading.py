"""The figures, read as the sweep's role in one snapshot; each statement walks a partial index.

What there may be much of is read the longest waiting first and no further than MOST rows: an age is
always right, a count stops there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connections, transaction

MOST: Final = 20_000
STATEMENT_SECONDS: Final = 2
NEAR_EXPIRY: Final = "15 minutes"

HELD = f"""
SELECT tenant_id, reason, kind, count(*), min(opened_at),
    count(*) FILTER (WHERE set_aside),
    count(*) FILTER (WHERE expires_at <= statement_timestamp() + interval '{NEAR_EXPIRY}')
FROM (SELECT tenant_id, reason, kind, opened_at, set_aside, expires_at FROM interrupts_interrupt
      WHERE status = 'open' ORDER BY opened_at LIMIT {MOST}) open
GROUP BY tenant_id, reason, kind
"""  # noqa: S608 - constants
DUE = f"""
SELECT tenant_id, count(*), min(due_at)
FROM (SELECT tenant_id, due_at FROM {{table}} WHERE due_at <= statement_timestamp()
      ORDER BY due_at LIMIT {MOST}) due
GROUP BY tenant_id
"""  # noqa: S608
OUTBOX = f"""
SELECT count(*), min(created_at) FROM (
    SELECT created_at FROM tenants_outboxmessage WHERE due_at IS NOT NULL
    ORDER BY due_at LIMIT {MOST}) unsent
"""  # noqa: S608
RUNS = f"""
SELECT s.status, r.suspension, count(*)
FROM (VALUES ('running'), ('suspended'), ('cancelling')) s (status), LATERAL (
    SELECT suspension FROM interrupts_run
    WHERE ended_at IS NULL AND status = s.status LIMIT {MOST}) r
GROUP BY s.status, r.suspension
"""  # noqa: S608
DAMAGED = f"""
SELECT tenant_id, count(*), min(damaged_at)
FROM (SELECT tenant_id, damaged_at FROM interrupts_run WHERE damaged_at IS NOT NULL
      ORDER BY damaged_at LIMIT {MOST}) damaged
GROUP BY tenant_id
"""  # noqa: S608
CALLS = f"""
SELECT worker LIKE 'agent:%', count(*), min(started_at) FROM (
    SELECT worker, started_at FROM interrupts_attempt
    WHERE settled_at IS NULL AND lapsed_at IS NULL LIMIT {MOST}) live
GROUP BY 1
"""  # noqa: S608
SWEEP = (
    "SELECT extract(epoch FROM ended_at), seconds, rounds, unworkable FROM interrupts_sweepround"
)
TALLIES = "SELECT name, value FROM interrupts_tally"
DRAINS = "SELECT host, extract(epoch FROM since) FROM interrupts_drain"
SLUGS = "SELECT id, slug FROM tenants_tenant WHERE id = ANY (%s)"


@dataclass(frozen=True, slots=True)
class Held:
    """Open interrupts of one tenant, reason and kind; ``oldest`` is in seconds."""

    tenant: UUID
    reason: str
    kind: str
    count: int
    oldest: float
    set_aside: int
    near_expiry: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much waits; ``oldest`` is in seconds."""

    count: int
    oldest: float


@dataclass(frozen=True, slots=True)
class Round:
    """The sweep's last round; ``ended_at`` is in seconds since the epoch."""

    ended_at: float
    seconds: float
    rounds: int
    unworkable: int


@dataclass(frozen=True)
class Figures:
    """Everything that one scrape tells."""

    held: Sequence[Held]
    runs_due: Mapping[UUID, Waiting]
    gates_due: Mapping[UUID, Waiting]
    outbox: Waiting
    runs: Mapping[tuple[str, str | None], int]
    damaged: Mapping[UUID, Waiting]
    calls: Mapping[str, Waiting]
    sweep: Round | None
    tallies: Mapping[str, int]
    drains: Mapping[str, float]
    slugs: Mapping[UUID, str]
    seconds: float


def read() -> Figures:
    """Read them all; a database that is away, or slower than STATEMENT_SECONDS, raises Error.

    The connection is not kept: a scrape comes seldom, on whichever thread is free.
    """
    began = time.monotonic()
    try:
        with transaction.atomic(using="sweep"), connections["sweep"].cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute(f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'")
            return _read(_Reader(cursor), began)
    finally:
        connections["sweep"].close()


class _Reader:
    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor
        ((self.now,),) = self.rows("SELECT statement_timestamp()")

    def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        self.cursor.execute(statement, parameters or None)
        return list(self.cursor.fetchall())

    def age(self, since: Any) -> float:
        return 0.0 if since is None else max(0.0, (self.now - since).total_seconds())

    def waiting(self, statement: str) -> dict[UUID, Waiting]:
        rows = self.rows(statement)
        return {tenant: Waiting(count, self.age(oldest)) for tenant, count, oldest in rows}

    def due(self, table: str) -> dict[UUID, Waiting]:
        return self.waiting(DUE.format(table=table))


def _read(reader: _Reader, began: float) -> Figures:
    held = [
        Held(tenant, reason, kind, count, reader.age(oldest), aside, near)
        for tenant, reason, kind, count, oldest, aside, near in reader.rows(HELD)
    ]
    runs_due = reader.due("interrupts_run")
    ((unsent, oldest_unsent),) = reader.rows(OUTBOX)
    calls = {
        "agent" if is_agent else "service": Waiting(count, reader.age(oldest))
        for is_agent, count, oldest in reader.rows(CALLS)
    }
    sweep = reader.rows(SWEEP)
    damaged = reader.waiting(DAMAGED)
    tenants = {*(row.tenant for row in held), *runs_due, *damaged}
    return Figures(
        held=held,
        runs_due=runs_due,
        gates_due=reader.due("approvals_gate"),
        outbox=Waiting(unsent, reader.age(oldest_unsent)),
        runs={(status, suspension): count for status, suspension, count in reader.rows(RUNS)},
        damaged=damaged,
        calls=calls,
        sweep=_round(*sweep[0]) if sweep else None,
        tallies=dict(reader.rows(TALLIES)),
        drains={host: float(since) for host, since in reader.rows(DRAINS)},
        slugs=dict(reader.rows(SLUGS, list(tenants))),
        seconds=time.monotonic() - began,
    )


def _round(ended_at: Any, seconds: float, rounds: int, unworkable: int) -> Round:
    return Round(float(ended_at), seconds, rounds, unworkable)
