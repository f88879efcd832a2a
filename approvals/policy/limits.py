"""Limits of authority: conditions in CEL over a call that hold of what a person may decide."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from approvals.policy.conditions import Condition, ConditionError, Facts, condition_faults
from approvals.policy.syntax import NAMES, Reader

# What a limit may ask about: the call alone, so that who may decide it does not change by itself.
OF_A_CALL: Final = frozenset({"arguments", "tool", "agent"})


def limit_faults(source: Any) -> list[str]:
    """Return why a limit cannot be saved, with the column; none: it can."""
    if faults := condition_faults(source, "limit"):
        return faults
    reader = Reader(source)
    others = (
        token
        for index in reader.indexes("name")
        if (token := reader.at(index)).text in NAMES - OF_A_CALL and not reader.is_member(index)
    )
    asked = ", ".join(sorted(OF_A_CALL))
    return [f"A limit asks about {asked} only (column {other.column})." for other in others]


def exceeded(limits: Iterable[str], facts: Facts | None) -> tuple[str, ...]:
    """Return those of the limits that the call is not within; no facts are known of an erased one.

    A limit without an answer is exceeded.
    """
    return tuple(limit for limit in limits if facts is None or not _holds(limit, facts))


def _holds(limit: str, facts: Facts) -> bool:
    try:
        return _ready(limit).holds(facts)
    except ConditionError:
        return False


@lru_cache(maxsize=4096)
def _ready(limit: str) -> Condition:
    return Condition(limit)
