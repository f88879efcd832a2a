"""Alice's office: a tool whose calls she decides, and the service that learns from what she says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from approvals.models import Gate
from delegation.drafts import with_agents
from delegation.models import DecisionEvent, Delegation, DelegationUse, SpotCheck
from delegation.records import AGENT
from delegation.services import learning, rules
from interrupts.models import Run, Step
from interrupts.services import compensating
from tests.approvals.house import House
from tests.clock import move

DAY = 86_400
TOOL = "refunds.make"
SCHEMA = {
    "type": "object",
    "required": ["order", "tier", "amount"],
    "properties": {
        "order": {"type": "string"},
        "tier": {"type": "string"},
        "amount": {"type": "string"},
        "note": {"type": "string"},
    },
    "additionalProperties": False,
}
ROLES = {"order": "id", "tier": "enum", "amount": "number"}
CALL = {"order": "o-1", "tier": "gold", "amount": "20.00"}
PREDICATE = {
    "all": [
        {"f": AGENT, "in": ["bot"]},
        {"f": "amount", "le": "50"},
        {"f": "order", "any": True},
        {"f": "tier", "in": ["basic", "gold"]},
    ]
}


def known(predicate: dict[str, Any]) -> dict[str, Any]:
    """The predicate as it is kept: each agent with which one it is, and not by its name alone."""
    return with_agents(predicate, "")


@dataclass
class Office:
    house: House
    approved: int = 0

    def tool(self, **more: Any) -> None:
        self.house.tool(TOOL, **{"arguments": SCHEMA, "roles": ROLES, **more})

    def ask(self, run: Run | None = None, **arguments: Any) -> Gate:
        return self.house.ask(TOOL, {**CALL, **arguments}, run=run)

    def propose(self, run: Run | None = None, **arguments: Any) -> Step:
        return self.house.propose(TOOL, {**CALL, **arguments}, run=run)

    def look_and_decide(
        self, gate: Gate, verdict: str = "approve", *, seconds: float = 5, **more: Any
    ) -> Gate:
        """Have Alice look at a gate, take her time, and decide it."""
        self.house.look(gate, "alice")
        move(seconds)
        if verdict != "approve":
            more.setdefault("reason", "not like this")
        return self.house.decide("alice", gate, verdict, **more)

    def approve(self, times: int = 1, **arguments: Any) -> None:
        """Have Alice approve so many calls, three a day: more in a day is new to her."""
        for _ in range(times):
            if self.approved and self.approved % 3 == 0:
                move(DAY)
            self.look_and_decide(self.ask(**arguments))
            self.approved += 1

    def reject(self, **arguments: Any) -> Gate:
        return self.look_and_decide(self.ask(**arguments), "reject")

    def undone(self, step: Step) -> None:
        """Have an operator undo a step's effect."""
        compensating.compensate_step(self.house.people["olga"], step.pk)
        compensating.compensate(step.pk, "a worker")

    def catch_up(self) -> None:
        learning.catch_up()

    def rule(self, *, share: float = 0, who: str = "alice", **more: Any) -> Delegation:
        """A rule that Alice made by hand and let begin, with no spot checks unless they are asked for."""
        made = rules.propose_by_hand(self.house.people[who], TOOL, {**PREDICATE, **more})
        rules.accept(self.house.people[who], made.pk)
        Delegation.objects.filter(pk=made.pk).update(check_share=share)
        return Delegation.objects.get(pk=made.pk)

    def trace(self) -> dict[str, Any]:
        """What a refusal must leave as it was: nothing ran, nothing was decided, no rule changed."""
        return {
            "ran": list(self.house.calls),
            "uses": DelegationUse.objects.count(),
            "checks": SpotCheck.objects.count(),
            "rules": list(Delegation.objects.order_by("id").values()),
        }


def kinds() -> list[str]:
    """The events of everybody, in the order in which they were appended."""
    return list(DecisionEvent.objects.order_by("sequence").values_list("kind", flat=True))
