"""A tenant with 10,000 rules and 1,000,000 events: filled by the server, from one valid row each.

The rows of one person are made by the service, and copied for the others with other ids, names,
tools and times, so that each is one that the service could have written.
"""

from datetime import timedelta
from typing import Final

import psycopg

from benchmarks.counters import dsn
from benchmarks.ours.api import TEXT
from benchmarks.ours.delegated import PERSON, RULED, begin_rule, tenant, tool
from benchmarks.ours.inprocess import DATABASE, as_agent, new_tenant
from delegation.models import DecisionEvent, Delegation, EventKind, EventStream, LearnerState
from interrupts.models import Tool
from tenants.changes import Issued
from tenants.clock import database_now
from tenants.ids import uuid7

PEOPLE, TOOLS = 1_000, 10  # each person has a rule for each tool: 10,000
EVENTS = 1_000_000
EVERY: Final = timedelta(hours=8)  # an answer of each person, for most of a year
NAMES: Final = tuple(f"{RULED}.{number}" for number in range(TOOLS))

# Everybody else is the person again, by another name.
_PEOPLE: Final = """
CREATE TEMP TABLE others AS
    SELECT n, gen_random_uuid() AS id, gen_random_uuid() AS membership
      FROM generate_series(2, %(people)s) n;
INSERT INTO tenants_user
    SELECT (jsonb_populate_record(one, jsonb_build_object('id', others.id,
        'username', one.username || '-' || n, 'email', n || one.email))).*
      FROM tenants_user one, others WHERE one.id = %(person)s;
INSERT INTO tenants_membership
    SELECT (jsonb_populate_record(one, jsonb_build_object('id', others.membership,
        'user_id', others.id))).*
      FROM tenants_membership one, others WHERE one.user_id = %(person)s;
INSERT INTO approvals_tenantpermission
    SELECT (jsonb_populate_record(one, jsonb_build_object('id', gen_random_uuid(),
        'user_id', others.id))).*
      FROM approvals_tenantpermission one, others WHERE one.user_id = %(person)s
"""
_RULES: Final = """
CREATE TEMP TABLE made AS
    SELECT gen_random_uuid() AS id, who.id AS person, tool
      FROM (SELECT id FROM others UNION SELECT %(person)s) who, unnest(%(tools)s::uuid[]) tool
     WHERE (who.id, tool) <> (%(person)s, %(tool)s);
INSERT INTO delegation_delegation
    SELECT (jsonb_populate_record(one, jsonb_build_object('id', made.id,
        'user_id', made.person, 'tool', made.tool))).*
      FROM delegation_delegation one, made WHERE one.id = %(rule)s;
INSERT INTO delegation_delegationversion
    SELECT (jsonb_populate_record(one, jsonb_build_object('id', gen_random_uuid(),
        'delegation_id', made.id))).*
      FROM delegation_delegationversion one, made WHERE one.delegation_id = %(rule)s
"""
# The event of number 1 is there. Amounts and days are those of somebody who is asked now and then.
_EVENTS: Final = """
INSERT INTO delegation_decisionevent
    SELECT (jsonb_populate_record(one, jsonb_build_object('id', gen_random_uuid(),
        'user_id', who.ids[1 + n %% %(people)s], 'sequence', n,
        'source', gen_random_uuid(), 'tool', (%(tools)s::uuid[])[1 + n / %(people)s %% %(kinds)s],
        'at', one.at + %(every)s * (n / %(people)s)::float8,
        'data', one.data || jsonb_build_object('decision', gen_random_uuid(),
            'step', gen_random_uuid(),
            'asked_at', (one.data ->> 'asked_at')::float8
                + extract(epoch FROM %(every)s * (n / %(people)s)::float8),
            'arguments', one.data -> 'arguments'
                || jsonb_build_object('number', (10 + n * 7 %% 90)::text))))).*
      FROM delegation_decisionevent one, generate_series(2, %(events)s) n,
        (SELECT array_agg(id) AS ids FROM (SELECT id FROM others UNION SELECT %(person)s) x) who
     WHERE one.user_id = %(person)s AND one.sequence = 1
"""
_STATES: Final = """
INSERT INTO delegation_learnerstate
    SELECT (jsonb_populate_record(one, jsonb_build_object('id', gen_random_uuid(),
        'user_id', others.id))).*
      FROM delegation_learnerstate one, others WHERE one.user_id = %(person)s
"""


def crowded(*, people: int = PEOPLE, events: int = EVENTS) -> Issued:
    """Make the tenant; return its credentials."""
    issued = new_tenant(tenant(tools=NAMES))
    with as_agent(issued.users[PERSON]["token"]) as person:
        rule = begin_rule(person, NAMES[0])
        first_event(rule, events)
        tools = list(Tool.objects.order_by("name").values_list("pk", flat=True))
    given = {"person": rule.user_id, "rule": rule.pk, "tool": rule.tool, "tools": tools}
    given |= {"people": people, "events": events, "kinds": TOOLS, "every": EVERY}
    with psycopg.connect(dsn(DATABASE), autocommit=True) as owner:
        for statements in (_PEOPLE, _RULES, _EVENTS, _STATES):
            for one in statements.split(";"):
                owner.execute(one.encode(), given)
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
    LearnerState.objects.create(user_id=rule.user_id, sequence=events)
