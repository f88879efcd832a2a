from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tenants.models import TenantOwned, User


class PolicyStatus(models.TextChoices):
    DRAFT = "draft"
    PUBLISHED = "published"


class PolicyVersion(TenantOwned):
    """The declared authorization rules of a tenant; immutable once published.

    The published version with the highest number is in force.
    """

    number = models.PositiveIntegerField()
    status = models.CharField(
        max_length=9, choices=PolicyStatus.choices, default=PolicyStatus.DRAFT
    )
    document = models.JSONField()  # the tenant file's `policy`
    digest = models.CharField(max_length=71)
    why = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    published_at = models.DateTimeField(null=True)
    published_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "number"], name="policy_number_once"),
            models.CheckConstraint(
                condition=Q(status="draft", published_at=None)
                | Q(status="published", published_at__isnull=False),
                name="a_published_policy_says_when",
            ),
        ]

    def __str__(self) -> str:
        return f"policy {self.number} ({self.status})"
