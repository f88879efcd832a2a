"""What is common: counts of approvals by tool, by shape or by arguments, and bounds on their rate."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol

from benchmarks.delegation.world import TOOLS, Asked, Told

Key = Callable[[Asked], Hashable]


class Learner(Protocol):
    """What the benchmark needs of a learner."""

    name: str

    def decide(self, request: Any) -> tuple[bool, str]: ...

    def observe(self, request: Any, told: Any) -> None: ...


class Ask:
    """Nothing ever runs by itself."""

    name = "ask always"

    def decide(self, request: Asked) -> tuple[bool, str]:
        del request
        return False, "ask"

    def observe(self, request: Asked, told: Told) -> None:
        """It learns nothing."""


def by_tool(request: Asked) -> Hashable:
    return request.approver, request.tool


def by_shape(request: Asked) -> Hashable:
    """The tool with its lists' values, folders and context, but no numbers and no ids."""
    roles = TOOLS[request.tool].fields
    values = [
        (name, str(value).rsplit("/", 1)[0] if roles.get(name) == "path" else str(value))
        for name, value in sorted(request.args.items())
        if roles.get(name) not in {"number", "id"}
    ]
    return request.approver, request.agent, request.tool, tuple(values), tuple(request.ctx.items())


def by_arguments(request: Asked) -> Hashable:
    """The exact arguments, ids left out."""
    roles = TOOLS[request.tool].fields
    kept = {name: value for name, value in request.args.items() if roles.get(name) != "id"}
    return request.approver, request.tool, json.dumps(kept, sort_keys=True)


class Streak:
    """Runs after n approvals in a row; anything else starts over."""

    def __init__(self, times: int, key: Key, name: str) -> None:
        self.times, self.key, self.name = times, key, name
        self.runs: Counter[Hashable] = Counter()

    def decide(self, request: Asked) -> tuple[bool, str]:
        return self.runs[self.key(request)] >= self.times, "streak"

    def observe(self, request: Asked, told: Told) -> None:
        key = self.key(request)
        self.runs[key] = self.runs[key] + 1 if told.decision == "approve" else 0


class Bound:
    """Runs while a bound on the rate of approvals passes a line."""

    def __init__(
        self, bound: Callable[[int, int], float], line: float, key: Key, name: str
    ) -> None:
        self.bound, self.line, self.key, self.name = bound, line, key, name
        self.yes: Counter[Hashable] = Counter()
        self.all: Counter[Hashable] = Counter()

    def decide(self, request: Asked) -> tuple[bool, str]:
        key = self.key(request)
        return self.bound(self.yes[key], self.all[key]) >= self.line, "bound"

    def observe(self, request: Asked, told: Told) -> None:
        key = self.key(request)
        self.all[key] += 1
        self.yes[key] += told.decision == "approve"


def rate(yes: int, answers: int) -> float:
    """The plain rate, from twenty samples on."""
    return yes / answers if answers >= 20 else 0.0


def wilson(yes: int, answers: int) -> float:
    """The lower end of Wilson's interval of 95 %."""
    if not answers:
        return 0.0
    z, share = 1.96, yes / answers
    root = math.sqrt(share * (1 - share) / answers + z * z / (4 * answers * answers))
    return (share + z * z / (2 * answers) - z * root) / (1 + z * z / answers)


BASELINES: Final[tuple[Callable[[], Learner], ...]] = (
    Ask,
    lambda: Streak(1, by_tool, "always allow the tool"),
    lambda: Streak(3, by_tool, "3 in a row, per tool"),
    lambda: Streak(20, by_tool, "20 in a row, per tool"),
    lambda: Streak(1, by_arguments, "exact arguments but ids"),
    lambda: Streak(1, by_shape, "always allow the shape"),
    lambda: Streak(3, by_shape, "3 in a row, per shape"),
    lambda: Streak(10, by_shape, "10 in a row, per shape"),
    lambda: Bound(rate, 0.95, by_tool, "20 samples and rate >= .95, per tool"),
    lambda: Bound(rate, 0.95, by_shape, "20 samples and rate >= .95, per shape"),
    lambda: Bound(wilson, 0.90, by_tool, "Wilson > .90, per tool"),
    lambda: Bound(wilson, 0.90, by_shape, "Wilson > .90, per shape"),
)
