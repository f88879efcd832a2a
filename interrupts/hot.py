"""The hot write of a worker: record an outcome and intend the next step, in one round trip.

The statement is prepared, since its plan is worth keeping. In autocommit it is its own commit.
"""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from config.keys import current_key_id, keyed_digest, stream_key
from interrupts import content
from tenants.ids import uuid7
from tenants.statements import prepared

ADVANCE = (
    "SELECT recorded, verdict, more, step, fence, tool_version, arguments, cipher, digest, authority"
    " FROM interrupts_advance(%b::uuid, %b::uuid, %b::text, %b::bytea, %b::bytea, %b::text,"
    " %b::uuid, %b::uuid, %b::integer, %b::uuid, %b::text,"
    " %b::bytea, %b::bytea, %b::text, %b::text, %b::numeric, %b::text,"
    " %b::uuid, %b::integer, %b::float8)"
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
    """What came of it; see the function interrupts_advance for the words."""

    recorded: str
    verdict: str
    more: bool
    step: UUID | None
    start: Start | None


_NOTHING = (None,) * 11


def advance(
    tenant: UUID,
    run: UUID,
    *,
    worker: str,
    done: Done | None,
    attempt: UUID | None,
    epoch: int,
    seconds_left: float,
) -> Advanced:
    """Record ``done`` and intend the next step as ``attempt``; None for either leaves it out."""
    key = stream_key(run, current_key_id())
    record = _record(tenant, done) if done is not None else _NOTHING
    parameters = [tenant, run, *key, worker, *record, attempt, epoch, seconds_left]
    asked_at = time.monotonic()
    recorded, verdict, more, step, fence, version, *body, authority = prepared(ADVANCE, parameters)
    start = None
    if verdict in ("read", "intended"):
        fenced = fence if verdict == "intended" else None
        arguments, cipher, digest = body
        start = Start(step, fenced, version, arguments, cipher, digest, authority, asked_at)
    return Advanced(recorded, verdict, more, step, start)


def _record(tenant: UUID, done: Done) -> tuple[Any, ...]:
    digest = body = cipher = None
    if done.result is not None:
        digest, body, cipher = keyed_digest(tenant, done.result), done.result, ""
        if done.sensitive:
            body, cipher = content.seal(tenant, done.result)
    return (
        done.step,
        done.attempt,
        done.fence,
        uuid7(),
        done.outcome,
        digest,
        body,
        cipher,
        done.external_id,
        done.cost,
        done.error,
    )
