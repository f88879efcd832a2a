"""A rule's predicate as a form has it, and what the form said as a change that narrows it.

Values are named by their places in the predicate, which a form's ``version`` binds: no text of an
agent becomes the name of a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from config.errors import InvalidBody
from delegation import words
from delegation.models import Delegation


@dataclass(frozen=True, slots=True)
class Value:
    """One value that a rule allows, with its tick."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Field:
    """One condition of a rule, as it can be narrowed."""

    key: str
    name: str  # as people read it
    values: tuple[Value, ...] = ()
    ceiling: str | None = None


@dataclass(frozen=True, slots=True)
class PerDay:
    """A day's bounds as they are now: each argument's sum with its field's key."""

    calls: int | None
    sums: tuple[tuple[str, str, str], ...]  # key, name, most


def fields_of(predicate: Mapping[str, Any]) -> list[Field]:
    """Return the conditions that can be narrowed: lists of several values, and ceilings."""
    found = [_field(index, one) for index, one in enumerate(predicate["all"])]
    return [one for one in found if len(one.values) > 1 or one.ceiling is not None]


def _field(index: int, one: Mapping[str, Any]) -> Field:
    key = f"f{index}"
    listed = [words.value_of(one["f"], value) for value in one.get("in", ())]
    values = tuple(Value(f"{key}-{at}", text) for at, text in enumerate(listed))
    return Field(key, one["f"].removeprefix("@"), values, one.get("le"))


def per_day_of(rule: Delegation) -> PerDay:
    """Return the bounds of a day: those that its person set, else those of its predicate."""
    said = _per_day(rule)
    sums = sorted(said.get("sum", {}).items())
    return PerDay(
        said.get("calls"), tuple((f"sum{at}", name, most) for at, (name, most) in enumerate(sums))
    )


def _per_day(rule: Delegation) -> Mapping[str, Any]:
    learned, own = rule.predicate.get("per_day", {}), (rule.limits or {}).get("per_day", {})
    sums = {**learned.get("sum", {}), **own.get("sum", {})}
    return {**learned, **own, **({"sum": sums} if sums else {})}


def limits_said(rule: Delegation, sent: Mapping[str, str]) -> dict[str, Any]:
    """Return the day's bounds that a form said, where they differ from the rule's; else nothing."""
    now = _per_day(rule)
    said = _day_said(rule, sent)
    return {} if said == now else {"per_day": said}


def change_said(rule: Delegation, sent: Mapping[str, str]) -> dict[str, Any]:
    """Return what a form narrows: the predicate's members that take the place of the rule's.

    Raises InvalidBody where nothing would be left of it, or nothing is narrower.
    """
    narrowed = [_narrowed(index, one, sent) for index, one in enumerate(rule.predicate["all"])]
    change: dict[str, Any] = {}
    if narrowed != rule.predicate["all"]:
        change["all"] = narrowed
    if (said := _day_said(rule, sent)) != _per_day(rule):
        change["per_day"] = said
    if not change:
        raise InvalidBody.at("/all", "Nothing of it is narrower.")
    return change


def _narrowed(index: int, one: Mapping[str, Any], sent: Mapping[str, str]) -> Mapping[str, Any]:
    key = f"f{index}"
    if len(one.get("in", ())) > 1:
        kept = [text for at, text in enumerate(one["in"]) if f"{key}-{at}" in sent]
        if not kept:
            raise InvalidBody.at(f"/{key}", "Leave one at least; or revoke the rule.")
        return {"f": one["f"], "in": kept}
    if "le" in one:
        return {"f": one["f"], "le": sent.get(key, "").strip() or one["le"]}
    return one


def _day_said(rule: Delegation, sent: Mapping[str, str]) -> dict[str, Any]:
    now = per_day_of(rule)
    said: dict[str, Any] = {}
    if (calls := _calls(sent.get("calls", ""), now.calls)) is not None:
        said["calls"] = calls
    if sums := {name: sent.get(key, "").strip() or most for key, name, most in now.sums}:
        said["sum"] = sums
    if "free" in _per_day(rule):
        said["free"] = _per_day(rule)["free"]
    return said


def _calls(text: str, now: int | None) -> int | None:
    text = text.strip()
    if not text:
        return now
    if not (text.isascii() and text.isdecimal() and len(text) <= 6):
        raise InvalidBody.at("/calls", "Must be a whole number.")
    return int(text)
