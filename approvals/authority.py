"""The one authority function: who may decide gates of a tool, for a run.

Authority is guardian's object permission ``decide_tool`` on the tool or on the tenant, held by a
live member who does more than look; never by the person for whom the run is made, nor by the owner
of its agent. Being superuser gives nothing, and neither does a permission given for all objects.
The SQL reads guardian's tables directly, so that it holds for one person or for many in the one
statement that is made under a lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol
from uuid import UUID

from django.db import connection

from approvals.errors import NotAnApprover, OwnRequest
from tenants.scope import current_tenant_id

PERMISSION = "decide_tool"
Refusal = Literal["not-an-approver", "own-request", "not-your-stage"]


class RunFor(Protocol):
    """What authority depends on of a run."""

    agent_id: UUID
    requested_by_id: UUID | None


def refusal_sql(*, user: str, tool: str, agent: str, requester: str) -> str:
    """Return the SQL expression of why ``user`` may not decide: a code, or NULL where they may.

    The arguments are SQL expressions. Row-level security keeps it inside the session's tenant.
    """
    permitted = f"permission.codename = '{PERMISSION}' AND given.user_id = {user}"
    return f"""CASE
        WHEN NOT EXISTS (
            SELECT FROM tenants_membership member JOIN tenants_user person
                ON person.id = member.user_id AND person.is_active
            WHERE member.user_id = {user} AND member.active AND member.role <> 'viewer'
        ) OR NOT (
            EXISTS (
                SELECT FROM approvals_toolpermission given
                JOIN auth_permission permission ON permission.id = given.permission_id
                WHERE {permitted} AND given.content_object_id = {tool}
            ) OR EXISTS (
                SELECT FROM approvals_tenantpermission given
                JOIN auth_permission permission ON permission.id = given.permission_id
                WHERE {permitted}
            )
        ) THEN '{NotAnApprover.code}'
        WHEN {user} = {requester} OR EXISTS (
            SELECT FROM tenants_agent machine
            WHERE machine.id = {agent} AND machine.owner_id = {user}
        ) THEN '{OwnRequest.code}'
    END"""  # noqa: S608 - column names of ours


_REFUSALS = f"""SELECT asked.id, {
    refusal_sql(user="asked.id", tool="%(tool)s", agent="%(agent)s", requester="%(requester)s")
} FROM unnest(%(users)s::uuid[]) AS asked(id)"""  # noqa: S608


def refusals(users: Iterable[UUID], tool_id: UUID, run: RunFor) -> dict[UUID, Refusal | None]:
    """Return for each person why they may not decide the tool's gates in ``run``; None: they may.

    One statement; under a lock what it says stays true till the commit as far as the authority
    version does.
    """
    with connection.cursor() as cursor:
        cursor.execute(_REFUSALS, {"users": list(users), **_parameters(tool_id, run)})
        return dict(cursor.fetchall())


def may_decide_any(user_id: UUID, tool_ids: Iterable[UUID], run: RunFor) -> bool:
    """Return whether the person may decide gates of one of the tools in ``run``."""
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
