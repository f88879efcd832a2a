"""Milestones that a policy declares for workflows: the points of a run at which its rules speak.

A point is before the first call of a tool that happened, after so many effects, or before the run
completes. Whether a run has come to one is told by what its steps are, never by the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from approvals.policy.conditions import Condition
from config.globs import glob_fault, matches
from config.jsontext import pointer

MAX_MILESTONES: Final = 100
MAX_NAME: Final = 100
MAX_EFFECTS: Final = 10_000
_WHEN: Final = ("before_first", "after_effects", "before_complete")
# What a step has, and a run that completes has not.
_OF_A_STEP: Final = frozenset({"arguments", "tool", "step", "history"})

Fault = tuple[str, str]


class Point(NamedTuple):
    """A milestone at one point of a run, by which it is known whether it was passed."""

    name: str
    when: str

    def __str__(self) -> str:
        return f"{self.name} ({self.when})"


class SoFar(NamedTuple):
    """What a run holds around a step: tools of which a call happened or may have happened; how many
    effects did, may have, or stand before the step and may still; and the points passed."""

    tools: frozenset[str] = frozenset()
    effects: int = 0
    passed: frozenset[Point] = frozenset()


@dataclass(frozen=True, slots=True)
class Milestone:
    """One declared milestone; one of the three says when."""

    name: str
    workflow: str
    before_first: str | None = None
    after_effects: int | None = None
    before_complete: bool = False

    @property
    def point(self) -> Point:
        if self.before_first is not None:
            return Point(self.name, f"before the first {self.before_first}")
        if self.after_effects is not None:
            return Point(self.name, f"after {self.after_effects} effects")
        return Point(self.name, "before completion")

    def is_reached(self, tool: str, so_far: SoFar) -> bool:
        """Say whether a step of the tool reaches it; completing a run is not a step."""
        if self.before_first is not None:
            before = self.before_first
            first = not any(matches(before, one) for one in so_far.tools)
            return first and matches(before, tool)
        return self.after_effects is not None and so_far.effects >= self.after_effects


def reached(milestones: Iterable[Milestone], tool: str, so_far: SoFar) -> tuple[Point, ...]:
    """Return the points that a step of the tool reaches and that nobody has passed."""
    points = {one.point for one in milestones if one.is_reached(tool, so_far)}
    return tuple(sorted(points - so_far.passed))


def told_reached(points: Sequence[Point], said: str | None, *, of_step: bool) -> str:
    """Say which milestones are reached: those declared, else the one that the agent says."""
    if not points:
        return f"The step is the milestone {said}, says the agent."
    what = "step" if of_step else "run"
    return f"The {what} reaches the milestone {', '.join(map(str, points))}."


def parse_milestone(declared: Mapping[str, Any]) -> Milestone:
    """Read one validated milestone."""
    return Milestone(declared["name"], declared["workflow"], **declared["when"])


# What can be declared


def faults(declared: Any) -> Iterator[Fault]:
    """Yield what is wrong with the milestones of a policy, by themselves."""
    if not isinstance(declared, list) or len(declared) > MAX_MILESTONES:
        yield "", f"A list of at most {MAX_MILESTONES} milestones stands here."
        return
    for index, one in enumerate(declared):
        yield from ((pointer(index) + place, detail) for place, detail in _milestone(one))
        if one in declared[:index]:
            yield pointer(index), "It stands here twice."


def _milestone(one: Any) -> Iterator[Fault]:
    if not isinstance(one, dict) or set(one) != {"name", "workflow", "when"}:
        yield "", "A milestone says its name, its workflow (a glob) and when, and nothing else."
        return
    name, when = one["name"], one["when"]
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        yield "/name", f"A milestone has a name of 1 to {MAX_NAME} visible characters."
    if detail := glob_fault(one["workflow"]):
        yield "/workflow", detail
    if not isinstance(when, dict) or len(when) != 1 or not set(when) <= set(_WHEN):
        yield "/when", f"One of {', '.join(_WHEN)} stands here."
        return
    yield from _when(when)


def _when(when: dict[str, Any]) -> Iterator[Fault]:
    ((kind, value),) = when.items()
    place = pointer("when", kind)
    if kind == "before_first" and (detail := glob_fault(value)):
        yield place, detail
    if kind == "after_effects" and (type(value) is not int or not 1 <= value <= MAX_EFFECTS):
        yield place, f"A whole number from 1 to {MAX_EFFECTS} stands here."
    if kind == "before_complete" and value is not True:
        yield place, "true stands here."


def unheard(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield each milestone that no rule names, and what a rule cannot ask of a run that completes."""
    declared = [one for one in _listed(document, "milestones") if not list(_milestone(one))]
    rules = [one for one in _listed(document, "rules") if one.get("trigger") == "milestone"]
    named = {name for rule in rules for name in _names(rule)}
    for index, one in enumerate(_listed(document, "milestones")):
        if one in declared and one["name"] not in named:
            yield pointer("milestones", index, "name"), "No rule of this trigger names it."
    ends = {one["name"] for one in declared if "before_complete" in one["when"]}
    for index, rule in enumerate(_listed(document, "rules")):
        for name in sorted(ends & set(_names(rule))) if rule in rules else ():
            for place, detail in _unfit(rule, name):
                yield pointer("rules", index) + place, detail


def _unfit(rule: Mapping[str, Any], name: str) -> Iterator[Fault]:
    known = ("name", "trigger", "then", "milestones", "condition", "reason")
    for member in rule:
        if member not in known:
            yield (
                pointer(member),
                f"{name} is before completion, which one operator or admin decides: not for it.",
            )
    condition = rule.get("condition")
    if isinstance(condition, str) and (wrong := Condition(condition).names & _OF_A_STEP):
        yield "/condition", f"{name} is before completion: there is no {min(wrong)} then."


def _listed(document: Mapping[str, Any], member: str) -> Sequence[dict[str, Any]]:
    """Return the objects of a list; none where something else is in it, which is told elsewhere."""
    found = document.get(member)
    sound = isinstance(found, list) and all(isinstance(one, dict) for one in found)
    return found if sound and found is not None else []


def _names(rule: Mapping[str, Any]) -> list[str]:
    found = rule.get("milestones")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
