"""Making tenants what their documents say: all of a file, or nothing of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection

from approvals.services.grants import end_group_grants, set_grants, set_group_grants
from approvals.services.inboxes import refresh_inboxes
from approvals.services.policies import publish_policy
from approvals.tenantfile.groups import given_to, members_of
from approvals.tenantfile.values import value_of
from interrupts.services.tools import set_tools
from tenants.changes import Change, Issued
from tenants.journal import Actor
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tenants.services.agents import AgentWanted, set_agents
from tenants.services.groups import set_groups
from tenants.services.organisations import make_tenant, rename_tenant
from tenants.services.people import MemberWanted, set_members
from tenants.services.secrets import set_secrets

Document = Mapping[str, Any]
APPLY: Final = Actor("system", "apply")
# One file at a time: two would lock tenants in different orders.
_ONE_AT_A_TIME: Final = 0x61627902


@dataclass(slots=True)
class Applied:
    """What became of one document."""

    tenant: str
    changes: list[Change] = field(default_factory=list)
    issued: Issued = field(default_factory=Issued)


def apply_documents(documents: Sequence[Document], *, issue: bool) -> list[Applied]:
    """Make each tenant what its checked document says; in the caller's transaction.

    With ``issue`` credentials are made for whoever begins or never had any. A repeat changes
    nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ONE_AT_A_TIME])
    return [_apply(document, issue=issue) for document in documents]


def _apply(document: Document, *, issue: bool) -> Applied:
    applied = Applied(document["tenant"])
    name = document.get("name", applied.tenant)
    tenant = Tenant.objects.filter(slug=applied.tenant).first()
    if tenant is None:
        tenant, applied.changes = make_tenant(APPLY, slug=applied.tenant, name=name)
    with tenant_scope(tenant.pk):
        applied.changes += rename_tenant(APPLY, name)
        _configure(document, applied, applied.issued if issue else None)
        refresh_inboxes()
    return applied


def _configure(document: Document, applied: Applied, issued: Issued | None) -> None:
    people, groups = document.get("members", []), document.get("groups", {})
    applied.changes += set_members(
        APPLY,
        [MemberWanted(one["username"], one["email"], one["role"]) for one in people],
        others_leave=True,
        issued=issued,
    )
    applied.changes += end_group_grants(APPLY, keep=groups.keys())
    applied.changes += set_groups(
        APPLY, {name: members_of(group) for name, group in groups.items()}, others_end=True
    )
    applied.changes += set_agents(
        APPLY,
        [
            AgentWanted(one["name"], one.get("owner"), one.get("daily_budget", {}))
            for one in document.get("agents", [])
        ],
        others_end=True,
        issued=issued,
    )
    applied.changes += _set_secrets(document)
    applied.changes += set_tools(
        APPLY, document.get("tools", []), others_retire=True, issued=issued
    )
    applied.changes += set_grants(
        APPLY, {one["username"]: one.get("may_decide", []) for one in people}, others_end=True
    )
    applied.changes += set_group_grants(
        APPLY, {name: given_to(group) for name, group in groups.items()}, others_end=True
    )
    applied.changes += publish_policy(APPLY, document.get("policy", {}))


def _set_secrets(document: Document) -> list[Change]:
    """Set what the file has values for; a file that lists secrets ends those it does not list."""
    if "secrets" not in document:
        return []
    given = {one["name"]: value_of(one) for one in document["secrets"]}
    values = {name: value for name, value in given.items() if value is not None}
    return set_secrets(APPLY, values, keep=given.keys())
