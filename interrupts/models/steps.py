from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from interrupts.models.runs import Run
from interrupts.models.states import Effect, Executor, Outcome, Risk, StepStatus
from interrupts.models.tools import Tool, ToolVersion
from tenants.ids import uuid7
from tenants.models import TenantOwned, User


class Step(TenantOwned):
    """One proposed tool call. What its version says of the call is repeated here for the claim."""

    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="steps", db_constraint=False, db_index=False
    )
    position = models.IntegerField()
    group = models.UUIDField(default=uuid7)
    parallel = models.BooleanField(default=False)
    key = models.CharField(max_length=255, null=True)
    key_scope = models.UUIDField()  # the run's: a key is unique in a run and its forks
    session = models.IntegerField(default=0)
    tool = models.ForeignKey(
        Tool, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    tool_version = models.ForeignKey(
        ToolVersion, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    tool_name = models.CharField(max_length=100)
    tool_number = models.IntegerField()
    executor = models.CharField(max_length=6, choices=Executor.choices)
    effect = models.CharField(max_length=12, choices=Effect.choices)
    risk = models.CharField(max_length=6, choices=Risk.choices)
    timeout_seconds = models.FloatField()
    arguments = models.BinaryField(max_length=32)  # Content: canonical JSON
    digest = models.CharField(max_length=71)  # SHA-256 of {tool, tool_version, arguments}
    proposed_digest = models.CharField(max_length=71)  # as first proposed, whatever an edit made
    proposal = models.JSONField(default=dict)  # reasoning, confidence, …: the agent's words
    # What policy saw at its last judging that may be otherwise later; null: nothing of the kind.
    judged = models.JSONField(null=True)

    status = models.CharField(
        max_length=12, choices=StepStatus.choices, default=StepStatus.PROPOSED, editable=False
    )
    reason = models.TextField(null=True)
    reason_code = models.CharField(max_length=50, null=True)  # of the reason that a person chose
    # gate | budget | context | twin: why it waits
    held_by = models.CharField(max_length=10, null=True)
    gate = models.UUIDField(null=True)
    interrupt = models.UUIDField(null=True)
    twin = models.UUIDField(null=True)  # the step of unknown outcome that it looks like
    authorized_by = models.CharField(max_length=10, null=True)  # policy | decision | delegation
    authorized_rule = models.CharField(max_length=200, null=True)
    authorized_gate = models.UUIDField(null=True)
    authorized_digest = models.CharField(max_length=71, null=True)
    # The stamp: what the authorization was current under. A newer authority is asked again.
    authorized_under = models.BigIntegerField(null=True)
    authorized_tool_version = models.UUIDField(null=True)
    authorized_policy_version = models.IntegerField(null=True)
    authorized_until = models.DateTimeField(null=True)

    # What it was let in with against a budget, till it settles; and the day that it counts in.
    reserved_cost = models.DecimalField(max_digits=30, decimal_places=10, null=True)
    counted_on = models.DateField(null=True)
    # Until when what its tool needs to know is fresh, by name (null: not said); null: nothing is.
    context = models.JSONField(null=True)
    context_until = models.DateTimeField(null=True)  # the first of these, where all are said

    attempts = models.IntegerField(default=0)
    fence = models.IntegerField(default=0)  # of the newest attempt
    outcome = models.CharField(max_length=13, choices=Outcome.choices, null=True)
    result = models.BinaryField(max_length=32, null=True)  # Content
    error = models.TextField(null=True)
    external_id = models.TextField(null=True)
    due_at = models.DateTimeField(null=True)  # not to be started before
    unknown_at = models.DateTimeField(null=True)
    asked = models.IntegerField(default=0)  # how often the tool was asked what happened
    ask_at = models.DateTimeField(
        null=True
    )  # when it is asked next; null: only a person settles it
    ask_first = models.BooleanField(default=False)  # it is asked once more before it is sent again
    undo_wanted = models.BooleanField(default=False)  # its effect is to be undone
    undo_tries = models.IntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "position"], name="step_position_once"),
            # A key names one step that holds for a run and its forks; what was never done may be
            # proposed anew under it in a fork.
            models.UniqueConstraint(
                fields=["run", "key"], condition=Q(key__isnull=False), name="step_key_once_in_run"
            ),
        ]
        indexes = [
            models.Index(
                fields=["key_scope", "key"],
                condition=Q(key__isnull=False),
                name="step_key_in_forks",
            ),
            # Never the tenant first: row-level security asks for it in every statement, and a plan
            # made before there are statistics would walk through all of the tenant's steps.
            models.Index(fields=["proposed_digest"], name="step_twins"),
        ]

    def __str__(self) -> str:
        return f"{self.tool_name} #{self.position} ({self.status})"


class Question(TenantOwned):
    """What a person asks the agent about a step that waits for a gate, and what it answers, once."""

    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="questions", db_constraint=False
    )
    step = models.ForeignKey(
        Step, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    gate = models.UUIDField()
    text = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    at = models.DateTimeField()
    answer = models.TextField(null=True)  # the agent's words: untrusted text
    answered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["gate"], name="questions_of_a_gate")]
        constraints = [
            models.CheckConstraint(
                condition=Q(answer=None, answered_at=None)
                | Q(answer__isnull=False, answered_at__isnull=False),
                name="an_answer_has_its_time",
            ),
        ]

    def __str__(self) -> str:
        return self.text


class Attempt(TenantOwned):
    """One try at a step, fenced: a newer one makes an older one stale."""

    step = models.ForeignKey(
        Step, on_delete=models.PROTECT, related_name="tries", db_constraint=False, db_index=False
    )
    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    fence = models.IntegerField()
    epoch = models.IntegerField()
    worker = models.CharField(max_length=100, blank=True)
    compensation = models.BooleanField(default=False)
    started_at = models.DateTimeField()
    lease_expires_at = models.DateTimeField(null=True)  # null: a read, which has no lease
    lease_seconds = models.FloatField(null=True)
    cancel_requested = models.BooleanField(default=False)
    lapsed_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=13, choices=Outcome.choices, null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["step", "fence"], name="attempt_fence_once"),
            # Whoever repeats, races or wakes twice: a step is tried by one at a time.
            models.UniqueConstraint(
                fields=["step"],
                condition=Q(settled_at=None, lapsed_at=None),
                name="one_live_attempt_per_step",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.fence} of {self.step_id}"


class Source(models.TextChoices):
    EXECUTOR = "executor"
    AGENT = "agent"
    RECONCILIATION = "reconciliation"
    PERSON = "person"


class Receipt(TenantOwned):
    """An observed outcome of an attempt or compensation, or a person's answer in its place."""

    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    step = models.ForeignKey(
        Step, on_delete=models.PROTECT, related_name="receipts", db_constraint=False
    )
    attempt = models.UUIDField(null=True)
    compensation = models.BooleanField(default=False)
    source = models.CharField(max_length=14, choices=Source.choices)
    outcome = models.CharField(max_length=13, choices=Outcome.choices)
    result = models.BinaryField(max_length=32, null=True)  # Content
    external_id = models.TextField(null=True)
    cost = models.DecimalField(max_digits=30, decimal_places=10, null=True)
    error = models.TextField(null=True)
    evidence = models.TextField(null=True)
    by = models.CharField(max_length=60)  # "agent:<id>", "user:<id>" or "worker:<name>"
    observed_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.outcome} of {self.step_id}"
