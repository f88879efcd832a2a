"""What a person has approved of one tool's version: values, pairs of them, amounts, and days."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from delegation.canonical import MARK, Canonical
from delegation.predicates import Pair, Spent, above, all_pairs
from delegation.presets import Familiar, Settings
from delegation.records import DAY, Reason, Risk

MOST_BLAMED: Final = 4  # that are counted
TOOL: Final = ("", "")  # in place of a value: whatever the values are
Value = tuple[str, str]


def text(amount: Decimal) -> str:
    """Write an amount without an exponent and without zeros that say nothing."""
    found = format(amount, "f")
    return found.rstrip("0").rstrip(".") if "." in found else found


@dataclass(slots=True)
class Seen:
    """How often a value was approved since it was last blamed, when it was last looked at, and how
    often it was blamed."""

    times: int = 0
    at: float = 0.0
    blamed: int = 0

    def is_enough(self, need: Familiar, again: int) -> bool:
        return self.times >= need.m + min(self.blamed, MOST_BLAMED) * again


@dataclass(slots=True)
class Day:
    """What the newest day came to, and the largest levels that were approved on any.

    `spent.calls` counts what was refused as well: a flood is one however it is answered.
    """

    number: int = -1
    spent: Spent = field(default_factory=Spent)
    calls: list[int] = field(default_factory=list)  # levels approved, the largest last
    sums: dict[str, list[Decimal]] = field(default_factory=dict)

    def today(self, number: int) -> Spent:
        return self.spent if number == self.number else Spent()

    def add(self, number: int, call: Canonical | None = None) -> Spent:
        """Count a call, and its amounts where it is given; return what the day has come to."""
        spent = self.today(number)
        sums = dict(spent.sums)
        for name, amount in call.amounts.items() if call else ():
            sums[name] = sums.get(name, Decimal(0)) + amount
        self.number, self.spent = number, Spent(spent.calls + 1, sums)
        return self.spent

    def credit(self, spent: Spent, kept: int) -> None:
        """An attentive approval that the day came to this with."""
        _keep(self.calls, spent.calls, kept)
        for name, total in spent.sums.items():
            _keep(self.sums.setdefault(name, []), total, kept)

    def forget(self, spent: Spent, call: Canonical) -> None:
        """A refusal that nothing else explains: levels from here up were not approved after all."""
        self.calls = [level for level in self.calls if level <= spent.calls]
        for name, amount in call.amounts.items():
            total = spent.sums.get(name, Decimal(0)) + amount
            self.sums[name] = [one for one in self.sums.get(name, ()) if one < total]


@dataclass(frozen=True, slots=True)
class Above:
    """An amount above what was approved, by the tool's ceiling or by that of a value."""

    name: str
    value: Value
    ceiling: Decimal | None

    @property
    def reason(self) -> Reason:
        by, value = self.value
        ceiling = text(self.ceiling or Decimal(0))
        return above(self.name, value or "this tool", ceiling, by or None)


@dataclass(frozen=True, slots=True)
class Strange:
    """What of a call is not familiar; `day` is what it would carry beyond a day's levels."""

    values: list[Value]
    faded: list[Value]
    pairs: list[Pair]
    above: list[Above]
    day: Reason | None

    @property
    def is_nothing(self) -> bool:
        return not (self.values or self.faded or self.pairs or self.above or self.day)

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
        return self.above[0].reason if self.above else self.day


@dataclass(slots=True)
class Familiarity:
    """The memory of one tool's version. Only attentive approvals are added to it.

    `split` are the argument and amount of which a refusal showed that ceilings differ by value.
    """

    seen: dict[Value, Seen] = field(default_factory=dict)
    pairs: dict[Pair, int] = field(default_factory=dict)
    tops: dict[tuple[Value, str], list[Decimal]] = field(default_factory=dict)
    split: set[tuple[str, str]] = field(default_factory=set)
    day: Day = field(default_factory=Day)

    def credit(self, call: Canonical, at: float, kept: int) -> None:
        """An attentive approval of the call."""
        for value in call.values.items():
            known = self.seen.setdefault(value, Seen())
            known.times += 1
            known.at = max(known.at, at)
        for pair in all_pairs(call.values):
            self.pairs[pair] = self.pairs.get(pair, 0) + 1
        for name, amount in call.amounts.items():
            for value in (TOOL, *call.values.items()):
                _keep(self.tops.setdefault((value, name), []), amount, kept)

    def strange(self, call: Canonical, at: float, risk: Risk, settings: Settings) -> Strange:
        """Return what of the call the person has not approved often enough, or not lately."""
        need, oldest = settings.familiar[risk], at - settings.fade_days * DAY
        values, faded = [], []
        for value in call.values.items():
            known = self.seen.get(value)
            if known is None or not known.is_enough(need, settings.again):
                values.append(value)
            elif known.at < oldest:
                faded.append(value)
        pairs = [one for one in all_pairs(call.values) if not self.is_known(one, need, settings)]
        over = self._over_the_day(call, int(at // DAY), need)
        return Strange(values, faded, pairs, list(self._above(call, need, settings)), over)

    def is_known(self, pair: Pair, need: Familiar, settings: Settings) -> bool:
        """Say whether the pair was approved together, or need not be."""
        if not settings.every_pair and any(name.startswith(MARK) for name, _ in pair):
            return True
        return self.pairs.get(pair, 0) >= need.m2

    def ceiling(self, value: Value, name: str, need: Familiar) -> Decimal | None:
        """Return the largest amount that goes with the value; None: none was approved with it."""
        tops = self.tops.get((value, name), ())
        return tops[-need.k] if len(tops) >= need.k else None

    def has_ceiling(self, value: Value, name: str, settings: Settings) -> bool:
        """Say whether an amount has a ceiling of its own by this value."""
        return value == TOOL or settings.every_ceiling or (value[0], name) in self.split

    def most_calls(self, need: Familiar) -> int:
        calls = self.day.calls
        return max(need.free, calls[-need.k] if len(calls) >= need.k else 0)

    def most_sum(self, name: str, need: Familiar) -> Decimal:
        sums = self.day.sums.get(name, ())
        return sums[-need.k] if len(sums) >= need.k else Decimal(0)

    def blame(self, call: Canonical, strange: Strange, need: Familiar, spent: Spent) -> bool:
        """Explain a refusal by what was new in the call; say whether nothing was.

        New values take the blame alone, then new pairs, then an amount or a day beyond what was
        approved. Where all was familiar, the call's values and pairs start over, and what was
        approved from its amounts up is forgotten. `spent` is what the day had come to before it.
        """
        if strange.values or strange.faded:
            for value in (*strange.values, *strange.faded):
                self.seen[value] = Seen(0, 0.0, self._times_blamed(value) + 1)
            return False
        for pair in strange.pairs:
            self.pairs[pair] = 0
        self._split(call, need)
        if not (strange.pairs or strange.above):
            self.day.forget(spent, call)
        if not strange.is_nothing:
            return False
        self._forget(call)
        return True

    def _above(self, call: Canonical, need: Familiar, settings: Settings) -> Iterator[Above]:
        for name, amount in call.amounts.items():
            for value in (*call.values.items(), TOOL):
                if self.has_ceiling(value, name, settings):
                    ceiling = self.ceiling(value, name, need)
                    if ceiling is None or amount > ceiling:
                        yield Above(name, value, ceiling)

    def _over_the_day(self, call: Canonical, number: int, need: Familiar) -> Reason | None:
        spent, calls = self.day.today(number), self.most_calls(need)
        if spent.calls + 1 > calls:
            return Reason("day_calls", (), {"ceiling": str(calls)})
        for name, amount in call.amounts.items():
            total, most = spent.sums.get(name, Decimal(0)) + amount, self.most_sum(name, need)
            if total > most and spent.calls >= need.free:
                return Reason("day_sum", (name,), {"ceiling": text(most)})
        return None

    def _times_blamed(self, value: Value) -> int:
        return self.seen[value].blamed if value in self.seen else 0

    def _split(self, call: Canonical, need: Familiar) -> None:
        """A refused amount is beyond what was approved with some values: those do matter."""
        for name, amount in call.amounts.items():
            for value in call.values.items():
                ceiling = self.ceiling(value, name, need)
                if not value[0].startswith(MARK) and (ceiling is None or amount > ceiling):
                    self.split.add((value[0], name))

    def _forget(self, call: Canonical) -> None:
        for pair in all_pairs(call.values):
            if not all(name.startswith(MARK) for name, _ in pair):
                self.pairs[pair] = 0
        for name, amount in call.amounts.items():
            for value in (TOOL, *call.values.items()):
                tops = self.tops.get((value, name), [])
                self.tops[value, name] = [one for one in tops if one < amount]
        for name, text_ in call.values.items():
            known = self.seen[name, text_]
            known.times = 0
            known.blamed += not name.startswith(MARK)


def _keep(largest: list[Any], one: Any, kept: int) -> None:
    """Add one to the largest that are kept, in order."""
    insort(largest, one)
    if len(largest) > kept:
        del largest[0]
