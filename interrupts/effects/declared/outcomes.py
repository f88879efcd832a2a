"""What an answer proves: the rules of a declaration, within what any declaration may claim.

The first rule that covers the status and holds of the body counts. An answer that cannot be read
is no ground for any of them, and a status that tells of a timeout proves nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from config.errors import Problem
from config.jsontext import canonical
from config.keeping import parse_kept
from interrupts.effects.declared.filling import Filler
from interrupts.effects.declared.scrubbing import Scrubber
from interrupts.effects.exchange import Answer
from interrupts.paths import MISSING, Path, look_up, parse_pointer

# Requests that timed out here or behind a proxy, by RFC 9110 and by the habit of large proxies.
TIMEOUTS: Final = frozenset({408, 499, 504, 522, 524, 598, 599})
_RANGE: Final = re.compile(r"([2-5])xx|([2-5][0-9]{2})(?:-([2-5][0-9]{2}))?")


class Means(StrEnum):
    """What a rule may say: of a call that was sent, of one that is asked about (PENDING), or of a
    receipt that is judged (PASSED, REJECTED)."""

    PERFORMED = "performed"
    FAILED = "failed"
    NOT_PERFORMED = "not_performed"
    UNKNOWN = "unknown"
    PENDING = "pending"
    PASSED = "passed"
    REJECTED = "rejected"


class Body(NamedTuple):
    """An answer's body: `value` is MISSING where it is empty, or where `fault` says why not."""

    value: Any
    fault: str | None = None
    is_replaced: bool = False  # something in it could not be kept as it was


@dataclass(frozen=True, slots=True)
class Rule:
    """What answers of these statuses mean, where each of these places holds one of its values."""

    low: int
    high: int
    where: tuple[tuple[Path, tuple[Any, ...]], ...]
    means: Means

    @classmethod
    def of(cls, declared: Mapping[str, Any]) -> "Rule":
        low, high = statuses_of(declared["status"]) or (0, 0)
        where = declared.get("where", {})
        return cls(
            low,
            high,
            tuple((parse_pointer(place), tuple(values)) for place, values in where.items()),
            Means(declared["means"]),
        )

    def covers(self, status: int) -> bool:
        return self.low <= status <= self.high

    def holds(self, body: Any, filler: Filler) -> bool:
        return all(_is_one_of(look_up(body, path), values, filler) for path, values in self.where)


def statuses_of(said: Any) -> tuple[int, int] | None:
    """Read `404`, `"404"`, `"4xx"` or `"400-499"`; None where it is none of them."""
    if isinstance(said, bool) or not isinstance(said, int | str):
        return None
    if (found := _RANGE.fullmatch(str(said))) is None:
        return None
    if found[1]:
        return int(found[1]) * 100, int(found[1]) * 100 + 99
    low, high = int(found[2]), int(found[3] or found[2])
    return (low, high) if low <= high else None


def _is_one_of(found: Any, values: Iterable[Any], filler: Filler) -> bool:
    if found is MISSING:
        return False
    written = canonical(found)
    wanted = (filler.text(one) if isinstance(one, str) else one for one in values)
    return any(one is not MISSING and canonical(one) == written for one in wanted)


def read_body(answer: Answer, scrubber: Scrubber) -> Body:
    """Read the JSON of an answer's body, with no secret left in it."""
    if answer.body is None:
        return Body(MISSING, answer.fault)
    if not answer.body.strip():
        return Body(MISSING)
    try:
        value, is_replaced = parse_kept(answer.body)
        return Body(scrubber.value(value), is_replaced=is_replaced)
    except Problem:
        return Body(MISSING, "it is not JSON as it should be")


def decide(rules: Sequence[Rule], status: int, body: Body, filler: Filler) -> Rule | None:
    """Return the rule that counts, UNDECIDED where none may, None where none is about it."""
    covering = [rule for rule in rules if rule.covers(status)]
    if not covering:
        return None
    if status in TIMEOUTS or body.fault is not None:
        return UNDECIDED
    return next((rule for rule in covering if rule.holds(body.value, filler)), None)


UNDECIDED: Final = Rule(0, 0, (), Means.UNKNOWN)
