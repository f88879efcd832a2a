from __future__ import annotations

from django.db import models
from django.db.models import Q

from interrupts.models.runs import Run
from interrupts.models.states import VerdictStatus
from interrupts.models.steps import Step
from tenants.models import TenantOwned


class Verdict(TenantOwned):
    """What the verifier of a step's tool version says of its receipt: one for each such step.

    ``holds``: the run starts nothing because of it. It is awaited (where the tool says
    ``before_next``), or a person's answer to it is, or the effect is being undone on such an answer.
    ``tries`` is its fence: what an older try says counts no more.
    """

    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="verdicts", db_constraint=False
    )
    step = models.ForeignKey(
        Step, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    receipt = models.UUIDField()
    status = models.CharField(
        max_length=8, choices=VerdictStatus.choices, default=VerdictStatus.AWAITED, editable=False
    )
    holds = models.BooleanField()
    tries = models.IntegerField(default=0)
    ask_at = models.DateTimeField(null=True)  # not to be asked before; null: not asked any more
    asking_until = models.DateTimeField(null=True)  # till then a worker is at it
    words = models.TextField(null=True)  # the verifier's: untrusted text
    error = models.TextField(null=True)  # why there is no word of it
    awaited_since = models.DateTimeField()
    recorded_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["step"], name="one_verdict_per_step"),
            models.CheckConstraint(
                condition=Q(status="awaited", recorded_at=None, ask_at__isnull=False)
                | (~Q(status="awaited") & Q(recorded_at__isnull=False, ask_at=None)),
                name="a_verdict_is_awaited_or_recorded",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.status} of {self.step_id}"
