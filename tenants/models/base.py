from __future__ import annotations

from typing import TypeVar

from django.db import models

from tenants.ids import uuid7
from tenants.models.tenant import Tenant
from tenants.scope import TenantManager, current_tenant_id

M = TypeVar("M", bound=models.Model)
TenantQuerySet = models.QuerySet


class TenantOwned(models.Model):
    """A row of one tenant: forced row-level security, and no reference across tenants."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(
        Tenant,
        on_delete=models.PROTECT,
        default=current_tenant_id,
        editable=False,
        db_index=False,  # every index that is used begins with a narrower column
        related_name="+",
    )

    objects = TenantManager()
    unscoped = models.Manager()  # noqa: DJ012 - the default manager must come first

    class Meta:
        abstract = True
