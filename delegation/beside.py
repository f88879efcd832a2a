"""What learning says beside a gate, asked by approvals through `settings.LEARNED`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from approvals import selectors as approvals
from approvals.learned import Learned
from approvals.models import OPEN_GATES, Gate
from delegation import selectors, words
from delegation.calls import tool_of
from delegation.models import DelegationTemplate
from delegation.modes import Modes, modes
from interrupts.models import Tool, ToolVersion


def of_gate(gate: Gate, user_id: UUID) -> Learned:
    """Return why the person is asked although they approve the like, and what they may accept.

    Of a gate that is settled nothing is said.
    """
    if gate.state not in OPEN_GATES:
        return Learned()
    return Learned(selectors.why_asked(gate, user_id), selectors.offer(gate, user_id))


def modes_now() -> Modes:
    """Return the modes of the policy in force."""
    policy = approvals.policy_in_force()
    return modes(policy.document if policy is not None else {})


@dataclass(frozen=True, slots=True)
class TemplateShown:
    """A rule that is offered to everybody, in words."""

    row: DelegationTemplate
    tool: str  # its name
    sentence: str


def templates_shown(rows: Sequence[DelegationTemplate]) -> list[TemplateShown]:
    """Return templates with their tools' names, in the order given."""
    tools = dict(Tool.objects.filter(pk__in={one.tool for one in rows}).values_list("pk", "name"))
    return [
        TemplateShown(
            one, tools[one.tool], words.sentence(tools[one.tool], one.predicate, one.limits)
        )
        for one in rows
    ]


def delegable_tools() -> Sequence[ToolVersion]:
    """Return the tools whose calls a rule may decide, by their names."""
    tools = Tool.objects.filter(retired_at=None).select_related("current__tool")
    versions = [one.current for one in tools.order_by("name") if one.current is not None]
    return [one for one in versions if tool_of(one) is not None]
