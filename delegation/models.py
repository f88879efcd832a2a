"""What no longer needs asking: rules, each use of them, and the events they are learned from."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from interrupts.models import Risk
from tenants.models import TenantOwned, User


class Origin(models.TextChoices):
    LEARNED = "learned"
    PERSON = "person"
    TEMPLATE = "template"


class DelegationStatus(models.TextChoices):
    SUGGESTED = "suggested"
    ACTIVE = "active"
    PAUSED = "paused"
    REVOKED = "revoked"
    EXPIRED = "expired"


class Delegation(TenantOwned):
    """A learned or hand-made rule that speaks for one person; a change is a new version."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="delegations")
    tool = models.UUIDField()
    version = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=9, choices=DelegationStatus.choices)
    origin = models.CharField(max_length=8, choices=Origin.choices)
    risk = models.CharField(max_length=6, choices=Risk.choices)
    predicate = models.JSONField()
    evidence = models.JSONField(default=dict)
    limits = models.JSONField(default=dict)
    sha256 = models.CharField(max_length=71)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # No rule speaks for what is high.
            models.CheckConstraint(
                condition=Q(risk__in=["low", "medium"]), name="no_delegation_for_high_risk"
            ),
        ]

    def __str__(self) -> str:
        return f"delegation {self.pk} v{self.version} ({self.status})"


class DelegationUse(TenantOwned):
    """One automatic decision under a rule."""

    delegation = models.ForeignKey(
        Delegation, on_delete=models.PROTECT, related_name="uses", db_constraint=False
    )
    version = models.PositiveIntegerField()
    decision = models.UUIDField(null=True)
    step = models.UUIDField()
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"use of {self.delegation_id} for {self.step}"


class SpotCheck(TenantOwned):
    """A time it asked although it would not have had to."""

    delegation = models.ForeignKey(
        Delegation, on_delete=models.PROTECT, related_name="spot_checks", db_constraint=False
    )
    version = models.PositiveIntegerField()
    gate = models.UUIDField()
    verdict = models.CharField(max_length=15, null=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"spot check of {self.delegation_id}"


class DecisionEvent(TenantOwned):
    """The append-only stream the learner reads: its only input."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    sequence = models.BigIntegerField()
    kind = models.CharField(max_length=20)
    tool = models.UUIDField()
    gate = models.UUIDField(null=True)
    data = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "sequence"], name="decision_event_sequence_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} #{self.sequence}"
