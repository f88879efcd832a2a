"""What a tenant's policy says of delegation: how far it goes for each risk, and where it never does.

The shape is checked as the policy is published (`approvals.policy`); nothing is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from approvals.policy.conditions import Condition, ConditionError, Facts
from config.globs import matches_any


class Mode(StrEnum):
    """How far delegation goes: nothing is learned from, rules are suggested, rules begin."""

    OFF = "off"
    SUGGEST = "suggest"
    AUTOMATIC = "automatic"


ORDINARY: Final = frozenset({"action", "default"})  # triggers that are about the call alone
CAUTIOUS: Final = "cautious"
EAGER: Final = "eager"


@dataclass(frozen=True, slots=True)
class Never:
    """Calls of which a person is always asked: of these tools, where the condition holds."""

    tools: tuple[str, ...]
    condition: str | None = None

    def covers(self, tool: str, facts: Facts) -> bool:
        """Say whether the call is one of them; a condition without an answer counts as held.

        ``facts`` are those of `approvals.policy.facts_of`, with ``arguments``, ``tool``, ``agent``.
        """
        if not matches_any(self.tools, tool):
            return False
        if self.condition is None:
            return True
        try:
            return _ready(self.condition).holds(facts)
        except ConditionError:
            return True


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes of the two risks that can be delegated, the learner's preset, and the floor."""

    low: Mode = Mode.SUGGEST
    medium: Mode = Mode.SUGGEST
    preset: str = CAUTIOUS
    never: tuple[Never, ...] = ()

    def of(self, risk: str) -> Mode:
        """Return the mode of a risk; what is neither low nor medium is off."""
        return {"low": self.low, "medium": self.medium}.get(risk, Mode.OFF)

    @property
    def is_off(self) -> bool:
        """Nothing is delegated, whatever its risk."""
        return self.low is Mode.OFF and self.medium is Mode.OFF

    def forbids(self, tool: str, facts: Facts) -> bool:
        """Say whether the tenant's floor has a person asked of the call."""
        return any(one.covers(tool, facts) for one in self.never)


def modes(document: Mapping[str, Any]) -> Modes:
    """Return what a policy's ``delegation`` says; what it leaves out is suggested, cautiously."""
    said: Mapping[str, Any] = document.get("delegation", {})
    every = said.get("mode", Mode.SUGGEST)
    return Modes(
        low=Mode(said.get("low", every)),
        medium=Mode(said.get("medium", every)),
        preset=said.get("preset", CAUTIOUS),
        never=tuple(
            Never(tuple(one["tools"]), one.get("condition")) for one in said.get("never", ())
        ),
    )


@lru_cache(maxsize=1024)
def _ready(condition: str) -> Condition:
    return Condition(condition)
