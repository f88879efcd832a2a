"""A rule as its templates have it: its card, with the figures that are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

from delegation.models import Delegation
from delegation.records import DAY
from delegation.selectors import Card


@dataclass(frozen=True, slots=True)
class Shown:
    """A card with its shares in hundredths."""

    card: Card
    own: bool = True  # whoever looks at it is whom it speaks for

    @property
    def rule(self) -> Delegation:
        return self.card.delegation

    @property
    def share(self) -> int | None:
        """How much of the day's calls is used; None: they have no bound."""
        day = self.card.used_today
        if day.calls_limit is None:
            return None
        return min(100, 100 * day.calls // max(day.calls_limit, 1))

    @property
    def fine(self) -> int:
        return self.card.checks - self.card.checks_refused

    @property
    def evidence(self) -> str:
        """The answers that a learned rule rests on, in words; nothing of one by hand."""
        found = self.rule.evidence.get("evidence", {})
        if not found.get("answers"):
            return ""
        days = max(1, math.ceil(((found["last_at"] or 0) - (found["first_at"] or 0)) / DAY))
        whose = "your" if self.own else "their"
        told = f"From {found['answers']} of {whose} answers over {days} day{'s'[: days > 1]}"
        refused = found["refused"] + found["incidents"]
        return f"{told}, {refused or 'none'} of them refused or undone"

    @property
    def checked(self) -> str:
        """How much of what it allows is asked all the same."""
        return f"about {round(100 * self.rule.check_share)} %"
