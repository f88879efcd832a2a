"""What the limits of authority are asked of: the call that a gate asks about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any
from uuid import UUID

from approvals.authority import Call, beyond
from approvals.models import Gate
from approvals.policy import Subject, facts_of
from approvals.policy.conditions import Facts
from interrupts import catalogue
from interrupts.models import Run, Step
from interrupts.selectors import bodies
from tenants.models import Agent
from tenants.scope import current_tenant_id


def call_of(about: Gate | Step, run: Run, body: bytes | None = None) -> Call:
    """Return the call of a gate or a step, with arguments (canonical JSON) in place of its own.

    It is read when first asked for, and once.
    """

    @cache
    def facts() -> Facts | None:
        found = bodies([about.arguments]) if body is None else {}
        arguments = found.get(bytes(about.arguments)) if body is None else json.loads(body)
        return None if arguments is None else _facts(about, run, arguments, _name_of(run.agent_id))

    return facts


def calls_of(gate_ids: Sequence[UUID]) -> dict[UUID, Call]:
    """Return the calls that these gates ask about, by gate, in a bounded number of statements."""
    gates = list(Gate.objects.filter(pk__in=gate_ids).select_related("run__agent", "step"))
    found = bodies([gate.arguments for gate in gates])

    def call(gate: Gate) -> Call:
        arguments = found.get(bytes(gate.arguments))
        return lambda: (
            None if arguments is None else _facts(gate, gate.run, arguments, gate.run.agent.name)
        )

    return {gate.pk: call(gate) for gate in gates}


def within(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return those rows (a gate's id, …, limits) whose limits the gate's call is within, without them."""
    limited = {row[0] for row in rows if row[-1]}
    calls = calls_of(sorted(limited)) if limited else {}
    return [row[:-1] for row in rows if beyond(row[-1], calls.get(row[0])) is None]


def _name_of(agent_id: UUID) -> str:
    return Agent.objects.values_list("name", flat=True).get(pk=agent_id)


def _facts(about: Gate | Step, run: Run, arguments: object, agent: str) -> Facts:
    tool = about.tool_name if isinstance(about, Step) else about.step.tool_name
    version = catalogue.version(current_tenant_id(), about.tool_version_id)
    return facts_of(
        Subject(
            tool=tool,
            effect=version.effect,
            risk=version.risk,
            arguments=arguments,
            agent=agent,
            workflow=run.workflow,
        )
    )
