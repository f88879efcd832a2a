"""What a tenant file's secrets hold: named in the file, and kept out of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from approvals.tenantfile.reading import UnreadableFile
from tenants.services.secrets import MOST, value_fault

Entry = Mapping[str, Any]


def value_of(entry: Entry) -> str | None:
    """Return the value from the environment variable or the file that a secret's entry names.

    None where it names neither: its value was set in another way. Raises UnreadableFile, which
    quotes no value.
    """
    if "env" in entry:
        value = os.environ.get(entry["env"])
        if value is None:
            raise UnreadableFile(f"The environment has no {entry['env']}.")
    elif "file" in entry:
        value = _content(Path(entry["file"]))
    else:
        return None
    if fault := value_fault(value):
        raise UnreadableFile(fault)
    return value


def _content(path: Path) -> str:
    """Return what the file holds, without the end of its line."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST + 3)
    except OSError as fault:
        raise UnreadableFile(f"{path}: {fault.strerror}") from None
    return raw.decode("ascii", "replace").removesuffix("\n").removesuffix("\r")


def secret_faults(entries: list[Entry], known: frozenset[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the index, member and detail of each entry whose value is not to be had."""
    for index, entry in enumerate(entries):
        if "env" in entry and "file" in entry:
            yield index, "file", "A value comes from env or from a file."
            continue
        source = next((name for name in ("env", "file") if name in entry), "name")
        try:
            if value_of(entry) is None and entry["name"] not in known:
                told = "It holds no value yet: name env or file, or set it by `manage.py secret`."
                yield index, source, told
        except UnreadableFile as fault:
            yield index, source, str(fault)
