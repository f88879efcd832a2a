"""Rows of one person copied for a crowd, by the server: each is one that it could have written.

Only ids, names, tools, times and amounts are others. The first of each is made by the service.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import psycopg

EVERY: Final = timedelta(hours=8)  # an answer of each person

# Everybody else is the person again, by another name.
_PEOPLE: Final = """
CREATE TEMP TABLE others AS
    SELECT n, gen_random_uuid() AS id, gen_random_uuid() AS membership
      FROM generate_series(2, %(people)s) n;
INSERT INTO tenants_user
    SELECT made.* FROM tenants_user one, others, jsonb_populate_record(one,
        jsonb_build_object('id', others.id, 'username', one.username || '-' || n,
            'email', n || one.email)) made
     WHERE one.id = %(person)s;
INSERT INTO tenants_membership
    SELECT made.* FROM tenants_membership one, others, jsonb_populate_record(one,
        jsonb_build_object('id', others.membership, 'user_id', others.id)) made
     WHERE one.user_id = %(person)s;
INSERT INTO approvals_tenantpermission
    SELECT made.* FROM approvals_tenantpermission one, others, jsonb_populate_record(one,
        jsonb_build_object('id', gen_random_uuid(), 'user_id', others.id)) made
     WHERE one.user_id = %(person)s;
CREATE TEMP TABLE everybody AS
    SELECT array_agg(id) AS ids FROM (SELECT id FROM others UNION SELECT %(person)s) one
"""
_RULES: Final = """
CREATE TEMP TABLE copies AS
    SELECT gen_random_uuid() AS id, person, tool
      FROM everybody, unnest(ids) person, unnest(%(tools)s::uuid[]) tool
     WHERE (person, tool) <> (%(person)s, %(tool)s);
INSERT INTO delegation_delegation
    SELECT made.* FROM delegation_delegation one, copies, jsonb_populate_record(one,
        jsonb_build_object('id', copies.id, 'user_id', copies.person, 'tool', copies.tool)) made
     WHERE one.id = %(rule)s;
INSERT INTO delegation_delegationversion
    SELECT made.* FROM delegation_delegationversion one, copies, jsonb_populate_record(one,
        jsonb_build_object('id', gen_random_uuid(), 'delegation_id', copies.id)) made
     WHERE one.delegation_id = %(rule)s
"""
# The event of number 1 is there. Everybody answers each time; tools and amounts take turns.
_EVENTS: Final = """
INSERT INTO delegation_decisionevent
    (id, tenant_id, user_id, sequence, kind, tool, gate, source, data, at)
    SELECT gen_random_uuid(), one.tenant_id, everybody.ids[1 + n %% %(people)s], n, one.kind,
        (%(tools)s::uuid[])[1 + time %% %(kinds)s], NULL, gen_random_uuid(),
        one.data || jsonb_build_object('decision', gen_random_uuid(), 'step', gen_random_uuid(),
            'asked_at', (one.data ->> 'asked_at')::float8 + time * extract(epoch FROM %(every)s),
            'arguments', jsonb_set(one.data -> 'arguments', '{number}',
                to_jsonb((10 + n * 7 %% 90)::text), false)),
        one.at + time * %(every)s
      FROM delegation_decisionevent one, everybody, generate_series(2, %(events)s) n,
        LATERAL (SELECT n / %(people)s AS time) when_asked
     WHERE one.user_id = %(person)s AND one.sequence = 1
"""
_STATES: Final = """
INSERT INTO delegation_learnerstate
    SELECT made.* FROM delegation_learnerstate one, others, jsonb_populate_record(one,
        jsonb_build_object('id', gen_random_uuid(), 'user_id', others.id)) made
     WHERE one.user_id = %(person)s
"""


@dataclass(frozen=True, slots=True)
class First:
    """Who and what is copied: a person, their rule, and the tools that everybody has one for."""

    person: UUID
    rule: UUID
    tool: UUID  # of the rule
    tools: Sequence[UUID]


def copy(
    owner: psycopg.Connection[tuple[Any, ...]], first: First, *, people: int, events: int
) -> None:
    """Make so many people of the one, each with a rule for every tool, and so many events in all."""
    given = {
        "person": first.person,
        "rule": first.rule,
        "tool": first.tool,
        "tools": list(first.tools),
        "people": people,
        "events": events,
        "kinds": len(first.tools),
        "every": EVERY,
    }
    for statements in (_PEOPLE, _RULES, _EVENTS, _STATES):
        for one in statements.split(";"):
            owner.execute(one.encode(), given)
