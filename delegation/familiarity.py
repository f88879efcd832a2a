"""What a person has approved of one tool's version: values, pairs of them, amounts, and days."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal
from typing import Any, Final

from delegation.canonical import Canonical
from delegation.predicates import Pair, Spent, above, all_pairs
from delegation.presets import Familiar, Settings
from delegation.records import DAY, Reason

DIGITS: Final = 2  # that a ceiling keeps
TOOL: Final = ("", "")
Value = tuple[str, str]


def down(amount: Decimal) -> Decimal:
    """Round down to two digits: a ceiling says no more than was approved."""
    if not amount:
        return Decimal(0)
    step = Decimal(1).scaleb(amount.adjusted() - DIGITS + 1)
    return amount.quantize(step, rounding=ROUND_DOWN) if amount >= step else amount


def text(amount: Decimal) -> str:
    """Write an amount without an exponent and without zeros that say nothing."""
    found = format(amount, "f")
    return found.rstrip("0").rstrip(".") if "." in found else found


@dataclass(slots=True)
class Seen:
    """How often a value was approved since it was last blamed, and when it was last looked at."""

    times: int = 0
    at: float = 0.0


@dataclass(slots=True)
class Day:
    """What ran or was approved on the newest day, and the largest levels approved on any."""

    number: int = -1
    spent: Spent = field(default_factory=Spent)
    calls: list[int] = field(default_factory=list)  # levels approved, the largest last
    sums: dict[str, list[Decimal]] = field(default_factory=dict)

    def today(self, number: int) -> Spent:
        return self.spent if number == self.number else Spent()

    def add(self, number: int, call: Canonical) -> Spent:
        spent = self.today(number)
        sums = {
            name: spent.sums.get(name, Decimal(0)) + amount for name, amount in call.amounts.items()
        }
        self.number, self.spent = number, Spent(spent.calls + 1, sums)
        return self.spent


@dataclass(slots=True)
class Familiarity:
    """The memory of one tool's version. Only attentive approvals are added to it."""

    seen: dict[Value, Seen] = field(default_factory=dict)
    pairs: dict[Pair, int] = field(default_factory=dict)
    tops: dict[tuple[Value, str], list[Decimal]] = field(default_factory=dict)
    day: Day = field(default_factory=Day)

    def credit(self, call: Canonical, at: float, kept: int) -> None:
        """An attentive approval of the call."""
        for value in call.values.items():
            known = self.seen.setdefault(value, Seen())
            known.times += 1
            known.at = max(known.at, at)
            for name, amount in call.amounts.items():
                _keep(self.tops.setdefault((value, name), []), amount, kept)
        for pair in all_pairs(call.values):
            self.pairs[pair] = self.pairs.get(pair, 0) + 1

    def credit_day(self, spent: Spent, kept: int) -> None:
        """What the day had come to with an attentive approval."""
        _keep(self.day.calls, spent.calls, kept)
        for name, total in spent.sums.items():
            _keep(self.day.sums.setdefault(name, []), total, kept)

    def strange(self, call: Canonical, at: float, need: Familiar, settings: Settings) -> Strange:
        """Return what of the call the person has not approved often enough, or not lately."""
        values, faded = [], []
        for value in call.values.items():
            known = self.seen.get(value)
            if known is None or known.times < need.m:
                values.append(value)
            elif at - known.at > settings.fade_days * DAY:
                faded.append(value)
        pairs = [one for one in all_pairs(call.values) if self.pairs.get(one, 0) < need.m2]
        return Strange(values, faded, pairs, self._above(call, need))

    def _above(self, call: Canonical, need: Familiar) -> list[Above]:
        found = []
        for name, amount in call.amounts.items():
            for value in call.values.items():
                ceiling = self.ceiling(value, name, need)
                if ceiling is None or amount > ceiling:
                    found.append(Above(name, value, ceiling))
        return found

    def ceiling(self, value: Value, name: str, need: Familiar) -> Decimal | None:
        """Return the largest amount that goes with the value; None: none was approved with it."""
        tops = self.tops.get((value, name), ())
        return down(tops[-need.k]) if len(tops) >= need.k else None

    def over_the_day(
        self, call: Canonical, number: int, need: Familiar, free: int
    ) -> Reason | None:
        """Return what the call would carry beyond a day's approved levels."""
        spent, calls = self.day.today(number), self.most_calls(need, free)
        if spent.calls + 1 > calls:
            return Reason("day_calls", (), {"ceiling": str(calls)})
        for name, amount in call.amounts.items():
            total, most = spent.sums.get(name, Decimal(0)) + amount, self.most_sum(name, need)
            if most is None or total > most:
                return Reason("day_sum", (name,), {"ceiling": text(most or Decimal(0))})
        return None

    def most_calls(self, need: Familiar, free: int) -> int:
        calls = self.day.calls
        return max(free, calls[-need.k] if len(calls) >= need.k else 0)

    def most_sum(self, name: str, need: Familiar) -> Decimal | None:
        sums = self.day.sums.get(name, ())
        return down(sums[-need.k]) if len(sums) >= need.k else None

    def blame(self, call: Canonical, strange: Strange, *, day: bool) -> bool:
        """Explain a refusal by what was new in it; say whether nothing was.

        What is new takes the blame alone. Where all was familiar, the call's pairs with an argument
        in it start over, and what was approved from its amounts up is forgotten for its values.
        """
        for value in (*strange.values, *strange.faded):
            self.seen[value] = Seen()
        if strange.values or strange.faded:
            return False
        for pair in strange.pairs:
            self.pairs[pair] = 0
        if strange.pairs or strange.above or day:
            return False
        self._forget(call)
        return True

    def _forget(self, call: Canonical) -> None:
        for pair in all_pairs(call.values):
            if not all(name.startswith("@") for name, _ in pair):
                self.pairs[pair] = 0
        for name, amount in call.amounts.items():
            for value in call.values.items():
                tops = self.tops.get((value, name), [])
                self.tops[value, name] = [one for one in tops if one < amount]


@dataclass(frozen=True, slots=True)
class Above:
    """An amount above what was approved with a value; None: nothing was."""

    name: str
    value: Value
    ceiling: Decimal | None

    @property
    def reason(self) -> Reason:
        by, value = self.value
        return above(self.name, value, text(self.ceiling or Decimal(0)), by)


@dataclass(frozen=True, slots=True)
class Strange:
    """What of a call is not familiar."""

    values: list[Value]
    faded: list[Value]
    pairs: list[Pair]
    above: list[Above]

    def reason(self, fade_days: int) -> Reason | None:
        """Return the first of it, as people are told."""
        if self.values:
            name, value = self.values[0]
            return Reason("unfamiliar_value", (name,), {"value": value})
        if self.faded:
            name, value = self.faded[0]
            return Reason("faded", (name,), {"value": value, "days": str(fade_days)})
        if self.pairs:
            (name, value), (other, second) = self.pairs[0]
            return Reason("unfamiliar_pair", (name, other), {"value": value, "other": second})
        return self.above[0].reason if self.above else None


def _keep(largest: list[Any], one: Any, kept: int) -> None:
    """Add one to the largest that are kept, in order."""
    insort(largest, one)
    if len(largest) > kept:
        del largest[0]
