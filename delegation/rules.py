"""A person's rule for one tool as others see it: what it allows, on what evidence, in what state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import combinations
from typing import Any

from delegation.canonical import AGENT, MARK
from delegation.familiarity import Familiarity, Value, text
from delegation.predicates import sha256
from delegation.presets import Familiar, Settings, Stage
from delegation.records import DAY, State, Tool
from delegation.units import Evidence, Unit


@dataclass(frozen=True, slots=True)
class Rule:
    """A learned rule. `answers` of `needed` are given while it is `proving`; `alpha` is the rate of
    refusals that is ruled out, `check` the share of calls that is asked all the same."""

    tool: Tool
    state: State
    predicate: Mapping[str, Any]
    evidence: Evidence
    answers: int
    needed: int
    alpha: float | None
    check: float | None
    sha256: str

    @property
    def is_empty(self) -> bool:
        """Whether it allows nothing at all."""
        return any(one.get("in") == [] for one in self.predicate["all"])

    def document(self) -> dict[str, Any]:
        """The rule as JSON."""
        return {
            "tool": self.tool.id,
            "tool_version": self.tool.version,
            "risk": self.tool.risk,
            "state": self.state,
            "predicate": self.predicate,
            "evidence": asdict(self.evidence),
            "answers": self.answers,
            "needed": self.needed,
            "alpha": self.alpha,
            "check": self.check,
            "sha256": self.sha256,
        }


def rule_of(
    unit: Unit,
    settings: Settings,
    now: float,
    state: State,
    stage: Stage | None,
    proof: tuple[int, int],
) -> Rule:
    """Return the rule of a unit as of `now`; `proof` are the answers given and needed."""
    predicate = predicate_of(unit, settings, now)
    answers, needed = proof
    return Rule(
        unit.tool,
        state,
        predicate,
        unit.evidence,
        answers,
        needed,
        stage.alpha if stage else None,
        stage.check if stage else None,
        sha256(predicate),
    )


def predicate_of(unit: Unit, settings: Settings, now: float) -> dict[str, Any]:
    """Return what is familiar at a time, in the closed form."""
    need, memory = settings.familiar[unit.tool.risk], unit.memory
    roles = unit.tool.roles
    amounts = sorted(name for name, role in roles.items() if role == "number")
    values = _familiar_values(memory, amounts, need, now - settings.fade_days * DAY)
    fields = sorted(
        {
            AGENT,
            *(MARK + one for one in unit.context),
            *(n for n, r in roles.items() if r not in {"number", "id"}),
        }
    )
    conditions: list[dict[str, Any]] = [
        {"f": name, "in": sorted(value for by, value in values if by == name)} for name in fields
    ]
    ceilings = {
        (value, name): memory.ceiling(value, name, need) or Decimal(0)
        for value in values
        for name in amounts
    }
    tops = {name: _highest(ceilings, name) for name in amounts}
    conditions += [{"f": name, "le": text(tops[name])} for name in amounts]
    conditions += [{"f": name, "any": True} for name, role in sorted(roles.items()) if role == "id"]
    return {
        "all": conditions,
        "except_pairs": list(_unseen_pairs(memory, sorted(values), need)),
        "ceilings": [
            {"f": name, "le": text(most), "when": list(value)}
            for (value, name), most in sorted(ceilings.items())
            if most < tops[name]
        ],
        "per_day": _per_day(memory, amounts, need, settings),
    }


def _familiar_values(
    memory: Familiarity, amounts: list[str], need: Familiar, oldest: float
) -> list[Value]:
    return [
        value
        for value, known in memory.seen.items()
        if known.times >= need.m
        and known.at >= oldest
        and all(memory.ceiling(value, name, need) is not None for name in amounts)
    ]


def _highest(ceilings: Mapping[tuple[Value, str], Decimal], name: str) -> Decimal:
    """Every call has an agent, so no ceiling of an agent's is exceeded by any call."""
    found = [most for ((by, _), of), most in ceilings.items() if of == name and by == AGENT]
    return max(found, default=Decimal(0))


def _unseen_pairs(
    memory: Familiarity, values: list[Value], need: Familiar
) -> Iterator[list[list[str]]]:
    for one, other in combinations(values, 2):
        if one[0] != other[0] and memory.pairs.get((one, other), 0) < need.m2:
            yield [list(one), list(other)]


def _per_day(
    memory: Familiarity, amounts: list[str], need: Familiar, settings: Settings
) -> dict[str, Any]:
    sums = {name: memory.most_sum(name, need) for name in amounts}
    found: dict[str, Any] = {"calls": memory.most_calls(need, settings.free_calls)}
    known = {name: text(most) for name, most in sums.items() if most is not None}
    return {**found, "sum": known} if known else found
