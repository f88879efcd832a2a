"""Who may decide what: guardian's permissions as rows with real references, inside one tenant."""

from django.db import models
from guardian.models import UserObjectPermissionBase

from interrupts.models import Tool
from tenants.ids import uuid7
from tenants.models import Tenant
from tenants.scope import current_tenant_id


class ToolPermission(UserObjectPermissionBase):
    """This person may decide gates of this tool."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(
        Tenant,
        on_delete=models.CASCADE,
        default=current_tenant_id,
        editable=False,
        db_index=False,
        related_name="+",
    )
    content_object = models.ForeignKey(Tool, on_delete=models.CASCADE, db_constraint=False)

    class Meta(UserObjectPermissionBase.Meta):
        abstract = False


class TenantPermission(UserObjectPermissionBase):
    """This person may decide gates of every tool of the tenant."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    content_object = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_column="tenant_id")

    class Meta(UserObjectPermissionBase.Meta):
        abstract = False
