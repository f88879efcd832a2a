"""Bodies by keyed digest: put, fetched, and encrypted where their tool says they are sensitive."""

from __future__ import annotations

import os
from collections.abc import Iterable
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.db import connection

from config.keys import current_key_id, derive, keyed_digest
from interrupts.models import Content
from tenants.scope import current_tenant_id

NONCE = 12  # bytes, AES-GCM's


def seal(tenant: UUID, body: bytes) -> tuple[bytes, str]:
    """Return ``body`` encrypted under the tenant's current content cipher, and the key's id."""
    key_id, nonce = current_key_id(), os.urandom(NONCE)
    return nonce + _cipher(tenant, key_id).encrypt(nonce, body, None), key_id


def unseal(tenant: UUID, body: bytes, cipher: str) -> bytes:
    """Return what was sealed under the key ``cipher`` names; '' means it was not sealed."""
    if not cipher:
        return body
    return _cipher(tenant, cipher).decrypt(body[:NONCE], body[NONCE:], None)


def _cipher(tenant: UUID, key_id: str) -> AESGCM:
    return AESGCM(derive("content-cipher", tenant, key_id=key_id))


def put(body: bytes, *, sensitive: bool = False) -> bytes:
    """Keep ``body`` and return its digest; the same body again is the same row."""
    tenant = current_tenant_id()
    digest = keyed_digest(tenant, body)
    stored, cipher = seal(tenant, body) if sensitive else (body, "")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO interrupts_content (tenant_id, digest, body, cipher)"
            " VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [tenant, digest, stored, cipher],
        )
    return digest


def get(digest: bytes) -> bytes:
    """Return the body; Content.DoesNotExist where it was erased."""
    return get_many([digest])[bytes(digest)]


def get_many(digests: Iterable[bytes | None]) -> dict[bytes, bytes]:
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
