"""Who may decide what: guardian's permissions as rows with real references, inside one tenant.

Each has limits, conditions in CEL over a call: all of them must hold of it; none: any call. Where a
person has a permission on the tool and one on the tenant, the limits of both must; so it is of a
group. What a person has and what each of their groups has stand beside each other: one is enough.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from guardian.models import UserObjectPermissionBase

from interrupts.models import Tool
from tenants.ids import uuid7
from tenants.models import Group, Tenant, TenantOwned, User
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
    # By the database too: hosts of an older release may still grant.
    limits = ArrayField(models.TextField(), default=list, db_default=[])

    class Meta(UserObjectPermissionBase.Meta):
        abstract = False


class TenantPermission(UserObjectPermissionBase):
    """This person may decide gates of every tool of the tenant."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    content_object = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_column="tenant_id")
    limits = ArrayField(models.TextField(), default=list, db_default=[])

    class Meta(UserObjectPermissionBase.Meta):
        abstract = False


class GroupPermission(TenantOwned):
    """Whoever is in this group may decide gates of this tool; without a tool, of every tool.

    Its group is the tenant's own: guardian's are of Django's groups, which every tenant shares.
    """

    group = models.ForeignKey(
        Group, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    tool = models.ForeignKey(
        Tool,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    limits = ArrayField(models.TextField(), default=list)

    class Meta:
        constraints = [
            # Two of one group and tool would be the looser of both.
            models.UniqueConstraint(
                fields=["group", "tool"], nulls_distinct=False, name="a_group_is_given_a_tool_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group} may decide {self.tool or 'every tool'}"


class Substitution(TenantOwned):
    """One member decides for another for a time, with that person's own authority and no other.

    Never changed but in ``ended_at``, when somebody ended it before its time.
    """

    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    substitute = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    created_by = models.UUIDField(null=True)  # the person themself, or an admin

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(
                fields=["substitute"],
                condition=Q(ended_at=None),
                name="substitutions_by_substitute",
            ),
            models.Index(
                fields=["person"], condition=Q(ended_at=None), name="substitutions_by_person"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="a_substitution_begins_before_it_ends"
            ),
            models.CheckConstraint(
                condition=~Q(person=F("substitute")), name="a_substitute_is_somebody_else"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.substitute} for {self.person}"
