from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from interrupts.models.states import ENDED, RunStatus, Suspension
from tenants.ids import uuid7
from tenants.models import Agent, TenantOwned, User


class Run(TenantOwned):
    """One execution of an agent's task. Its row is also the head of its journal stream.

    ``due_at`` is set whenever something of the run waits for time (a lease, a retry, an expiry, a
    silent owner, a wake that may be lost); the sweep looks then. It may be early, never late.

    Its row is written with every step, so what the database checks of it is a function's call
    (migration 0002): PostgreSQL reads a spelt-out CHECK anew for every statement.
    """

    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="runs", db_constraint=False, db_index=False
    )
    workflow = models.CharField(max_length=200)
    goal = models.TextField()
    inputs = models.JSONField(default=dict)
    labels = models.JSONField(default=dict)
    requested_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    parent = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        related_name="children",
        db_constraint=False,
        db_index=False,
    )
    root = models.UUIDField(default=uuid7, editable=False)
    # The ids of its ancestors, the root first: a family is stopped in one statement.
    path = ArrayField(models.UUIDField(), default=list, editable=False)
    forked_from = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        related_name="forks",
        db_constraint=False,
        db_index=False,
    )
    key_scope = models.UUIDField(default=uuid7, editable=False)  # the first run of its forks

    status = models.CharField(
        max_length=10, choices=RunStatus.choices, default=RunStatus.RUNNING, editable=False
    )
    suspension = models.CharField(max_length=20, choices=Suspension.choices, null=True)
    count_unknown = models.IntegerField(default=0)
    count_in_flight = models.IntegerField(default=0)
    count_partial = models.IntegerField(default=0)
    epoch = models.IntegerField(default=1)
    state_version = models.BigIntegerField(default=1)
    journal_seq = models.BigIntegerField(default=0)
    journal_hash = models.BinaryField(default=bytes)
    last_position = models.IntegerField(default=0)
    next_step = models.IntegerField(default=1)  # the first position that is not settled
    open_interrupts = models.IntegerField(default=0)
    # By the database too: hosts of an older release may still start runs.
    verdicts_awaited = models.IntegerField(default=0, db_default=0)
    verdicts_holding = models.IntegerField(default=0, db_default=0)  # by any, no step starts
    checkpoint = models.ForeignKey(
        "Checkpoint",
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )

    session = models.IntegerField(default=0)
    idle_after_seconds = models.FloatField(null=True)
    last_seen_at = models.DateTimeField(db_default=Now())

    budget = models.JSONField(default=dict)  # the limits in force: steps, cost, seconds, tokens
    usage_steps = models.BigIntegerField(default=0)
    usage_cost = models.DecimalField(max_digits=30, decimal_places=10, default=0)
    usage_seconds = models.DecimalField(max_digits=20, decimal_places=3, default=0)
    usage_tokens = models.BigIntegerField(default=0)
    # What its steps are let in with and have not settled; it counts as used until they have.
    reserved_cost = models.DecimalField(max_digits=30, decimal_places=10, default=0, db_default=0)

    output = models.JSONField(null=True)
    error = models.JSONField(null=True)
    compensating = models.BooleanField(default=False)  # its cancel asked for compensation
    due_at = models.DateTimeField(null=True)
    # A read needs no intent: this is all that says one is being made, and until when it may take.
    reading = models.UUIDField(null=True)
    reading_until = models.DateTimeField(null=True)
    # What was found first that does not verify: nothing of it starts until it does again.
    damage = models.TextField(null=True)
    damaged_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # No index on a column the hot path changes: it would cost an entry a step.
            models.Index(fields=["agent", "id"], name="run_of_agent"),
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="run_due"),
            models.Index(fields=["root"], name="run_family"),
            models.Index(
                fields=["parent"], condition=Q(parent__isnull=False), name="run_of_parent"
            ),
            models.Index(
                fields=["forked_from"], condition=Q(forked_from__isnull=False), name="run_of_origin"
            ),
            models.Index(
                fields=["status", "suspension"], condition=Q(ended_at=None), name="run_live"
            ),
            models.Index(
                fields=["damaged_at"], condition=Q(damaged_at__isnull=False), name="run_damaged"
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} ({self.status})"

    @property
    def ended(self) -> bool:
        return self.status in ENDED


class AgentDay(TenantOwned):
    """What all runs of an agent have used in one UTC day, and what is reserved of it.

    Kept only while a day's budget is declared for the agent: others count nothing here.
    """

    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    day = models.DateField()
    steps = models.BigIntegerField(default=0)
    cost = models.DecimalField(max_digits=30, decimal_places=10, default=0)
    reserved_cost = models.DecimalField(max_digits=30, decimal_places=10, default=0)
    seconds = models.DecimalField(max_digits=20, decimal_places=3, default=0)
    tokens = models.BigIntegerField(default=0)
    extended = models.JSONField(default=dict)  # the limits that people set for this day alone

    class Meta:
        constraints = [
            # Whoever begins a day at the same moment counts in one row.
            models.UniqueConstraint(fields=["agent", "day"], name="agent_day_once"),
            models.CheckConstraint(
                condition=Q(reserved_cost__gte=0), name="no_less_than_nothing_is_reserved"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} on {self.day}"


class Guidance(TenantOwned):
    """What a person told the agent to do differently; it stands until it is acknowledged."""

    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="guidance", db_constraint=False
    )
    text = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.text


class Checkpoint(TenantOwned):
    """The authoritative resumable state of a run at a boundary; never changed.

    The agent's own state is kept whole, or as what was appended to the lists of a base: then the
    whole is the base's state with each checkpoint's items added in turn.
    """

    run = models.ForeignKey(  # found by its unique (run, sequence)
        Run,
        on_delete=models.PROTECT,
        related_name="checkpoints",
        db_constraint=False,
        db_index=False,
    )
    sequence = models.PositiveIntegerField()
    state_version = models.BigIntegerField()
    schema_version = models.PositiveSmallIntegerField(default=1)
    status = models.CharField(max_length=10)
    next_step = models.PositiveIntegerField()
    pending_gates = models.JSONField(default=list)
    receipts_through = models.BigIntegerField()  # journal sequence
    permissions = models.JSONField()  # authority, policy and tool versions, agent key, epoch
    inputs = models.CharField(max_length=71)  # digest
    agent_format = models.CharField(max_length=100, null=True)
    agent_version = models.CharField(max_length=100, null=True)
    agent_size = models.PositiveIntegerField(null=True)  # bytes of the whole, canonical
    agent_digest = models.CharField(
        max_length=71, null=True
    )  # transitions/versions.py says of what
    agent_base = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="+", db_constraint=False
    )
    agent_body = models.BinaryField(max_length=32, null=True)  # Content: the whole or the append
    digest = models.CharField(max_length=71)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "sequence"], name="checkpoint_sequence_once"),
        ]

    def __str__(self) -> str:
        return f"checkpoint {self.sequence} of {self.run_id}"


class Content(models.Model):
    """A body, by its keyed digest: arguments, results, agent state. Erasing one breaks no chain."""

    pk = models.CompositePrimaryKey("tenant_id", "digest")
    tenant = models.ForeignKey(
        "tenants.Tenant", on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    digest = models.BinaryField(max_length=32)  # HMAC-SHA256 under the tenant's content key
    body = models.BinaryField()
    cipher = models.CharField(max_length=40, blank=True)  # the key it is encrypted under, if it is
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = models.Manager()  # row-level security alone keeps tenants apart here

    def __str__(self) -> str:
        return bytes(self.digest).hex()[:16]
