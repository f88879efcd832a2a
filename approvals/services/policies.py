"""Publishing the tenant's policy: versions that never change, the newest of which is in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals.models import PolicyStatus, PolicyVersion
from config.jsontext import digest
from tenants.changes import Change, State, record
from tenants.clock import database_now
from tenants.journal import Actor
from tenants.models import Tenant
from tenants.scope import current_tenant_id

NAME = "policy"


def publish_policy(actor: Actor, document: Mapping[str, Any], *, why: str = "") -> list[Change]:
    """Put a checked policy in force; the one that is in force already changes nothing.

    What was authorised under the version before is judged again before it starts.
    """
    # Two at once would take one number: the tenant's row keeps them apart.
    Tenant.objects.select_for_update(no_key=True).get(pk=current_tenant_id())
    last = PolicyVersion.objects.order_by("-number").first()
    in_force = (
        PolicyVersion.objects.filter(status=PolicyStatus.PUBLISHED).order_by("-number").first()
    )
    stands = digest(document)
    if in_force is not None and in_force.digest == stands:
        return []
    made = PolicyVersion.objects.create(
        number=last.number + 1 if last else 1,
        status=PolicyStatus.PUBLISHED,
        document=document,
        digest=stands,
        why=why,
        published_at=database_now(),
    )
    change = Change(
        NAME,
        f"version {made.number}",
        _state(in_force) if in_force else None,
        _state(made),
        narrows=True,
    )
    record(actor, [change])
    return [change]


def _state(version: PolicyVersion) -> State:
    return {"version": version.number, **version.document}
