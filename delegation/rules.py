"""A person's rule for one tool as others see it: what it allows, on what evidence, in what state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import combinations
from typing import Any

from delegation.canonical import MARK
from delegation.familiarity import TOOL, Familiarity, Value, text
from delegation.predicates import sha256
from delegation.presets import Familiar, Settings, Stage
from delegation.records import AGENT, DAY, State, Tool
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
    need, memory, roles = settings.familiar[unit.tool.risk], unit.memory, unit.tool.roles
    amounts = sorted(name for name, role in roles.items() if role == "number")
    values = sorted(_familiar_values(unit, amounts, settings, now))
    fields = {AGENT, *(MARK + name for name in unit.context)}
    fields |= {name for name, role in roles.items() if role not in {"number", "id"}}
    tops = {name: memory.ceiling(TOOL, name, need) or Decimal(0) for name in amounts}
    return {
        "all": [
            *(
                {"f": name, "in": [value for by, value in values if by == name]}
                for name in sorted(fields)
            ),
            *({"f": name, "le": text(most)} for name, most in tops.items()),
            *({"f": name, "any": True} for name, role in sorted(roles.items()) if role == "id"),
        ],
        "except_pairs": list(_unseen_pairs(memory, values, need, settings)),
        "ceilings": list(_ceilings(memory, values, tops, need, settings)),
        "per_day": _per_day(memory, amounts, need),
    }


def _familiar_values(
    unit: Unit, amounts: list[str], settings: Settings, now: float
) -> Iterator[Value]:
    """Yield what is familiar by itself; where an amount was never approved, nothing is."""
    need, memory = settings.familiar[unit.tool.risk], unit.memory
    oldest = now - settings.fade_days * DAY
    for value, known in memory.seen.items():
        if known.is_enough(need, settings.again) and known.at >= oldest:
            ceilings = (
                memory.ceiling(by, name, need)
                for name in amounts
                for by in (TOOL, value)
                if memory.has_ceiling(by, name, settings)
            )
            if all(one is not None for one in ceilings):
                yield value


def _unseen_pairs(
    memory: Familiarity, values: list[Value], need: Familiar, settings: Settings
) -> Iterator[list[list[str]]]:
    for one, other in combinations(values, 2):
        if one[0] != other[0] and not memory.is_known((one, other), need, settings):
            yield [list(one), list(other)]


def _ceilings(
    memory: Familiarity,
    values: list[Value],
    tops: Mapping[str, Decimal],
    need: Familiar,
    settings: Settings,
) -> Iterator[dict[str, Any]]:
    for value in values:
        for name, top in tops.items():
            most = memory.ceiling(value, name, need)
            if memory.has_ceiling(value, name, settings) and most is not None and most < top:
                yield {"f": name, "le": text(most), "when": list(value)}


def _per_day(memory: Familiarity, amounts: list[str], need: Familiar) -> dict[str, Any]:
    calls = memory.most_calls(need)
    if not amounts:
        return {"calls": calls}
    sums = {name: text(memory.most_sum(name, need)) for name in amounts}
    return {"calls": calls, "free": need.free, "sum": sums}
