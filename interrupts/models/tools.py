from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from interrupts.models.states import Choice, Effect, Executor, Risk
from tenants.models import TenantOwned


class Tool(TenantOwned):
    """A tenant's catalogue entry for one kind of effect; what it does stands in its versions."""

    name = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    current = models.ForeignKey(
        "ToolVersion", on_delete=models.PROTECT, null=True, related_name="+", db_constraint=False
    )
    # The secret its calls are signed with, encrypted under a key outside the database.
    secret = models.BinaryField(null=True, editable=False)
    retired_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        permissions = [("decide_tool", "Can decide gates of this tool")]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="tool_name_once_per_tenant"),
        ]

    def __str__(self) -> str:
        return self.name


class ToolVersion(TenantOwned):
    """What a tool is, for ever: the database refuses to change a version."""

    tool = models.ForeignKey(
        Tool, on_delete=models.PROTECT, related_name="versions", db_constraint=False
    )
    number = models.PositiveIntegerField()
    effect = models.CharField(max_length=12, choices=Effect.choices)
    risk = models.CharField(max_length=6, choices=Risk.choices)
    arguments = models.JSONField()  # JSON Schema
    sensitive = models.JSONField(default=list)  # JSON Pointers, never shown or logged in clear
    confirmation = models.TextField(blank=True)
    headline = models.TextField(blank=True)
    consequence = models.TextField(blank=True)
    blast_radius = models.TextField(blank=True)
    failure_modes = models.JSONField(default=list)
    roles = models.JSONField(default=dict)
    key_lifetime = models.PositiveIntegerField(null=True)  # seconds; null: not declared
    on_failure = models.CharField(max_length=10, default="tell")  # tell | interrupt
    # The next three by the database too: hosts of an older release may still declare versions.
    # What people may choose of a call; none named: all.
    decisions = models.JSONField(default=list, db_default=[])
    # Of one call, as declared: a decimal.
    cost = models.CharField(max_length=26, blank=True, default="", db_default="")
    # {name, longest_age}: what a call needs to know.
    context = models.JSONField(default=list, db_default=[])
    executor = models.JSONField()
    executor_kind = models.CharField(max_length=6, choices=Executor.choices)
    timeout_seconds = models.FloatField()  # of a call; for an agent, its lease
    preview = models.JSONField(null=True)
    reconcile = models.JSONField(null=True)
    compensate = models.JSONField(null=True)
    verifier = models.JSONField(null=True)  # who judges a receipt of it
    digest = models.CharField(max_length=71)  # of the declaration, to tell whether it changed
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tool", "number"], name="tool_version_number_once"),
        ]

    def __str__(self) -> str:
        return f"{self.tool_id} v{self.number}"

    @property
    def allowed_decisions(self) -> list[str]:
        """What people may choose of a call of it: to approve and to reject always among them."""
        return [one.value for one in Choice if not self.decisions or one in self.decisions]


class FreezeScope(models.TextChoices):
    TENANT = "tenant"
    AGENT = "agent"
    TOOL = "tool"


class Freeze(TenantOwned):
    """While it stands no effect in its scope starts; proposals and decisions are still taken."""

    scope = models.CharField(max_length=6, choices=FreezeScope.choices)
    name = models.CharField(max_length=100, blank=True)
    note = models.TextField(blank=True)
    created_by = models.UUIDField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    lifted_by = models.UUIDField(null=True)
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(scope="tenant", name="")
                | (~models.Q(scope="tenant") & ~models.Q(name="")),
                name="freeze_names_what_it_freezes",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.name}".strip()
