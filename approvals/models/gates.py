"""A gate and what is said of it.

    preparing ⇄ pending ─► rejected | changes_requested | responded
        │         │ ▲ └──► expired | withdrawn | superseded
        │         ▼ │                      ▲
        │       approved ──────────────────┤ (superseded)
        └──────────────────────────────────┘

An approval that is withdrawn before its step starts makes the gate pending again; one that no
longer holds when the step is about to start makes it superseded. No other final state is left.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from approvals.policy import told
from approvals.policy.stages import Stage, parse_stages
from interrupts.models import Effect, Interrupt, Risk, Run, Step, Tool, ToolVersion
from tenants.models import TenantOwned, User


class Pattern(models.TextChoices):
    PROPOSE_CONFIRM = "propose_confirm"
    PREVIEW = "preview"
    ALLOWLIST = "allowlist"


class GateState(models.TextChoices):
    PREPARING = "preparing"
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    CHANGES_REQUESTED = "changes_requested"
    RESPONDED = "responded"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"


G = GateState
OPEN_GATES = frozenset({G.PREPARING, G.PENDING})
FINAL_GATES = frozenset(G) - OPEN_GATES
GATE_MOVES: dict[GateState, frozenset[GateState]] = {
    # An edit's preview is taken anew, and what waits for it is preparing again.
    G.PREPARING: frozenset({G.PENDING, G.EXPIRED, G.WITHDRAWN, G.SUPERSEDED}),
    G.PENDING: frozenset(
        {
            G.PREPARING,
            G.APPROVED,
            G.REJECTED,
            G.CHANGES_REQUESTED,
            G.RESPONDED,
            G.EXPIRED,
            G.WITHDRAWN,
            G.SUPERSEDED,
        }
    ),
    **{state: frozenset() for state in FINAL_GATES},
    G.APPROVED: frozenset({G.PENDING, G.SUPERSEDED}),
}


class Ceremony(models.TextChoices):
    SINGLE = "single"
    REVIEW = "review"
    EXPLICIT = "explicit"
    TYPED = "typed"


class Verdict(models.TextChoices):
    APPROVE = "approve"
    REJECT = "reject"
    REQUEST_CHANGES = "request_changes"
    RESPOND = "respond"


# What may be approved together with others, as a query; `Gate.fits_bulk` says it of a row.
FITS_BULK = Q(risk=Risk.LOW, ceremony=Ceremony.SINGLE) & ~Q(effect=Effect.IRREVERSIBLE)


class Gate(TenantOwned):
    """A policy decision about one step, and the snapshot of what is shown to those who decide it.

    ``arguments`` are those on show: an edit that still lacks votes replaces them, and the digest
    with them.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    step = models.ForeignKey(
        Step, on_delete=models.PROTECT, related_name="gates", db_constraint=False
    )
    interrupt = models.ForeignKey(
        Interrupt, on_delete=models.PROTECT, null=True, related_name="+", db_constraint=False
    )
    tool = models.ForeignKey(
        Tool, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    tool_version = models.ForeignKey(
        ToolVersion, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    pattern = models.CharField(max_length=15, choices=Pattern.choices)
    state = models.CharField(max_length=17, choices=GateState.choices)
    risk = models.CharField(max_length=6, choices=Risk.choices)
    effect = models.CharField(max_length=12, choices=Effect.choices)
    ceremony = models.CharField(max_length=8, choices=Ceremony.choices)
    required_confirmation = models.TextField(null=True)

    headline = models.TextField()
    consequence = models.TextField(blank=True)
    arguments = models.BinaryField(max_length=32)  # Content: canonical JSON
    arguments_digest = models.CharField(max_length=71)  # sensitive values as HMACs
    digest = models.CharField(max_length=71)  # of all that is shown as what
    why = models.JSONField()  # goal, reasoning, confidence, previous_steps: untrusted text
    what_could_go_wrong = models.JSONField()
    preview = models.JSONField(null=True)
    preview_error = models.TextField(null=True)
    fresh_until = models.DateTimeField(null=True)

    rule = models.CharField(max_length=200)  # the strictest that fired
    triggers = models.JSONField()
    policy_version = models.PositiveIntegerField()
    quorum = models.PositiveSmallIntegerField(default=1)
    stages = models.JSONField(default=list)  # of several: approvers and quorum of each, in order
    stage = models.PositiveSmallIntegerField(null=True)  # the one that is open, or was last; from 1
    approvers = ArrayField(models.CharField(max_length=100), default=list)  # groups; none: all
    routing = models.JSONField(default=dict)
    twin = models.UUIDField(null=True)
    expires_at = models.DateTimeField(null=True)
    on_expiry = models.CharField(max_length=8, null=True)
    due_at = models.DateTimeField(null=True)  # when a worker should look at it: preview, expiry
    preview_tries = models.PositiveSmallIntegerField(default=0)
    preview_until = models.DateTimeField(null=True)  # a worker is taking it, and has till then
    undecidable_at = models.DateTimeField(null=True)  # found that nobody may decide it
    opened_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)

    @property
    def reasons(self) -> list[dict[str, Any]]:
        """The declared reasons that whoever decides chooses from; none: they say why themselves."""
        declared: list[dict[str, Any]] = self.routing.get("reasons", [])
        return declared

    def reasons_for(self, choice: str) -> list[dict[str, Any]]:
        return [one for one in self.reasons if choice in one["decisions"]]

    @property
    def keeps_previous(self) -> bool:
        """Say whether the steps before its own are kept: not where nobody was shown it as it opened."""
        return self.why.get("previous_steps", ()) is not None

    @property
    def fits_bulk(self) -> bool:
        """Say whether this may be approved together with others: see `FITS_BULK`."""
        low = self.risk == Risk.LOW and self.effect != Effect.IRREVERSIBLE
        return low and self.ceremony == Ceremony.SINGLE

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        """Return who decides one after the other; one stage where it has none."""
        alone = {"approvers": self.approvers, "quorum": self.quorum}
        return parse_stages({**alone, "stages": self.stages})

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="gate_due"),
            models.Index(
                fields=["tenant", "id"],
                condition=Q(state__in=["preparing", "pending"]),
                name="gate_open",
            ),
            models.Index(fields=["tool", "id"], name="gate_of_tool"),
        ]
        constraints = [
            # Nobody is asked twice at once about one step.
            models.UniqueConstraint(
                fields=["step"],
                condition=Q(state__in=["preparing", "pending"]),
                name="one_pending_gate_per_step",
            ),
            models.CheckConstraint(condition=Q(quorum__gte=1), name="a_gate_needs_somebody"),
            # Besides, as promises of migration 0002: a_gate_expires_into_no_approval and
            # a_gate_with_stages_has_an_open_one.
        ]

    def __str__(self) -> str:
        return f"{self.headline} ({self.state})"


class Decision(TenantOwned):
    """One person's verdict on a gate, bound to what they were shown; never changed but in
    ``counts``: an edit, a withdrawal or a lost right makes it count no more."""

    gate = models.ForeignKey(
        Gate, on_delete=models.PROTECT, related_name="decisions", db_constraint=False
    )
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    # Whose authority it was by, where the person stood in for somebody.
    acting_for = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    delegation = models.UUIDField(null=True)
    verdict = models.CharField(max_length=15, choices=Verdict.choices)
    digest = models.CharField(max_length=71)  # of what was seen
    approves = models.CharField(max_length=71)  # digest of what it speaks for: an edit's is new
    edits = models.BinaryField(max_length=32, null=True)  # Content
    value = models.BinaryField(max_length=32, null=True)  # Content
    reason = models.TextField(null=True)  # in the person's own words
    reason_code = models.CharField(max_length=50, null=True)  # of the declared one that they chose
    reason_text = models.TextField(null=True)  # what that one said
    policy_version = models.PositiveIntegerField()
    stage = models.PositiveSmallIntegerField(null=True)  # in which it was said, where there are any
    counts = models.BooleanField(default=True)
    bulk = models.BooleanField(default=False, db_default=False)  # approved together with others
    at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["user", "id"], name="decisions_of_a_person"),
            models.Index(
                fields=["gate"],
                condition=Q(counts=True, edits__isnull=False),
                name="decisions_that_edit",
            ),
            models.Index(
                fields=["id"],
                condition=Q(withdrawn_at__isnull=False),
                name="decisions_taken_back",
            ),
        ]
        constraints = [
            # A person votes once for what is shown, with all their tokens.
            models.UniqueConstraint(
                fields=["gate", "user"], condition=Q(counts=True), name="one_counting_vote_a_person"
            ),
            # Nor do two people vote with the authority of a third.
            models.UniqueConstraint(
                fields=["gate", "acting_for"],
                condition=Q(counts=True, acting_for__isnull=False),
                name="one_counting_vote_for_a_person",
            ),
            # Besides, as a promise of migration 0002: a_chosen_reason_has_its_text.
        ]

    @property
    def holder_id(self) -> UUID:
        """Whose authority it was by."""
        return self.acting_for_id or self.user_id

    @property
    def people(self) -> frozenset[UUID]:
        """Who decided, and for whom: together they are one."""
        return frozenset((self.user_id, self.holder_id))

    def __str__(self) -> str:
        return f"{self.verdict} by {self.user_id}"

    @property
    def said_why(self) -> str | None:
        """What the agent is told: the chosen reason, and the person's own words behind it."""
        return told(self.reason_text, self.reason)


class View(TenantOwned):
    """Who was shown what, first and last when."""

    gate = models.ForeignKey(
        Gate, on_delete=models.PROTECT, related_name="views", db_constraint=False
    )
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    digest = models.CharField(max_length=71)
    snapshot = models.JSONField()
    at = models.DateTimeField()
    # The key's id and the keyed digest of the rest: looking at a gate writes no journal.
    imprint = models.CharField(max_length=110, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["gate", "user", "digest"], name="view_once_per_digest"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} saw {self.digest[:19]}"


class Assignment(TenantOwned):
    """A pending gate in a person's inbox: the narrow table that inboxes read."""

    gate = models.ForeignKey(
        Gate, on_delete=models.CASCADE, related_name="assignments", db_constraint=False
    )
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    assigned_at = models.DateTimeField()
    handed_at = models.DateTimeField(
        null=True
    )  # another handed it to this person: first in the inbox
    passed_at = models.DateTimeField(
        null=True
    )  # handed on: the person may decide, and is not asked

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "gate"], name="assigned_once"),
        ]

    def __str__(self) -> str:
        return f"{self.gate_id} to {self.user_id}"
