"""Bodies by keyed digest: put, fetched, and encrypted where their tool says they are sensitive."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import connection

from config.keys import keyed_digest
from interrupts.models import Content
from tenants import sealing
from tenants.scope import current_tenant_id

SEALED, OPEN = "sealed", ""  # how a body is kept
_PURPOSE = "content"
Buffer = bytes | memoryview  # what Django gives of a binary column


def seal(tenant: UUID, body: bytes) -> tuple[bytes, str]:
    """Return ``body`` encrypted for the tenant, and the word that says so."""
    return sealing.seal(body, _PURPOSE, tenant), SEALED


def unseal(tenant: UUID, body: bytes, cipher: str) -> bytes:
    """Return the body as it was put; tenants.sealing.SealBroken where it was changed."""
    return sealing.unseal(body, _PURPOSE, tenant) if cipher == SEALED else body


def put(body: bytes, *, sensitive: bool = False) -> bytes:
    """Keep ``body`` and return its digest; the same body again is the same row."""
    tenant = current_tenant_id()
    digest = keyed_digest(tenant, body)
    stored, cipher = seal(tenant, body) if sensitive else (body, OPEN)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO interrupts_content (tenant_id, digest, body, cipher)"
            " VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [tenant, digest, stored, cipher],
        )
    return digest


def get(digest: Buffer) -> bytes:
    """Return the body; Content.DoesNotExist where it was erased."""
    return get_many([digest])[bytes(digest)]


def get_many(digests: Iterable[Buffer | None]) -> dict[bytes, bytes]:
    """Return the bodies by digest, in one statement; Content.DoesNotExist if one is missing."""
    tenant = current_tenant_id()
    wanted = {bytes(digest) for digest in digests if digest is not None}
    if not wanted:
        return {}
    rows = Content.objects.filter(tenant_id=tenant, digest__in=wanted)
    found = {
        bytes(digest): unseal(tenant, bytes(body), cipher)
        for digest, body, cipher in rows.values_list("digest", "body", "cipher")
    }
    if missing := wanted - found.keys():
        raise Content.DoesNotExist(f"{len(missing)} bodies are not there")
    return found
