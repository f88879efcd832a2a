"""Rules as closed JSON: what one allows, whether a change only narrows it, and its digest.

A predicate is

    {"all": [{"f": "@agent", "in": ["agent-a"]},
             {"f": "tier", "in": ["basic", "gold"]},
             {"f": "amount", "le": "75"},
             {"f": "order_id", "any": true}],
     "except_pairs": [[["@agent", "agent-b"], ["tier", "gold"]]],
     "ceilings": [{"f": "amount", "le": "40", "when": ["tier", "basic"]}],
     "per_day": {"calls": 5, "free": 3, "sum": {"amount": "120"}}}

and allows a call whose fields are exactly those under `all`, each of them as it says, that holds
no excepted pair and stays below each ceiling whose value it has and below what a day may come to.
Amounts are decimals as text. The sums are not looked at for the first `free` calls of a day.
`per_day` may be missing; there are no other operators.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations
from typing import Any, Final

from delegation.canonical import Canonical, Unclear, amount
from delegation.records import AGENT, Reason, plain_name

Predicate = Mapping[str, Any]
Pair = tuple[tuple[str, str], tuple[str, str]]

MEMBERS: Final = frozenset({"all", "except_pairs", "ceilings", "per_day"})
MOST_VALUES: Final = 5_000
OPERATORS: Final = frozenset({"in", "le", "any"})


class Widens(ValueError):
    """A change would let a rule allow more; the text says where."""


class Unreadable(ValueError):
    """A predicate is none: the text says which part, and `at` may point to it."""

    def __init__(self, told: str, at: str = "") -> None:
        super().__init__(told)
        self.at = at


@dataclass(frozen=True, slots=True)
class Spent:
    """What ran and was approved of a tool on one day so far: calls, and the sum of each amount."""

    calls: int = 0
    sums: Mapping[str, Decimal] = field(default_factory=dict)


def matches(predicate: Predicate, call: Canonical, spent: Spent | None = None) -> bool:
    """Say whether the rule allows the call, after what was spent on its day where that is given."""
    return refusal(predicate, call, spent) is None


def refusal(predicate: Predicate, call: Canonical, spent: Spent | None = None) -> Reason | None:
    """Return why the rule does not allow the call; None: it does."""
    return (
        _unnamed(predicate, call)
        or _values_refused(predicate, call)
        or _pairs_refused(predicate, call)
        or _amounts_refused(predicate, call)
        or (None if spent is None else _day_refused(predicate, call, spent))
    )


def sha256(predicate: Predicate) -> str:
    """Return the digest of the predicate's canonical form, as `sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(canonical_json(predicate)).hexdigest()


def canonical_json(value: Any) -> bytes:
    """Write JSON in one way: members sorted, no blanks, text as it is."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def check(predicate: Any) -> None:
    """See that this is a predicate and nothing beside, each bound about something that it names.

    Raises `Unreadable`.
    """
    _check_shape(predicate)
    _check_names(predicate)


def _check_shape(predicate: Any) -> None:
    if not isinstance(predicate, dict) or not set(predicate) <= MEMBERS:
        raise Unreadable("A rule has `all`, `except_pairs`, `ceilings` and `per_day` only.")
    names = [_check_condition(one) for one in _list(predicate, "all")]
    if AGENT not in names or len(set(names)) != len(names):
        raise Unreadable("`all` names each field once, and the agent.")
    for one in _list(predicate, "except_pairs"):
        if not (isinstance(one, list) and len(one) == 2 and all(map(_is_value, one))):
            raise Unreadable("A pair is two of `[field, value]`.")
    for one in _list(predicate, "ceilings"):
        if (
            not isinstance(one, dict)
            or set(one) != {"f", "le", "when"}
            or not _is_value(one["when"])
        ):
            raise Unreadable("A ceiling has `f`, `le` and `when`: `[field, value]`.")
        _decimal(one["le"])
    _check_day(predicate.get("per_day", {}))


def _check_names(predicate: Predicate) -> None:
    """See that bounds are of amounts and by values that `all` names: no other bounds a call."""
    amounts = {one["f"] for one in predicate["all"] if "le" in one}
    values = {one["f"] for one in predicate["all"] if "in" in one}
    for at, pair in enumerate(predicate.get("except_pairs", ())):
        if {name for name, _ in pair} - values or pair[0][0] == pair[1][0]:
            raise Unreadable("A pair is of two fields that are lists.", f"/except_pairs/{at}")
    for at, one in enumerate(predicate.get("ceilings", ())):
        if one["f"] not in amounts:
            raise Unreadable("A ceiling is of an amount.", f"/ceilings/{at}/f")
        if one["when"][0] not in values:
            raise Unreadable("A ceiling holds by a list's value.", f"/ceilings/{at}/when")
    if strange := sorted(predicate.get("per_day", {}).get("sum", {}).keys() - amounts):
        raise Unreadable(f"`{strange[0]}` is no amount.", "/per_day/sum")


def narrow(predicate: Predicate, change: Predicate) -> Predicate:
    """Return the rule with members replaced by those of the change, which may only narrow it.

    Raises `Unreadable` for what is no rule, `Widens` for what would allow more.
    """
    wanted = {**predicate, **change}
    _check_shape(wanted)
    for fault in _widenings(predicate, wanted):
        raise Widens(fault)
    _check_names(wanted)
    return wanted


def _unnamed(predicate: Predicate, call: Canonical) -> Reason | None:
    named = {one["f"] for one in predicate["all"]}
    differing = named ^ {*call.values, *call.amounts, *call.free}
    if not differing:
        return None
    name = min(differing)
    return Reason("not_canonical", (name,), {"why": "not what the rule is about"})


def _values_refused(predicate: Predicate, call: Canonical) -> Reason | None:
    for one in predicate["all"]:
        name = one["f"]
        if name in call.values and call.values[name] not in one.get("in", ()):
            return Reason("unfamiliar_value", (name,), {"value": call.values[name]})
        if name in call.free and one.get("any") is not True:
            return Reason("not_canonical", (name,), {"why": "not what the rule is about"})
    return None


def _pairs_refused(predicate: Predicate, call: Canonical) -> Reason | None:
    for (name, value), (other, second) in predicate.get("except_pairs", ()):
        if call.values.get(name) == value and call.values.get(other) == second:
            return Reason("unfamiliar_pair", (name, other), {"value": value, "other": second})
    return None


def _amounts_refused(predicate: Predicate, call: Canonical) -> Reason | None:
    for one in predicate["all"]:
        name = one["f"]
        if name in call.amounts and not _within(call.amounts[name], one.get("le")):
            return above(name, "this tool", one.get("le", "0"))
    for one in predicate.get("ceilings", ()):
        name, (by, value) = one["f"], one["when"]
        applies = call.values.get(by) == value and name in call.amounts
        if applies and not _within(call.amounts[name], one["le"]):
            return above(name, value, one["le"], by)
    return None


def above(name: str, scope: str, ceiling: str, by: str | None = None) -> Reason:
    names = (name,) if by is None else (name, by)
    return Reason("above_ceiling", names, {"scope": scope, "ceiling": ceiling})


def _day_refused(predicate: Predicate, call: Canonical, spent: Spent) -> Reason | None:
    per_day = predicate.get("per_day", {})
    if "calls" in per_day and spent.calls + 1 > per_day["calls"]:
        return Reason("day_calls", (), {"ceiling": str(per_day["calls"])})
    if spent.calls < per_day.get("free", 0):
        return None
    for name, ceiling in per_day.get("sum", {}).items():
        total = spent.sums.get(name, Decimal(0)) + call.amounts.get(name, Decimal(0))
        if not _within(total, ceiling):
            return Reason("day_sum", (name,), {"ceiling": ceiling})
    return None


def _within(given: Decimal, ceiling: str | None) -> bool:
    return ceiling is not None and given <= Decimal(ceiling)


def _check_condition(one: Any) -> str:
    if not isinstance(one, dict) or len(one) != 2 or not isinstance(one.get("f"), str):
        raise Unreadable("A condition has `f` and one operator.")
    (operator,) = set(one) - {"f"}
    if operator not in OPERATORS:
        raise Unreadable(f"There is no operator `{operator}`.")
    if operator == "any" and one["any"] is not True:
        raise Unreadable("`any` is true.")
    if operator == "le":
        _decimal(one["le"])
    if operator == "in":
        _check_values(one["in"])
    return str(one["f"])


def _check_values(values: Any) -> None:
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise Unreadable("`in` is a list of texts.")
    if len(set(values)) != len(values) or len(values) > MOST_VALUES:
        raise Unreadable("`in` names each value once.")


def _check_day(per_day: Any) -> None:
    if not isinstance(per_day, dict) or not set(per_day) <= {"calls", "free", "sum"}:
        raise Unreadable("`per_day` has `calls`, `free` and `sum` only.")
    for name in ("calls", "free"):
        calls = per_day.get(name, 0)
        if isinstance(calls, bool) or not isinstance(calls, int) or calls < 0:
            raise Unreadable(f"`{name}` is a number of calls.")
    sums = per_day.get("sum", {})
    if not isinstance(sums, dict):
        raise Unreadable("`sum` has a decimal for each amount.")
    for ceiling in sums.values():
        _decimal(ceiling)


def _list(predicate: Predicate, name: str) -> list[Any]:
    found = predicate.get(name, [])
    if not isinstance(found, list):
        raise Unreadable(f"`{name}` is a list.")
    return found


def _is_value(one: Any) -> bool:
    return isinstance(one, list) and len(one) == 2 and all(isinstance(text, str) for text in one)


def _decimal(given: Any) -> Decimal:
    if not isinstance(given, str):
        raise Unreadable("An amount is a decimal as text.")
    try:
        return amount("amount", given)
    except Unclear as fault:
        raise Unreadable(f"An amount is a decimal as text: {fault.why}.") from None


def _widenings(old: Predicate, new: Predicate) -> Iterator[str]:
    before = {one["f"]: one for one in old["all"]}
    after = {one["f"]: one for one in new["all"]}
    for name in sorted(before.keys() ^ after.keys()):
        yield f"`{name}` is named in one of them only."
    for name in sorted(before.keys() & after.keys()):
        if not _narrower(before[name], after[name]):
            yield f"`{name}` would allow more."
    yield from _lost_pairs(old, new, after)
    yield from _raised(old, new, after)
    yield from _longer_day(old.get("per_day", {}), new.get("per_day", {}))


def _narrower(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    if set(before) != set(after):
        return False
    if "in" in before:
        return set(after["in"]) <= set(before["in"])
    return "le" not in before or Decimal(after["le"]) <= Decimal(before["le"])


def _lost_pairs(old: Predicate, new: Predicate, after: Mapping[str, Any]) -> Iterator[str]:
    kept = {_pair(one) for one in new.get("except_pairs", ())}
    for one in old.get("except_pairs", ()):
        possible = all(value in after.get(name, {}).get("in", ()) for name, value in one)
        if possible and _pair(one) not in kept:
            yield f"{' and '.join(plain_name(name) for name, _ in one)} would go together."


def _raised(old: Predicate, new: Predicate, after: Mapping[str, Any]) -> Iterator[str]:
    kept = {(one["f"], *one["when"]): Decimal(one["le"]) for one in new.get("ceilings", ())}
    for one in old.get("ceilings", ()):
        name, (by, value) = one["f"], one["when"]
        if value not in after.get(by, {}).get("in", ()) or "le" not in after.get(name, {}):
            continue
        limit = Decimal(after[name]["le"])
        if min(limit, kept.get((name, by, value), limit)) > Decimal(one["le"]):
            yield f"`{name}` would go higher for {value}."


def _longer_day(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if "calls" in old and new.get("calls", old["calls"] + 1) > old["calls"]:
        yield "A day would have more calls."
    if old.get("sum") and new.get("free", 0) > old.get("free", 0):
        yield "More calls of a day would be free of its sum."
    for name, ceiling in old.get("sum", {}).items():
        given = new.get("sum", {}).get(name)
        if given is None or Decimal(given) > Decimal(ceiling):
            yield f"A day would have a larger sum of `{name}`."


def _pair(one: Iterable[Iterable[str]]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(half) for half in one)


def all_pairs(values: Mapping[str, str]) -> Iterator[Pair]:
    """Yield each two of the call's values, in order of their fields."""
    yield from combinations(sorted(values.items()), 2)
