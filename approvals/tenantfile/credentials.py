"""The file that credentials are given out in: complete or not there, and its owner's alone."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from approvals.tenantfile.applying import Applied

KINDS = ("agents", "users", "tools")


class CannotGiveOut(Exception):
    """The credentials cannot be written where they were asked for."""


class CredentialsFile:
    """Written beside its place before the commit, put in its place right after it.

    What a file there holds from before is kept: credentials are given out once. If the process
    ends between the two, they are in the file beside it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.staged = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        self.failure: str | None = None
        self._known = self._read()
        self._has_content = False
        self._check_folder()

    def stage(self, applied: Sequence[Applied]) -> bool:
        """Write what was issued, beside the file's place; return whether anything was."""
        issued = {one.tenant: one.issued for one in applied if one.issued}
        if not issued:
            return False
        content = {tenant: dict(kinds) for tenant, kinds in self._known.items()}
        for tenant, made in issued.items():
            known = content.setdefault(tenant, {})
            for kind in KINDS:
                known[kind] = _merged(known.get(kind, {}), getattr(made, kind))
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        try:
            self._write(text.encode())
        except OSError as fault:
            raise CannotGiveOut(f"{self.staged}: {fault.strerror}") from None
        self._has_content = True
        return True

    def publish(self) -> None:
        """Put the file in its place; ``failure`` says why it could not be, and where it is."""
        if not self._has_content:
            return
        self._has_content = False
        try:
            self.staged.replace(self.path)
        except OSError as fault:
            self.failure = f"{self.path}: {fault.strerror}; the credentials are in {self.staged}"

    def discard(self) -> None:
        """Remove what was staged and not put in its place: it was never valid."""
        if self._has_content:
            self._has_content = False
            self.staged.unlink(missing_ok=True)

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as fault:
            raise CannotGiveOut(f"{self.path}: {fault.strerror}") from None
        except ValueError:
            raise CannotGiveOut(f"{self.path}: is there already and holds no credentials") from None
        if not _is_credentials(found):
            raise CannotGiveOut(f"{self.path}: is there already and holds no credentials")
        return dict(found)

    def _check_folder(self) -> None:
        folder = self.path.parent
        if not folder.is_dir():
            raise CannotGiveOut(f"{folder}: no such folder")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise CannotGiveOut(f"{folder}: may not be written to")

    def _write(self, content: bytes) -> None:
        descriptor = os.open(self.staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _merged(known: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """Add what was made; of a person the password from before stays beside a new token."""
    merged = dict(known)
    for name, secret in made.items():
        before = known.get(name)
        if isinstance(before, dict) and isinstance(secret, dict):
            merged[name] = {**before, **secret}
        else:
            merged[name] = secret
    return merged


def _is_credentials(found: Any) -> bool:
    return isinstance(found, dict) and all(
        isinstance(kinds, dict)
        and set(kinds) <= set(KINDS)
        and all(isinstance(named, dict) for named in kinds.values())
        for kinds in found.values()
    )
