"""What really happened, in a file: the truth that everybody else only hears of."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One effect, performed. `undoes` names the entry that it takes back."""

    number: int
    at: str
    caller: str
    tool: str
    key: str | None
    arguments: dict[str, Any]
    result: Any
    undoes: str | None = None

    @property
    def external_id(self) -> str:
        return f"shop-{self.number}"


class Ledger:
    """Appended to and never changed; an effect is on the disk before anybody is told of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._entries = [Entry(**json.loads(line)) for line in _lines(path)]

    @property
    def entries(self) -> Sequence[Entry]:
        return tuple(self._entries)

    def find(self, tool: str, key: str) -> Entry | None:
        return next((one for one in self._entries if (one.tool, one.key) == (tool, key)), None)

    def perform(
        self,
        caller: str,
        tool: str,
        key: str | None,
        arguments: dict[str, Any],
        result: Callable[[], Any],
        undoes: str | None = None,
    ) -> Entry:
        """Do it once under a key, however often it is asked for; without a key, each time."""
        with self._lock:
            if key is not None and (known := self.find(tool, key)):
                return known
            at = datetime.now(UTC).isoformat(timespec="seconds")
            number = len(self._entries) + 1
            entry = Entry(number, at, caller, tool, key, arguments, result(), undoes)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(entry), ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
            self._entries.append(entry)
            return entry


def _lines(path: Path) -> list[str]:
    """The whole lines of the file; the rest of one that a crash cut off was never performed."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return whole.splitlines()
