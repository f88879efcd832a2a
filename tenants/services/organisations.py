"""The tenant itself."""

from __future__ import annotations

from tenants.changes import Change, record
from tenants.ids import uuid7
from tenants.journal import Actor
from tenants.models import Tenant
from tenants.scope import current_tenant_id, tenant_scope


def make_tenant(actor: Actor, *, slug: str, name: str) -> tuple[Tenant, list[Change]]:
    """Make a tenant; its journal begins with it. The one service that opens its own scope."""
    tenant = Tenant(pk=uuid7(), slug=slug, name=name)
    with tenant_scope(tenant.pk):
        tenant.save(force_insert=True)
        change = Change("tenant", slug, None, {"name": name})
        record(actor, [change])
    return tenant, [change]


def rename_tenant(actor: Actor, name: str) -> list[Change]:
    """Give the current tenant its name; the one it has changes nothing."""
    tenant = Tenant.objects.select_for_update().get(pk=current_tenant_id())
    if tenant.name == name:
        return []
    change = Change("tenant", tenant.slug, {"name": tenant.name}, {"name": name})
    Tenant.objects.filter(pk=tenant.pk).update(name=name)
    record(actor, [change])
    return [change]
