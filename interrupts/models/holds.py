from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from interrupts.models.runs import Run
from interrupts.models.states import Reason, Resolution, ResponseKind
from tenants.models import TenantOwned


class InterruptStatus(models.TextChoices):
    OPEN = "open"
    RESOLVED = "resolved"


class InFlight(models.TextChoices):
    FINISH = "finish"
    CANCEL = "cancel"


class Interrupt(TenantOwned):
    """The run starts no work until the required response arrives."""

    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="interrupts", db_constraint=False
    )
    reason = models.CharField(max_length=20, choices=Reason.choices)
    status = models.CharField(
        max_length=8, choices=InterruptStatus.choices, default=InterruptStatus.OPEN
    )
    step = models.UUIDField(null=True)
    gate = models.UUIDField(null=True)
    checkpoint = models.UUIDField()
    in_flight = models.CharField(max_length=6, choices=InFlight.choices, default=InFlight.FINISH)
    evidence = models.JSONField(default=dict)
    note = models.TextField(null=True)
    kind = models.CharField(max_length=9, choices=ResponseKind.choices)
    question = models.TextField()
    schema = models.JSONField(null=True)
    who = ArrayField(models.CharField(max_length=10))
    allowed = models.JSONField()  # [{resolution, consequence}]
    expires_at = models.DateTimeField(null=True)
    on_expiry = models.CharField(max_length=10, null=True)
    opened_by = models.JSONField()  # {kind, id}
    opened_at = models.DateTimeField()
    resolution = models.CharField(max_length=10, choices=Resolution.choices, null=True)
    response = models.JSONField(null=True)  # {checkpoint, resolution, value, note}
    resolved_by = models.JSONField(null=True)  # {kind, id}
    resolved_at = models.DateTimeField(null=True)
    # Of a recovery: no worker tries again. A column, since the sweep's role does not read evidence.
    set_aside = models.GeneratedField(
        expression=models.ExpressionWrapper(
            Q(evidence__set_aside=True), output_field=models.BooleanField()
        ),
        output_field=models.BooleanField(null=True),
        db_persist=True,
    )

    class Meta:
        ordering = ["id"]
        indexes = [
            # What is open, the longest first, whosever it is.
            models.Index(
                fields=["opened_at"], condition=Q(status="open"), name="interrupt_open_since"
            ),
            models.Index(
                fields=["tenant", "id"], condition=Q(status="open"), name="interrupt_open"
            ),
        ]
        constraints = [
            # Besides, as a promise of migration 0002: interrupt_resolution_is_all_or_nothing.
            models.UniqueConstraint(
                fields=["step", "reason"],
                condition=Q(status="open", step__isnull=False),
                name="one_open_interrupt_per_step_and_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reason} of {self.run_id} ({self.status})"
