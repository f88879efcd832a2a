"""A rule's predicate in plain words: what it covers, what it leaves out, how much of it in a day.

A predicate is closed JSON: ``{"all": [{"f": "tier", "in": [...]}, {"f": "amount", "le": "75"},
{"f": "payment", "any": true}], "except_pairs": [...], "ceilings": [...], "per_day": {"calls": 5, "sum": {...}}}``.
Its values came from calls, so they are an agent's text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from delegation.records import AGENT, agent_name, plain_name

Kind = Literal["in", "at_most", "any"]

MOST_NAMED: Final = 12  # values that a sentence names; a page lists all


@dataclass(frozen=True, slots=True)
class Clause:
    """What a rule asks of one field: one of these values, at most this, or nothing."""

    field: str
    kind: Kind
    values: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The field as people read it: the agent and the context without their mark."""
        return self.field.removeprefix("@")

    @property
    def words(self) -> str:
        if self.kind == "any":
            return "may be anything"
        if self.kind == "at_most":
            return f"is at most {self.values[0]}"
        return f"is {listed(self.values, 'or')}" if self.values else "is none: it allows nothing"

    @property
    def text(self) -> str:
        return f"{self.name} {self.words}"


@dataclass(frozen=True, slots=True)
class PerDay:
    """How much of it runs without asking in a UTC day: calls, and sums by argument."""

    calls: int | None = None
    sums: Mapping[str, str] | None = None
    free: int = 0  # calls of the day that no sum is looked at for

    @property
    def parts(self) -> list[str]:
        told = [] if self.calls is None else [f"at most {self.calls} a day"]
        late = f" after the first {counted(self.free)}" if self.free else ""
        return told + [f"{name} at most {most} a day in sum{late}" for name, most in self._sums()]

    def _sums(self) -> list[tuple[str, str]]:
        return [*(self.sums or {}).items()]


def clauses(predicate: Mapping[str, Any]) -> list[Clause]:
    """Return what the rule asks of each field."""
    return [_clause(one) for one in predicate.get("all", ())]


def _clause(one: Mapping[str, Any]) -> Clause:
    if "in" in one:
        return Clause(one["f"], "in", tuple(value_of(one["f"], value) for value in one["in"]))
    if "le" in one:
        return Clause(one["f"], "at_most", (spoken(one["le"]),))
    return Clause(one["f"], "any")


def exceptions(predicate: Mapping[str, Any]) -> list[str]:
    """Return what it still asks about although each part is among its values."""
    return [
        " with ".join(f"{plain_name(field)} {value_of(field, value)}" for field, value in pair)
        for pair in predicate.get("except_pairs", ())
    ]


def per_day(predicate: Mapping[str, Any], limits: Mapping[str, Any] | None = None) -> PerDay:
    """Return the day's bounds: a rule's own ``limits``, else those of its predicate."""
    said = {**predicate.get("per_day", {}), **((limits or {}).get("per_day", {}))}
    sums = {name: spoken(most) for name, most in said.get("sum", {}).items()}
    return PerDay(said.get("calls"), sums or None, said.get("free", 0))


def sentence(
    tool: str, predicate: Mapping[str, Any], limits: Mapping[str, Any] | None = None
) -> str:
    """Return the rule in one sentence."""
    asked = [one.text for one in clauses(predicate)]
    said = f"{tool} runs without asking"
    if asked:
        said = f"{said} where {listed(asked, 'and')}"
    if bounds := per_day(predicate, limits).parts:
        said = f"{said}; {', '.join(bounds)}"
    if left_out := exceptions(predicate):
        said = f"{said}; not {listed(left_out, 'or')}"
    return f"{said}."


def counted(calls: int) -> str:
    """Return how many calls these are: "call", "3 calls"."""
    return "call" if calls == 1 else f"{calls} calls"


def listed(words: Sequence[str], last: str) -> str:
    """Join words as a sentence has them, the end of a long list counted."""
    if len(words) > MOST_NAMED:
        words = [*words[: MOST_NAMED - 1], f"{len(words) - MOST_NAMED + 1} more"]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def value_of(field: str, value: Any) -> str:
    """Return a field's value as it is read: of an agent the name alone."""
    return agent_name(spoken(value)) if field == AGENT else spoken(value)


def spoken(value: Any) -> str:
    """Return a value as it is read: a text as it stands, everything else as its JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
