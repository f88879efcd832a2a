"""Secrets at rest: AES-256-GCM under keys that live outside the database (config/keys.py).

A sealed value names the master key it stands under, so that a rotated key still opens what it
closed, and it is bound to its purpose and place: moved to another row it does not open.
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from config.keys import current_key_id, derive

_NONCE = 12  # bytes; NIST SP 800-38D, 8.2.2: random nonces, far below 2^32 a key


class SealBroken(Exception):
    """What was sealed was changed, moved to another place, or is under another key."""


def seal(plain: bytes, purpose: str, *place: object) -> bytes:
    """Return ``plain`` encrypted and authenticated for ``purpose`` at ``place``."""
    key_id = current_key_id()
    name = key_id.encode()
    nonce = os.urandom(_NONCE)
    box = AESGCM(derive(purpose, *place, key_id=key_id)).encrypt(nonce, plain, name)
    return bytes([len(name)]) + name + nonce + box


def unseal(sealed: bytes, purpose: str, *place: object) -> bytes:
    """Return what ``seal`` closed; SealBroken if it is not that, or its key is not known."""
    name, nonce, box = _parts(sealed)
    try:
        return AESGCM(derive(purpose, *place, key_id=name.decode())).decrypt(nonce, box, name)
    except (InvalidTag, KeyError, UnicodeDecodeError):
        raise SealBroken(SealBroken.__doc__) from None


def _parts(sealed: bytes) -> tuple[bytes, bytes, bytes]:
    end = 1 + sealed[0] if sealed else 0
    name, nonce, box = sealed[1:end], sealed[end : end + _NONCE], sealed[end + _NONCE :]
    if not name or len(nonce) < _NONCE:
        raise SealBroken(SealBroken.__doc__)
    return name, nonce, box
