"""The service's own secrets: from the environment, else made once in the data folder."""

import base64
import binascii
import json
import os
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from config.supervisor.failures import CannotStart
from config.supervisor.paths import DataFolder, make_private

MASTER_KEY_BYTES = 32


@dataclass(frozen=True)
class Keys:
    """Django's secret key, and the master keys by id with the id of the one in use."""

    secret_key: str
    master: dict[str, bytes]
    current: str


def load_keys(folder: DataFolder, environ: Mapping[str, str]) -> Keys:
    """Read the keys; what the environment does not give is made in the data folder at first use.

    ABEYANCE_MASTER_KEYS holds `id:base64` of 32 bytes each, separated by commas; the first is the
    one in use unless ABEYANCE_CURRENT_KEY names another.
    """
    secret_key = environ.get("ABEYANCE_SECRET_KEY")
    listed = environ.get("ABEYANCE_MASTER_KEYS")
    if not (secret_key and listed):
        kept = _kept(folder)
        secret_key = secret_key or kept["secret_key"]
        listed = listed or kept["master_keys"]
    master = _parse(listed)
    current = environ.get("ABEYANCE_CURRENT_KEY") or next(iter(master))
    if current not in master:
        raise CannotStart(f"ABEYANCE_CURRENT_KEY names no master key: {current}")
    return Keys(secret_key, master, current)


def _parse(listed: str) -> dict[str, bytes]:
    keys: dict[str, bytes] = {}
    for entry in listed.split(","):
        key_id, _, text = entry.strip().partition(":")
        try:
            keys[key_id] = base64.b64decode(text, validate=True)
        except binascii.Error:
            keys[key_id] = b""
        if not key_id or len(keys[key_id]) != MASTER_KEY_BYTES:
            raise CannotStart("a master key is `id:` and the base64 of 32 bytes")
    return keys


def _kept(folder: DataFolder) -> dict[str, str]:
    try:
        if not folder.keys.exists():
            _make(folder)
        kept: dict[str, str] = json.loads(folder.keys.read_text())
        return {name: kept[name] for name in ("secret_key", "master_keys")}
    except (ValueError, KeyError) as fault:
        raise CannotStart(f"{folder.keys} is damaged; restore it from a backup") from fault
    except PermissionError as fault:
        raise CannotStart(f"no right to read {folder.keys}: {fault.strerror}") from fault


def _make(folder: DataFolder) -> None:
    """Write new keys whole and never over existing ones, whoever else does so meanwhile."""
    make_private(folder.root, mode=folder_mode())
    entry = f"k1:{base64.b64encode(secrets.token_bytes(MASTER_KEY_BYTES)).decode()}"
    document = {"secret_key": secrets.token_urlsafe(48), "master_keys": entry}
    handle, partial = tempfile.mkstemp(prefix=".keys-", dir=folder.root)
    with os.fdopen(handle, "w") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    try:
        folder.keys.hardlink_to(partial)
    except FileExistsError:
        return
    finally:
        Path(partial).unlink()


def folder_mode() -> int:
    """Private; under root passable, so that PostgreSQL's user reaches its own folder inside."""
    return 0o711 if os.geteuid() == 0 else 0o700
