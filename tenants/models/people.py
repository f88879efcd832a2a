from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, UserManager
from django.db import models
from django.db.models.functions import Now

from tenants.ids import uuid7
from tenants.models.base import TenantOwned


class Theme(models.TextChoices):
    SYSTEM = "", "as the system"
    LIGHT = "light"
    DARK = "dark"


class User(AbstractUser):
    """A person, known by e-mail, in any number of tenants; deactivated, never deleted.

    Being superuser gives no authority over any gate: authority is given in a tenant, by name.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField("e-mail", blank=True)
    # How the pages look and answer to this person, in every tenant.
    theme = models.CharField(max_length=5, choices=Theme.choices, blank=True, default=Theme.SYSTEM)
    time_zone = models.CharField(max_length=64, default="UTC")  # an IANA name
    shortcuts = models.BooleanField(default=True)  # keys, where the page has a script

    objects: ClassVar[UserManager[Any]] = UserManager()

    def __str__(self) -> str:
        return self.username


class Role(models.TextChoices):
    ADMIN = "admin"
    OPERATOR = "operator"
    APPROVER = "approver"
    VIEWER = "viewer"


class Membership(TenantOwned):
    """A person's role in a tenant. No role decides a gate by itself."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # One role a person and tenant: two would be the wider of both.
            models.UniqueConstraint(fields=["tenant", "user"], name="membership_one_per_person"),
        ]

    def __str__(self) -> str:
        return f"{self.user} as {self.role}"


class Group(TenantOwned):
    """A tenant's own named set of members; never Django's global group."""

    name = models.CharField(max_length=100)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="group_name_once_per_tenant"),
        ]

    def __str__(self) -> str:
        return self.name


class GroupMember(TenantOwned):
    group = models.ForeignKey(
        Group, on_delete=models.CASCADE, related_name="members", db_constraint=False
    )
    membership = models.ForeignKey(
        Membership, on_delete=models.CASCADE, related_name="groups", db_constraint=False
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["group", "membership"], name="group_member_once"),
        ]

    def __str__(self) -> str:
        return f"{self.membership_id} in {self.group_id}"
