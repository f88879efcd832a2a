"""A tenant with 10,000 rules and 1,000,000 events: filled by the server, from one valid row each.

The service makes the rows of one person, which are copied for the others (`copying`).
"""

from typing import Final

import psycopg

from benchmarks.counters import dsn
from benchmarks.ours.api import TEXT
from benchmarks.ours.copying import EVERY, First, copy
from benchmarks.ours.delegated import PERSON, RULED, begin_rule, tenant, tool
from benchmarks.ours.inprocess import DATABASE, as_agent, new_tenant
from delegation.models import DecisionEvent, Delegation, EventKind, EventStream, LearnerState
from interrupts.models import Tool
from tenants.changes import Issued
from tenants.clock import database_now
from tenants.ids import uuid7

PEOPLE, TOOLS = 1_000, 10  # each person has a rule for each tool: 10,000
EVENTS = 1_000_000
NAMES: Final = tuple(f"{RULED}.{number}" for number in range(TOOLS))


def crowded(*, people: int = PEOPLE, events: int = EVENTS) -> Issued:
    """Make the tenant; return its credentials."""
    issued = new_tenant(tenant(tools=NAMES))
    with as_agent(issued.users[PERSON]["token"]) as person:
        rule = begin_rule(person, NAMES[0])
        first_event(rule, events)
        tools = list(Tool.objects.order_by("name").values_list("pk", flat=True))
    first = First(rule.user_id, rule.pk, rule.tool, tools)
    with psycopg.connect(dsn(DATABASE), autocommit=True) as owner:
        copy(owner, first, people=people, events=events)
        owner.execute("VACUUM ANALYZE")
    return issued


def first_event(rule: Delegation, events: int) -> None:
    """Keep an approval of the rule's person, and that nothing was learned of so many yet."""
    at = database_now() - EVERY * (events // PEOPLE + 1)
    DecisionEvent.objects.create(
        user_id=rule.user_id,
        sequence=1,
        kind=EventKind.APPROVE,
        tool=rule.tool,
        at=at,
        data={
            "decision": str(uuid7()),
            "step": str(uuid7()),
            "tool_number": rule.tool_number,
            "agent": "agent",
            "workflow": "bench",
            "asked_at": at.timestamp() - 60,
            "risk": rule.risk,
            "roles": tool(RULED)["roles"],
            "arguments": {"number": "10", "text": TEXT},
            "answer": {"seconds": 12.5, "opened": True, "bulk": False},
        },
    )
    EventStream.objects.create(sequence=events)
    LearnerState.objects.update_or_create(user_id=rule.user_id, defaults={"sequence": events})
