"""Imprints: keyed digests by which a journal vouches for a row without saying what is in it.

The key is the stream's, outside the database, so a body that was erased cannot be guessed from its
imprint. What is hashed begins with a zero byte; an entry's text, which the same key signs, is
preceded by the hash before it, or by nothing, and begins with a brace.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from config.jsontext import canonical
from config.keys import current_key_id, journal_key

PREFIX: Final = b"\0"


def of_text(stream: UUID, text: str | None, *, key_id: str | None = None) -> str | None:
    """Return the imprint of a text; None of none. ``key_id``: the current key where absent."""
    if text is None:
        return None
    key = journal_key(stream, key_id or current_key_id())
    return hmac.digest(key, PREFIX + text.encode(), "sha256").hex()


def of_value(stream: UUID, value: Any, *, key_id: str | None = None) -> str:
    """Return the imprint of what JSON can say, and of ids, times, numbers and bytes in it."""
    text = canonical(_plain(value)).decode()
    return of_text(stream, text, key_id=key_id) or ""


def of_row(stream: UUID, row: Any, columns: Sequence[str], *, key_id: str | None = None) -> str:
    """Return the imprint of these columns of a row, as they are stored."""
    return of_value(stream, [getattr(row, column) for column in columns], key_id=key_id)


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one kind of value each
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, UUID):
        return str(value)
    return value
