"""Chains: each link of a stream computed anew, with a key that lives outside the database."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from config.keys import journal_key
from interrupts.verification.faults import Broken, Fault
from tenants import imprints
from tenants.models import JournalEntry

CHUNK: Final = 2000
COLUMNS: Final = ("seq", "kind", "at", "text", "key_id", "hash")


class Row(NamedTuple):
    """An entry as it is stored."""

    seq: int
    kind: str
    at: datetime
    text: str
    key_id: str
    hash: bytes | memoryview


class Said(NamedTuple):
    """An entry whose link holds: what was said, by whom and when."""

    stream: UUID
    seq: int
    kind: str
    at: datetime
    actor: Mapping[str, str]
    data: Mapping[str, Any]
    key_id: str
    hash: bytes

    def imprint(self, row: Any, columns: Iterable[str]) -> str:
        """Return the imprint of a row as this entry would have it."""
        return imprints.of_row(self.stream, row, tuple(columns), key_id=self.key_id)

    def vouches_for(self, row: Any, columns: Iterable[str], name: str = "imprint") -> bool:
        """Whether the row is as this entry would have it; one that has no imprint of it is silent."""
        return name not in self.data or self.data[name] == self.imprint(row, columns)

    def imprint_of(self, text: str | None) -> str | None:
        return imprints.of_text(self.stream, text, key_id=self.key_id)

    @property
    def by(self) -> str:
        return f"{self.actor['kind']}:{self.actor['id']}"


def said(stream: UUID, seq: int, head: bytes) -> Iterator[Said]:
    """Yield a stream's entries, each proved; Broken at the first that is not what was written.

    ``seq`` and ``head`` are what the row that heads the stream says.
    """
    rows = JournalEntry.objects.filter(stream=stream).order_by("seq")
    named = (Row(*one) for one in rows.values_list(*COLUMNS).iterator(CHUNK))
    yield from proved(stream, named, after=0, link=b"", seq=seq, head=head)


def proved(
    stream: UUID, rows: Iterable[Row], *, after: int, link: bytes, seq: int, head: bytes
) -> Iterator[Said]:
    """Yield the entries that follow ``after``, whose hash is ``link``, up to the head."""
    for row in rows:
        after += 1
        one = _prove(stream, row, after, link)
        link = one.hash
        yield one
    if (after, link) != (seq, head):
        raise _broken(stream, after, f"the head says {seq} entries and another hash")


def _prove(stream: UUID, row: Row, expected: int, before: bytes) -> Said:
    if row.seq != expected:
        raise _broken(stream, expected, f"is missing: the next there is {row.seq}")
    try:
        key = journal_key(stream, row.key_id)
    except KeyError:
        raise _broken(
            stream, expected, f"is under the key {row.key_id!r}, which nobody has"
        ) from None
    link = hmac.digest(key, before + row.text.encode(), "sha256")
    if link != bytes(row.hash):
        raise _broken(
            stream, expected, "its hash is not its text's, under its key, after the entry before"
        )
    text = json.loads(row.text)
    if (text["seq"], text["kind"]) != (row.seq, row.kind) or instant(text["at"]) != row.at:
        raise _broken(stream, expected, "its columns are not what its text says")
    return Said(stream, row.seq, row.kind, row.at, text["actor"], text["data"], row.key_id, link)


def _broken(stream: UUID, seq: int, what: str) -> Broken:
    return Broken(Fault(stream, f"entry {seq}", what))


def instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
