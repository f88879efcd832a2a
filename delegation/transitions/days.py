"""What ran under a rule on a day, in a row that is locked."""

from __future__ import annotations

from decimal import Decimal

from delegation.canonical import Canonical
from delegation.familiarity import text
from delegation.models import DelegationDay


def count(day: DelegationDay, call: Canonical) -> None:
    """Add a call to the day; whoever holds its lock saves it."""
    before = day.spent
    sums = {
        name: text(before.sums.get(name, Decimal(0)) + amount)
        for name, amount in call.amounts.items()
    }
    day.calls, day.sums = before.calls + 1, {**day.sums, **sums}
