"""The one authority function: who may decide gates of a tool, for a run, about a call.

Authority is guardian's object permission ``decide_tool`` on the tool or on the tenant, or the same
given to a group of the tenant's that the person is in; held by a live member who does more than
look; never by the person for whom the run is made, nor by the owner of its agent. Being superuser
gives nothing, and neither does a permission given for all objects. A person's own and each of their
groups' are ways to hold it: one is enough, and each of its limits must hold of the call. A
substitute has what the person has for whom they stand in, while they do, and nothing of what that
person has as a substitute.
The SQL reads the tables directly, so that it holds for one person or for many in the one statement
that is made under a lock; it returns the limits, which are conditions in CEL.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol
from uuid import UUID

from django.db import connection

from approvals.errors import BeyondAuthority, NotAnApprover, OwnRequest
from approvals.policy.conditions import Facts
from approvals.policy.limits import exceeded
from tenants.scope import current_tenant_id

PERMISSION = "decide_tool"
Refusal = Literal["not-an-approver", "own-request", "beyond-authority", "not-your-stage"]
# Who decides, and whose authority it is by: the same person, or one they stand in for.
Capacity = tuple[UUID, UUID]
# What limits may ask about the call, read when first needed; None where its arguments are erased.
Call = Callable[[], Facts | None]


class RunFor(Protocol):
    """What authority depends on of a run."""

    agent_id: UUID
    requested_by_id: UUID | None


@dataclass(frozen=True, slots=True)
class Refused:
    """Why somebody may not decide; ``limits`` are those that the call is beyond."""

    code: Refusal
    limits: tuple[str, ...] = ()


def refusal_sql(
    *,
    user: str,
    tool: str,
    agent: str,
    requester: str,
    holder: str | None = None,
    by_group: str | None = None,
) -> str:
    """Return the SQL expression of why ``user`` may not decide: a code, or NULL where they may.

    That is by the authority of ``holder``, their own where it is not given, and but for its limits.
    ``by_group`` says in another form what `by_group_sql` says.
    The arguments are SQL expressions. Row-level security keeps it inside the session's tenant.
    """
    people = (user,) if holder is None else (user, holder)
    members = " AND ".join(map(_is_member, people))
    own = " OR ".join(_is_own(person, agent, requester) for person in people)
    stands_in = (
        "" if holder is None else f"NOT ({user} = {holder} OR {_stands_in(user, holder)}) OR"
    )
    return f"""CASE
        WHEN {stands_in} NOT ({members}) OR NOT (
            EXISTS ({_given("tool", holder or user, tool)})
            OR EXISTS ({_given("tenant", holder or user, tool)})
            OR {by_group or by_group_sql(holder=holder or user, tool=tool)}
        ) THEN '{NotAnApprover.code}'
        WHEN {own} THEN '{OwnRequest.code}'
    END"""


def by_group_sql(*, holder: str, tool: str) -> str:
    """Return the SQL condition that a group gives ``holder`` authority, within limits or without.

    ``approvals_by_group`` answers it for one person: a function of its own, so that who has
    authority by themself does not pay for the plan of what asks their groups.
    """
    return f"EXISTS ({_by_group(holder, tool)})"


def limits_sql(*, holder: str, tool: str) -> str:
    """Return the SQL expression of the limits of ``holder``'s authority: a text[]; empty: none.

    An element is a way to hold it, as the JSON array of its limits, each once (see `beyond`). Who
    has a way of their own without limits is asked for no other.
    """
    own = " UNION ALL ".join(_given(kind, holder, tool, "given.limits") for kind in _KINDS)
    return f"""CASE WHEN (SELECT bool_and(own.limits = '{{}}') FROM ({own}) own) THEN '{{}}'
        ELSE coalesce(approvals_ways({holder}, {tool}), '{{}}') END"""  # noqa: S608 - names of ours


def ways_sql(*, holder: str, tool: str) -> str:
    """Return the SQL of the ways in which ``holder`` has authority, as `limits_sql` has them.

    NULL where there is none: what ``approvals_ways`` answers, apart for the same reason.
    """
    own = (_given(kind, holder, tool, "NULL::uuid AS through, given.limits") for kind in _KINDS)
    groups = _by_group(holder, tool, "given.group_id, given.limits")
    held = "\n        UNION ALL ".join((*own, groups))
    return f"""SELECT CASE WHEN bool_or(way.limits = '[]') THEN '{{}}'::text[]
        ELSE array_agg(DISTINCT way.limits) END
    FROM (
        SELECT coalesce(
            json_agg(DISTINCT each.limit_text ORDER BY each.limit_text)
                FILTER (WHERE each.limit_text IS NOT NULL), '[]')::text AS limits
        FROM ({held}) held LEFT JOIN LATERAL unnest(held.limits) each(limit_text) ON true
        GROUP BY held.through) way"""  # noqa: S608 - column names of ours


def in_a_group_sql(*, holder: str, is_named: str) -> str:
    """Return the SQL condition that ``holder`` is, live, in a group (``named``) that is named.

    ``is_named`` is the SQL condition on ``named.name``.
    """
    return f"""EXISTS (
        SELECT FROM tenants_membership member
        JOIN tenants_groupmember belongs ON belongs.membership_id = member.id
        JOIN tenants_group named ON named.id = belongs.group_id
        WHERE member.user_id = {holder} AND member.active AND {is_named})"""


def capacities_sql(users: str) -> str:
    """Return the SQL of the capacities of ``users``, a uuid[]: their own, and whom they stand in for."""
    return f"""SELECT one.id, one.id AS holder FROM unnest({users}) one(id)
        UNION SELECT stands.substitute_id, stands.person_id FROM approvals_substitution stands
        WHERE stands.substitute_id = ANY({users}) AND {_IN_FORCE}"""  # noqa: S608 - column names of ours


_IN_FORCE: Final = (
    "stands.ended_at IS NULL AND stands.starts_at <= clock_timestamp()"
    " AND stands.ends_at > clock_timestamp()"
)


def _stands_in(user: str, holder: str) -> str:
    return f"""EXISTS (SELECT FROM approvals_substitution stands
        WHERE stands.substitute_id = {user} AND stands.person_id = {holder} AND {_IN_FORCE})"""


def _is_member(person: str) -> str:
    return f"""EXISTS (
        SELECT FROM tenants_membership member JOIN tenants_user person
            ON person.id = member.user_id AND person.is_active
        WHERE member.user_id = {person} AND member.active AND member.role <> 'viewer')"""


def _is_own(person: str, agent: str, requester: str) -> str:
    return f"""{person} = {requester} OR EXISTS (
        SELECT FROM tenants_agent machine
        WHERE machine.id = {agent} AND machine.owner_id = {person})"""


_KINDS: Final[tuple[Literal["tool", "tenant"], ...]] = ("tool", "tenant")


def _given(kind: Literal["tool", "tenant"], holder: str, tool: str, what: str = "") -> str:
    of_tool = f" AND given.content_object_id = {tool}" if kind == "tool" else ""
    return f"""SELECT {what} FROM approvals_{kind}permission given
        JOIN auth_permission permission ON permission.id = given.permission_id
        WHERE permission.codename = '{PERMISSION}' AND given.user_id = {holder}{of_tool}"""  # noqa: S608


def _by_group(holder: str, tool: str, what: str = "") -> str:
    return f"""SELECT {what} FROM tenants_membership member
        JOIN tenants_groupmember belongs ON belongs.membership_id = member.id
        JOIN approvals_grouppermission given ON given.group_id = belongs.group_id
        WHERE member.user_id = {holder} AND member.active
            AND (given.tool_id = {tool} OR given.tool_id IS NULL)"""  # noqa: S608


_ASKED: Final = {"tool": "%(tool)s", "agent": "%(agent)s", "requester": "%(requester)s"}
_REFUSALS: Final = f"""SELECT asked.id, asked.holder, {
    refusal_sql(user="asked.id", holder="asked.holder", **_ASKED)
}, {limits_sql(holder="asked.holder", tool="%(tool)s")}
FROM ({capacities_sql("%(users)s::uuid[]")}) AS asked"""  # noqa: S608


def refusals(
    users: Iterable[UUID], tool_id: UUID, run: RunFor, call: Call | None = None
) -> dict[Capacity, Refused | None]:
    """Return for each person, and each they stand in for, why they may not decide; None: they may.

    It is about the call; about none, nobody with a limit may. One statement; under a lock what it
    says stays true till the commit as far as the authority version does, and as substitutions run.
    """
    with connection.cursor() as cursor:
        cursor.execute(_REFUSALS, {"users": list(users), **_parameters(tool_id, run)})
        found = cursor.fetchall()
    return {
        (user, holder): Refused(code) if code else beyond(limits, call)
        for user, holder, code, limits in found
    }


def beyond(ways: Iterable[str], call: Call | None) -> Refused | None:
    """Return the refusal of a call that none of the ways allows, by the one that comes closest.

    ``ways`` are what `limits_sql` returns: each is a JSON array of limits.
    """
    if not ways:
        return None
    facts = None if call is None else call()
    unmet: list[tuple[str, ...]] = []
    for way in ways:
        unmet.append(exceeded(json.loads(way), facts))
        if not unmet[-1]:
            return None
    return Refused("beyond-authority", min(unmet, key=len))


def problem(refused: Refused) -> NotAnApprover | OwnRequest | BeyondAuthority:
    """Return what a person is told of it."""
    if refused.code == BeyondAuthority.code:
        return BeyondAuthority.of(refused.limits)
    return _PROBLEMS[refused.code]()


_PROBLEMS: Final[Mapping[str, type[NotAnApprover | OwnRequest]]] = {
    NotAnApprover.code: NotAnApprover,
    OwnRequest.code: OwnRequest,
}


def may_decide_any(user_id: UUID, tool_ids: Iterable[UUID], run: RunFor) -> bool:
    """Return whether the person may decide gates of one of the tools in ``run``, within limits."""
    one = refusal_sql(user="%(user)s", tool="tool.id", agent="%(agent)s", requester="%(requester)s")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT EXISTS (SELECT FROM unnest(%(tools)s::uuid[]) AS tool(id) WHERE {one} IS NULL)",  # noqa: S608
            {"user": user_id, "tools": list(tool_ids), **_parameters(None, run)},
        )
        return bool(cursor.fetchone()[0])


def _parameters(tool_id: UUID | None, run: RunFor) -> dict[str, UUID | None]:
    current_tenant_id()  # fails closed outside a tenant
    return {"tool": tool_id, "agent": run.agent_id, "requester": run.requested_by_id}
