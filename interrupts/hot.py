"""The hot write of a worker: record outcomes and intend the next step, in one round trip.

The statement is prepared, since its plan is worth keeping. In autocommit it is its own commit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from config.keys import current_key_id, keyed_digest, stream_key
from interrupts import content
from interrupts.models import Outcome
from tenants.ids import uuid7
from tenants.statements import prepared

ADVANCE = (
    "SELECT recorded, verdict, more, step, fence, tool_version, arguments, cipher, digest, authority,"
    " reads, tool_versions, bodies, ciphers, digests"
    " FROM interrupts_advance(%b::uuid, %b::uuid, %b::text, %b::bytea, %b::bytea, %b::text,"
    " %b::uuid, %b::uuid, %b::integer, %b::uuid, %b::text,"
    " %b::bytea, %b::bytea, %b::text, %b::text, %b::numeric, %b::text,"
    " %b::uuid, %b::integer, %b::float8,"
    " %b::uuid[], %b::uuid[], %b::uuid[], %b::bytea[], %b::bytea[], %b::text[], %b::text[],"
    " %b::integer)"
)


class Done(NamedTuple):
    """A plain outcome of a worker's call: succeeded, or failed and only told.

    ``fence`` is None for a read, whose attempt is written with its receipt.
    """

    step: UUID
    attempt: UUID
    fence: int | None
    outcome: str
    result: bytes | None  # canonical JSON
    external_id: str | None
    cost: Decimal | None
    error: str | None
    sensitive: bool

    @property
    def is_quick_read(self) -> bool:
        """Whether it may be recorded with what comes after it: read once more, it does no harm."""
        return self.fence is None and self.outcome == Outcome.SUCCEEDED and self.cost is None


class Start(NamedTuple):
    """A call to be sent now: exactly what was authorised. ``fence`` is None for a read.

    ``asked_at`` is this process's monotonic clock before the intent: its lease began no earlier.
    """

    step: UUID
    fence: int | None
    tool_version: UUID
    arguments: bytes | None  # as kept: sealed where ``cipher`` says so; None: erased
    cipher: str | None
    digest: str
    authority: int
    asked_at: float


class Advanced(NamedTuple):
    """What came of it; see the function interrupts_advance for the words.

    ``ahead`` are reads that may follow ``start``, in this order, with nothing asked in between.
    """

    recorded: str
    verdict: str
    more: bool
    step: UUID | None
    start: Start | None
    ahead: Sequence[Start] = ()


_NOTHING = (None,) * 11
NO_READS = (None,) * 7


def advance(
    tenant: UUID,
    run: UUID,
    *,
    worker: str,
    done: Sequence[Done],
    attempt: UUID | None,
    epoch: int,
    seconds_left: float,
    ahead: int = 0,
) -> Advanced:
    """Record what is ``done`` and intend the next step as ``attempt``; without one, nothing.

    All but the last of ``done`` are quick reads. Where the next step is a read, up to ``ahead``
    reads that follow it come with it.
    """
    key = stream_key(run, current_key_id())
    record = _record(tenant, done[-1]) if done else _NOTHING
    reads = _reads(tenant, done[:-1]) if len(done) > 1 else NO_READS
    parameters = [tenant, run, *key, worker, *record, attempt, epoch, seconds_left, *reads, ahead]
    asked_at = time.monotonic()
    row = prepared(ADVANCE, parameters)
    recorded, verdict, more, step, fence, version, arguments, cipher, digest, authority = row[:10]
    start = None
    following: list[Start] = []
    if verdict in ("read", "intended"):
        fenced = fence if verdict == "intended" else None
        start = Start(step, fenced, version, arguments, cipher, digest, authority, asked_at)
    if row[10]:
        following = [
            Start(read, None, version, body, cipher, digest, authority, asked_at)
            for read, version, body, cipher, digest in zip(*row[10:], strict=True)
        ]
    return Advanced(recorded, verdict, more, step, start, following)


def _reads(tenant: UUID, done: Sequence[Done]) -> tuple[list[Any], ...]:
    """Return the arrays that tell of quick reads."""
    kept = [_kept(tenant, one) for one in done]
    digests, bodies, ciphers = (list(each) for each in zip(*kept, strict=True))
    return (
        [one.step for one in done],
        [one.attempt for one in done],
        [uuid7() for _ in done],
        digests,
        bodies,
        ciphers,
        [one.external_id for one in done],
    )


def _kept(tenant: UUID, done: Done) -> tuple[bytes | None, bytes | None, str | None]:
    """Return the digest of a result, its body as it is kept, and what sealed it."""
    if done.result is None:
        return None, None, None
    body, cipher = content.seal(tenant, done.result) if done.sensitive else (done.result, "")
    return keyed_digest(tenant, done.result), body, cipher


def _record(tenant: UUID, done: Done) -> tuple[Any, ...]:
    return (
        done.step,
        done.attempt,
        done.fence,
        uuid7(),
        done.outcome,
        *_kept(tenant, done),
        done.external_id,
        done.cost,
        done.error,
    )
