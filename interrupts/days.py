"""What an agent's runs use in a day: counted in one row, whichever run it is.

The row is locked as late as it can be: at the first thing that depends on what is left of today,
else when the work is written. Days are locked after their runs, today's first and older ones after
it, the newest first, so that no two pieces of work wait for each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from interrupts import locks
from interrupts.models import AgentDay

COUNTED = ("steps", "cost", "reserved_cost", "seconds", "tokens")


def day_of(now: datetime) -> date:
    """Return the UTC day: tenants have no time zone of their own."""
    return now.astimezone(UTC).date()


def whole_at(day: date) -> datetime:
    """Return when the budget of a day is whole again: as the next one begins."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)


@dataclass(slots=True)
class Days:
    """The days that one piece of work counts in, and what it has yet to count."""

    agent: UUID
    rows: dict[date, AgentDay] = field(default_factory=dict)
    changed: set[date] = field(default_factory=set)
    later: dict[date, dict[str, Decimal]] = field(default_factory=dict)

    def today(self, now: datetime) -> AgentDay:
        """Return today's row, locked till the transaction ends; it begins with the first to ask."""
        return self._locked(day_of(now))

    def add(self, now: datetime, day: date, more: Mapping[str, Decimal]) -> None:
        """Count this in a day, today at once and an older one when the work is written."""
        if day == day_of(now):
            _count(self.today(now), more)
            self.changed.add(day)
            return
        counts = self.later.setdefault(day, defaultdict(Decimal))
        for name, amount in more.items():
            counts[name] += amount

    def write(self) -> None:
        """Write what was counted."""
        for day in sorted(self.later, reverse=True):
            _count(self._locked(day), self.later[day])
        for day in sorted({*self.changed, *self.later}, reverse=True):
            self.rows[day].save(update_fields=[*COUNTED, "extended"])
        self.changed, self.later = set(), {}

    def _locked(self, day: date) -> AgentDay:
        if day not in self.rows:
            self.rows[day] = locks.lock_day(self.agent, day)
        return self.rows[day]


def _count(row: AgentDay, more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        setattr(row, name, getattr(row, name) + amount)
