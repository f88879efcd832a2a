"""Keys derived from the master keys, which live outside the database and are named by an id.

A key is rotated by adding a master key and making it the current one: what was written under the
old one names it and stays verifiable, nothing is rewritten.
"""

import hashlib
import hmac
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from django.conf import settings

_BLOCK = 64  # bytes, SHA-256's block (RFC 2104)


class StreamKey(NamedTuple):
    """The key of one journal stream, as the two padded blocks an HMAC is made of (RFC 2104)."""

    key_id: str
    inner: bytes
    outer: bytes


def current_key_id() -> str:
    return str(settings.ABEYANCE_CURRENT_KEY)


def derive(purpose: str, *names: object, key_id: str | None = None) -> bytes:
    """Return the 32-byte key for ``purpose`` and ``names``; KeyError if the id is not known."""
    return _derived(settings.ABEYANCE_MASTER_KEYS[key_id or current_key_id()], purpose, *names)


def _derived(master: bytes, purpose: str, *names: object) -> bytes:
    # Length-prefixed, so that no two lists of names give the same message.
    message = b"".join(
        len(part).to_bytes(4, "big") + part for part in (str(n).encode() for n in (purpose, *names))
    )
    return hmac.digest(master, message, "sha256")


def journal_key(stream: UUID, key_id: str) -> bytes:
    """Return the chain key of a journal stream under the master key ``key_id``; KeyError if unknown."""
    return _journal_key(settings.ABEYANCE_MASTER_KEYS[key_id], stream)


@lru_cache(maxsize=4096)
def _journal_key(master: bytes, stream: UUID) -> bytes:
    return _derived(master, "journal", stream)


@lru_cache(maxsize=4096)
def stream_key(stream: UUID, key_id: str) -> StreamKey:
    """Return a stream's chain key as the blocks that the database is given."""
    key = journal_key(stream, key_id).ljust(_BLOCK, b"\0")
    return StreamKey(key_id, bytes(b ^ 0x36 for b in key), bytes(b ^ 0x5C for b in key))


@lru_cache(maxsize=1024)
def content_key(tenant: UUID, key_id: str) -> bytes:
    """Return the key under which a tenant's bodies are addressed, so that no digest is guessable."""
    return derive("content", tenant, key_id=key_id)


def keyed_digest(tenant: UUID, body: bytes) -> bytes:
    """Return the 32-byte HMAC-SHA256 of ``body`` under the tenant's current content key."""
    return hmac.digest(content_key(tenant, current_key_id()), body, "sha256")


def secret_hash(secret: str) -> bytes:
    """Return the SHA-256 of a key or token of ours: 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode()).digest()
