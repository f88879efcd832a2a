"""Journal streams: who did what when, in an order that can be proved.

The database composes the text, reads the clock and extends the chain, under the lock of the row
that heads the stream; the key comes from outside it, one per stream.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection

from config.keys import StreamKey, current_key_id, stream_key
from tenants.scope import current_tenant_id
from tenants.statements import prepared


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: an agent, a user, the system itself or a delegation."""

    kind: str
    id: str

    @property
    def text(self) -> str:
        return json.dumps({"id": self.id, "kind": self.kind}, separators=(",", ":"))

    @property
    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "id": self.id}

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


SYSTEM = Actor("system", "abeyance")
# An array takes longer to send than its lines: JSON breaks none, nor does the kind of an entry.
_EXTEND: Final = (
    "SELECT seq, head FROM tenants_journal_extend_by(%b::uuid, %b::uuid, %b::bigint, %b::bytea,"
    " %b::timestamptz, %b::text, %b::bytea, %b::bytea, string_to_array(%b::text, chr(10)),"
    " string_to_array(%b::text, chr(10)), string_to_array(%b::text, chr(10)))"
)


class Entry(NamedTuple):
    kind: str
    data: Mapping[str, Any] = {}
    by: Actor | None = None  # where it is not whoever acts

    @property
    def text(self) -> str:
        return json.dumps(
            self.data, separators=(",", ":"), sort_keys=True, ensure_ascii=False, default=str
        )


@dataclass(slots=True)
class Pending:
    """Entries gathered under a lock, written together at the end of the transaction."""

    entries: list[Entry] = field(default_factory=list)

    def note(self, kind: str, **data: Any) -> None:
        self.entries.append(Entry(kind, data))


def key_of(stream: UUID) -> StreamKey:
    return stream_key(stream, current_key_id())


def extend(
    stream: UUID, *, seq: int, head: bytes, at: datetime, actor: Actor, entries: Sequence[Entry]
) -> tuple[int, bytes]:
    """Append ``entries`` after the stream's ``seq`` and hash ``head``; return the new head.

    Each is told as its own speaker's, else as ``actor``'s; whoever speaks, one statement writes all.
    The caller holds the lock of the row that heads the stream, and stores what is returned. ``at``
    is the database's clock read under that lock: the times in the rows it writes are the entries'.
    """
    told_by = {by: (by or actor).text for by in {entry.by for entry in entries}}
    row = prepared(
        _EXTEND,
        [
            current_tenant_id(),
            stream,
            seq,
            head,
            at,
            *key_of(stream),
            "\n".join([told_by[entry.by] for entry in entries]),
            "\n".join([entry.kind for entry in entries]),
            "\n".join([entry.text for entry in entries]),
        ],
    )
    return row[0], bytes(row[1])


def append_to_tenant(actor: Actor, *entries: Entry) -> None:
    """Append to the current tenant's stream; takes the tenant row's lock till the commit."""
    tenant = current_tenant_id()
    key = key_of(tenant)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tenants_journal_append(%s, %s, %s, %s, %s, %s, %s)",
            [
                tenant,
                *key,
                actor.text,
                [entry.kind for entry in entries],
                [entry.text for entry in entries],
            ],
        )
