"""What is known of one person and one tool's version: memory, strikes, and counts for its page."""

from __future__ import annotations

from dataclasses import dataclass, field

from delegation.familiarity import Familiarity
from delegation.presets import Settings
from delegation.records import Tool


@dataclass(slots=True)
class Evidence:
    """Counts of what people see beside a rule; `careless` taught nothing."""

    answers: int = 0
    clean: int = 0
    refused: int = 0
    careless: int = 0
    incidents: int = 0
    ran: int = 0
    first_at: float | None = None
    last_at: float | None = None

    def answered(self, at: float, *, refused: bool) -> None:
        self.answers += 1
        self.refused += refused
        self.clean += not refused
        self.first_at = at if self.first_at is None else self.first_at
        self.last_at = at


@dataclass(slots=True)
class Unit:
    """One tool's version, with the names of what is known around its calls.

    `clean` counts familiar answers without a refusal, `recent` holds the newest of them with 1 for
    a refusal, `left` is how many clean answers it takes until calls run again.
    """

    tool: Tool
    context: tuple[str, ...]
    memory: Familiarity = field(default_factory=Familiarity)
    evidence: Evidence = field(default_factory=Evidence)
    clean: int = 0
    left: int = 0
    recent: list[int] = field(default_factory=list)

    def approved(self, settings: Settings) -> None:
        """Count an attentive approval of a call that was familiar."""
        self._remember(0, settings)
        self.clean += 1
        self.left = max(0, self.left - 1)

    def refused(self, settings: Settings) -> None:
        """Count a refusal of a call that was familiar."""
        self._remember(1, settings)
        self.hold(settings.after_refusal)
        if sum(self.recent) >= settings.strikes:
            self.hold(settings.quarantine)
            self.recent = []

    def hold(self, answers: int) -> None:
        """Let nothing run until there are so many clean answers."""
        self.left = max(self.left, answers)

    def _remember(self, refused: int, settings: Settings) -> None:
        self.recent = [*self.recent, refused][-settings.window :]
