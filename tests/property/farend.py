"""The far end of the machine's tools: it answers as it is told to, and keeps its own ledger."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from interrupts.effects import Call, Finding, NotPerformed, Observed, Outcome, Reconciled, Refused
from interrupts.effects.base import Preview
from tests.property.commits import Crash
from tests.property.world import TOOLS

LANDS_AFTER = 8.0  # seconds, within the 10 that a tool is waited for before it is asked
ENDS = (
    *("ok", "ok", "refused", "busy", "lost", "not begun"),
    *("late", "late", "dies before", "dies after"),
)
ANSWERS = ("truth", "truth", "pending", "cannot tell", "breaks off")


@dataclass
class Ledger:
    """Counts what was performed by idempotency key, honestly and without any help of its own."""

    begins: Callable[[Call], None]  # told of every call before anything else
    undoes: Callable[[Call], None]
    ends: list[tuple[str, Callable[[], None] | None]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    performed: Counter[str] = field(default_factory=Counter)
    undone: set[str] = field(default_factory=set)
    landing: list[tuple[str, str, float]] = field(default_factory=list)  # tool, key, since when
    moved: float = 0.0  # by how much the clock was moved, beside what it went by itself
    revision: int = 0  # of what previews say
    calls: int = 0

    def execute(self, arguments: dict[str, Any], call: Call) -> Any:
        self.calls += 1
        self.land()
        self.begins(call)
        end, meanwhile = self.ends.pop(0) if self.ends else ("ok", None)
        if meanwhile is not None:
            meanwhile()
        if end == "busy":
            raise NotPerformed("busy")
        if end == "refused":
            raise Refused("no")
        self._act(end, call)
        if end.startswith("dies"):
            connection.close()
            raise Crash
        if end != "ok":
            raise RuntimeError("the connection broke off")
        return Observed(Outcome.SUCCEEDED, {"n": arguments["n"]}, external_id=call.step[-6:])

    def _act(self, end: str, call: Call) -> None:
        if TOOLS[call.tool]["effect"] == "read" or end in ("not begun", "dies before"):
            return
        if end == "late":
            self.landing.append((call.tool, call.idempotency_key, self.now))
        else:
            self.perform(call.tool, call.idempotency_key)

    def perform(self, tool: str, key: str) -> None:
        """Count it; what is idempotent is harmless to repeat."""
        if TOOLS[tool]["effect"] == "idempotent":
            self.performed[key] = 1
        else:
            self.performed[key] += 1

    @property
    def now(self) -> float:
        return time.monotonic() + self.moved

    def passes(self, seconds: float) -> None:
        self.moved += seconds
        self.land()

    def land(self) -> None:
        """Let calls land whose answer was lost: late, but before they may be asked about."""
        for tool, key, since in self.landing[:]:
            if self.now - since >= LANDS_AFTER:
                self.landing.remove((tool, key, since))
                self.perform(tool, key)

    def lands(self, key: str) -> bool:
        self.land()
        return any(pending == key for _, pending, _ in self.landing)

    def reconcile(self, arguments: dict[str, Any], call: Call) -> Reconciled:
        self.land()
        answer = self.answers.pop(0) if self.answers else "truth"
        if answer == "breaks off":
            raise RuntimeError("nobody answers")
        if answer != "truth":
            return Reconciled(Finding.PENDING if answer == "pending" else Finding.CANNOT_TELL)
        if self.performed[call.idempotency_key]:
            return Reconciled(Finding.PERFORMED, {"n": arguments["n"]})
        return Reconciled(Finding.NOT_PERFORMED)

    def preview(self, arguments: dict[str, Any], call: Call) -> Preview:
        return Preview(f"{call.tool} {arguments['n']}: {self.revision}", [], [], 30.0)

    def undo(
        self, arguments: dict[str, Any], call: Call, result: Any, external_id: str | None
    ) -> Any:
        self.undoes(call)
        end, meanwhile = self.ends.pop(0) if self.ends else ("ok", None)
        if meanwhile is not None:
            meanwhile()
        if end == "refused":
            raise Refused("no")
        if end not in ("busy", "not begun", "dies before"):
            self.undone.add(call.idempotency_key)
        if end.startswith("dies"):
            connection.close()
            raise Crash
        if end != "ok":
            raise RuntimeError("the connection broke off")
        return None
