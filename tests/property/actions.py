"""What may happen: how often, when and with what, beside how much of it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.property.world import TOOLS

MOST_RUNS, MOST_STEPS = 5, 24
Draw = Callable[[Random], Any]


# Of what is drawn, only a number is Hypothesis's own, so that what a history is made of depends on
# nothing but its numbers, however long the machine takes for it.


def one_of(*options: Any) -> Draw:
    return lambda random: random.choice(options)


def number(least: int, most: int) -> Draw:
    return lambda random: random.randint(least, most)


def some(draw: Draw, least: int, most: int) -> Draw:
    return lambda random: [draw(random) for _ in range(random.randint(least, most))]


def both(*draws: Draw) -> Draw:
    return lambda random: tuple(draw(random) for draw in draws)


yes_or_no = one_of(*(True, False))
indexes = number(0, 11)
# What is asked about holds everything else up, so most of what is proposed is not.
OFTEN = [*["pay"] * 6, *["put"] * 2, "look", *["mine"] * 3]
tools = some(one_of(*OFTEN, *sorted(TOOLS)), 1, 3)


@dataclass
class Totals:
    """What all the histories of a test came to: how many steps each took, and what happened."""

    steps: list[int] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)


Act = Callable[..., None]


@dataclass
class Action:
    """Something that may happen: how often, when, and with what."""

    name: str
    weight: int
    draws: dict[str, Draw]
    conditions: list[Callable[[Any], Any]] = field(default_factory=list)


def action(*, weight: int = 2, **draws: Draw) -> Callable[[Act], Act]:
    """Let this happen: the more often the larger its weight."""

    def mark(act: Act) -> Act:
        act.action = Action(act.__name__, weight, draws)  # type: ignore[attr-defined]
        return act

    return mark


def when(condition: Callable[[Any], Any]) -> Callable[[Act], Act]:
    def mark(act: Act) -> Act:
        act.action.conditions.append(condition)  # type: ignore[attr-defined]
        return act

    return mark


has_live_run = when(lambda self: self.now.live_runs)
