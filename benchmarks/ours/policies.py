"""Proposals under a policy of one rule and under one of 200, in turns in this one process.

Each policy is that of a tenant of its own: published in turns in one tenant, each would have what is
remembered for as long as nothing narrows looked up anew. Prints for both
``{"ms", "client_cpu_ms", "counters"}`` of one proposal; every step is seen as succeeded afterwards.
"""

import time
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from benchmarks.figures import report
from benchmarks.ours.api import step_body
from benchmarks.ours.inprocess import as_agent, counting, new_tenant
from benchmarks.ours.steps import STEPS, check, new_run, work
from interrupts.models import Run
from interrupts.services.steps import propose

RULES = 200
RUNS = 6  # under each policy that are timed: 1,200 proposals a round, 6,000 in five
CHUNK = 10  # proposals under one policy before it is the other's turn
NAME = "bench.note"
TOOL = {
    "name": NAME,
    "description": "An effect step that policy allows",
    "effect": "idempotent",
    "risk": "low",
    "arguments": {
        "type": "object",
        "required": ["number", "text"],
        "properties": {"number": {"type": "integer"}, "text": {"type": "string"}},
        "additionalProperties": False,
    },
    "executor": {"kind": "python", "function": "bench.tick"},
}
# The one rule that is for what is proposed, in either policy.
MATCHING = {
    "name": "notes",
    "trigger": "action",
    "tools": [NAME],
    "condition": "decimal(arguments.number) < decimal('1e12')",
    "then": "allow",
}
SAID = {"confidence": 0.9, "risk_score": 0.1}
# For every tool, but not for what the agent says: one rule in 20 is such a one.
TRIGGERED: tuple[dict[str, Any], ...] = (
    {"trigger": "risk", "at_least": 0.5},
    {"trigger": "confidence", "below": 0.5},
    {"trigger": "milestone", "milestones": ["deploy"]},
)


@dataclass(slots=True)
class Side:
    """An agent under one of the policies, its runs, and what its timed proposals took."""

    key: str
    runs: list[Run] = field(default_factory=list)
    seconds: float = 0
    cpu: float = 0

    def begin(self) -> None:
        """Start a run for the steps that are proposed next."""
        self.runs.append(new_run(self.key))

    def propose(self, steps: int) -> None:
        """Propose so many steps of the newest run one by one, as an agent does."""
        run = self.runs[-1].pk
        bodies = [{**step_body(NAME), **SAID} for _ in range(steps)]
        with as_agent(self.key) as agent:
            started, cpu = time.perf_counter(), time.process_time()
            for body in bodies:
                propose(agent, run, proposals=[body], single=True)
            self.seconds += time.perf_counter() - started
            self.cpu += time.process_time() - cpu

    def forget(self) -> None:
        """Count from now on."""
        self.seconds = self.cpu = 0

    def figures(self) -> dict[str, float]:
        """Return what one timed proposal took."""
        steps = STEPS * RUNS
        return {"ms": self.seconds * 1e3 / steps, "client_cpu_ms": self.cpu * 1e3 / steps}


def other_rule(number: int) -> dict[str, Any]:
    """Return a rule that does not match: it is for other tools, every second with a condition."""
    if number % 20 == 0:
        return {"name": f"all-{number}", **TRIGGERED[number // 20 % 3], "then": "approve"}
    condition = {"condition": f"decimal(arguments.number) > decimal('{number}')"}
    return {
        "name": f"area-{number}",
        "trigger": "action",
        "tools": [f"area{number}.*", f"bench.*{number}", f"*.note{number}"],
        "then": ("allow", "approve", "deny")[number % 3],
        **(condition if number % 2 else {}),
    }


def policy(rules: int) -> dict[str, Any]:
    """Return a policy of so many rules, one of which matches."""
    return {"rules": [*map(other_rule, range(1, rules)), MATCHING]}


def side(rules: int) -> Side:
    """Make a tenant under a policy of so many rules."""
    document = {
        "tenant": f"bench-{rules}-{token_hex(4)}",
        "agents": [{"name": "agent"}],
        "tools": [TOOL],
        "policy": policy(rules),
    }
    return Side(new_tenant(document).agents["agent"])


def timed(sides: list[Side]) -> None:
    """Propose on the sides in turns, so that what disturbs one disturbs the other."""
    _fill_runs(sides)
    for one in sides:
        one.forget()
    for _ in range(RUNS):
        _fill_runs(sides)


def _fill_runs(sides: list[Side]) -> None:
    for one in sides:
        one.begin()
    for number in range(STEPS // CHUNK):
        for one in sides if number % 2 else sides[::-1]:
            one.propose(CHUNK)


def cost(one: Side) -> dict[str, float]:
    """Return what one proposal costs the server."""
    one.begin()
    with counting() as count:
        one.propose(STEPS)
    return count.each(STEPS)


def main() -> None:
    """Measure both and print."""
    sides = {f"policy_{rules}": side(rules) for rules in (1, RULES)}
    timed(list(sides.values()))
    figures = {name: one.figures() for name, one in sides.items()}
    counters = {name: cost(one) for name, one in sides.items()}
    for one in sides.values():
        for run in one.runs:
            work(run)
            check(run.pk, one.key)
    report({name: {**figures[name], "counters": counters[name]} for name in sides})


if __name__ == "__main__":
    main()
