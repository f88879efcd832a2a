"""What no longer needs asking: rules, each use of them, and the events they are learned from.

suggested ─► active ⇄ paused ─► revoked
    │  │        └─────────────────▲ ▲
    │  └───────────────────────────┘ │
    └──► expired ◄── active, paused ─┘ (revoked only by people)
"""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from delegation.predicates import Spent
from interrupts.models import Risk
from tenants.ids import uuid7
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


D = DelegationStatus
OPEN_RULES = frozenset({D.SUGGESTED, D.ACTIVE, D.PAUSED})
MOVES: dict[DelegationStatus, frozenset[DelegationStatus]] = {
    D.SUGGESTED: frozenset({D.ACTIVE, D.REVOKED, D.EXPIRED}),
    D.ACTIVE: frozenset({D.PAUSED, D.REVOKED, D.EXPIRED}),
    D.PAUSED: frozenset({D.ACTIVE, D.REVOKED, D.EXPIRED}),
    D.REVOKED: frozenset(),
    D.EXPIRED: frozenset(),
}


class PauseReason(models.TextChoices):
    """Why a rule sleeps: somebody said so, or what it rests on is gone."""

    PERSON = "person"
    ADMIN = "admin"
    REFUSED = "refused"  # the person refused what it would allow
    INCIDENT = "incident"  # something that it or the person allowed was undone
    UNPROVEN = "unproven"  # what was proved of the person's answers holds no more
    UNREADABLE = "unreadable"  # of something refused or undone nobody can read what it was
    DENIED = "denied"  # a policy version, which the note names, began to deny its tool


class Delegation(TenantOwned):
    """A learned or hand-made rule that speaks for one person; a change is a new version."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="delegations")
    tool = models.UUIDField()
    tool_number = models.PositiveIntegerField(default=1)  # of the version that it speaks of
    version = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=9, choices=DelegationStatus.choices)
    origin = models.CharField(max_length=8, choices=Origin.choices)
    risk = models.CharField(max_length=6, choices=Risk.choices)
    predicate = models.JSONField()  # delegation/predicates.py
    evidence = models.JSONField(default=dict)
    limits = models.JSONField(default=dict)  # {per_day}: narrower than the predicate's, by a person
    check_share = models.FloatField(default=0.25)  # of what it allows that is asked all the same
    sha256 = models.CharField(max_length=71)  # of the predicate
    template = models.UUIDField(null=True)
    narrowed_from = models.JSONField(null=True)  # the predicate as it was suggested
    backtest = models.JSONField(null=True)
    pause_reason = models.CharField(max_length=10, choices=PauseReason.choices, null=True)
    note = models.TextField(blank=True)  # what whoever paused it said
    pause = models.UUIDField(null=True)  # which of its pauses this is: a mail tells of it once
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    changed_at = models.DateTimeField(null=True)
    accepted_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    dismissed_at = models.DateTimeField(null=True)  # a suggestion that is not to come again
    # The policy version in force when it began, or was last let go on: what one after it began to
    # deny, it does not speak of.
    confirmed_under = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        indexes = [
            models.Index(
                fields=["tool", "user"], condition=Q(status="active"), name="rules_that_allow"
            ),
            models.Index(
                fields=["expires_at"],
                condition=Q(status__in=["suggested", "active", "paused"]),
                name="rules_that_expire",
            ),
        ]
        constraints = [
            # No rule speaks for what is high.
            models.CheckConstraint(
                condition=Q(risk__in=["low", "medium"]), name="no_delegation_for_high_risk"
            ),
            # What is learned of a person and a tool's version is one rule.
            models.UniqueConstraint(
                fields=["user", "tool", "tool_number"],
                condition=Q(status__in=["suggested", "active", "paused"], origin="learned"),
                name="one_learned_rule_of_a_tool",
            ),
            models.CheckConstraint(
                condition=Q(status="paused") | Q(pause_reason=None),
                name="only_what_is_paused_has_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"delegation {self.pk} v{self.version} ({self.status})"

    @property
    def unit(self) -> str:
        """The version of a tool that it speaks of, as the learner names it."""
        return f"{self.tool}@{self.tool_number}"


class DelegationVersion(TenantOwned):
    """What a rule said in one of its versions; never changed."""

    delegation = models.ForeignKey(
        Delegation, on_delete=models.PROTECT, related_name="versions", db_constraint=False
    )
    version = models.PositiveIntegerField()
    predicate = models.JSONField()
    limits = models.JSONField(default=dict)
    evidence = models.JSONField(default=dict)
    sha256 = models.CharField(max_length=71)
    by = models.CharField(max_length=60)  # "user:<id>", or "system:abeyance" for what was learned
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["delegation", "version"], name="rule_version_once"),
        ]

    def __str__(self) -> str:
        return f"version {self.version} of {self.delegation_id}"


class DelegationUse(TenantOwned):
    """One automatic decision under a rule."""

    delegation = models.ForeignKey(
        Delegation, on_delete=models.PROTECT, related_name="uses", db_constraint=False
    )
    version = models.PositiveIntegerField()
    decision = models.UUIDField(null=True)
    step = models.UUIDField()
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["step"], name="uses_for_a_step")]

    def __str__(self) -> str:
        return f"use of {self.delegation_id} for {self.step}"


class DelegationDay(TenantOwned):
    """What ran under a rule on one UTC day: locked by each that counts in it."""

    delegation = models.ForeignKey(
        Delegation,
        on_delete=models.PROTECT,
        related_name="days",
        db_constraint=False,
        db_index=False,
    )
    day = models.DateField()
    calls = models.PositiveIntegerField(default=0)
    sums = models.JSONField(default=dict)  # by argument, decimals as text

    class Meta:
        constraints = [
            # Whoever begins a day at the same moment counts in one row.
            models.UniqueConstraint(fields=["delegation", "day"], name="rule_day_once"),
        ]

    def __str__(self) -> str:
        return f"{self.delegation_id} on {self.day}"

    @property
    def spent(self) -> Spent:
        """What the day has come to."""
        return Spent(self.calls, {name: Decimal(total) for name, total in self.sums.items()})


class SpotCheck(TenantOwned):
    """A time it asked although it would not have had to."""

    delegation = models.ForeignKey(
        Delegation, on_delete=models.PROTECT, related_name="spot_checks", db_constraint=False
    )
    version = models.PositiveIntegerField()
    gate = models.UUIDField()
    share = models.FloatField(default=1)  # how likely it was to be asked
    verdict = models.CharField(max_length=15, null=True)  # or "edit"; null: not answered
    at = models.DateTimeField()
    # Of what the call is compared by, and of its arguments: delegation/calls.py; older ones: null.
    shape = models.CharField(max_length=71, null=True)
    call = models.CharField(max_length=71, null=True)
    # Until a person answered it, or another check took its place.
    awaits = models.BooleanField(default=True, db_default=True)
    after = models.UUIDField(null=True)  # the check without an answer for which it was asked

    class Meta:
        indexes = [
            models.Index(fields=["shape"], condition=Q(awaits=True), name="checks_that_await"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["gate"], name="a_gate_checks_one_rule"),
        ]

    def __str__(self) -> str:
        return f"spot check of {self.delegation_id}"


class EventKind(models.TextChoices):
    """What a person did, or what was done about what they allowed."""

    APPROVE = "approve"
    REJECT = "reject"  # and every other verdict that is no approval
    EDIT = "edit"
    WITHDRAW = "withdraw"  # an approval taken back before its step started
    INCIDENT = "incident"  # undone, compensated, or found to have failed
    RAN = "ran"  # decided by a rule in the person's name


class DecisionEvent(TenantOwned):
    """The append-only stream the learner reads: its only input.

    ``source`` is what it is about: the decision, or the receipt of what was undone. A person's
    events are learned from in the order of (at, source), whenever they were appended.
    """

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    sequence = models.BigIntegerField()
    kind = models.CharField(max_length=20, choices=EventKind.choices)
    tool = models.UUIDField()
    gate = models.UUIDField(null=True)
    source = models.UUIDField(default=uuid7)
    data = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["user", "at", "source"], name="events_of_a_person")]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "sequence"], name="decision_event_sequence_once"
            ),
            # However often what happened is collected, it is one event of each person.
            models.UniqueConstraint(
                fields=["source", "kind", "user"], name="decision_event_source_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} #{self.sequence}"


class EventStream(TenantOwned):
    """The head of a tenant's events, and when what is new is collected next."""

    sequence = models.BigIntegerField(default=0)
    # Decisions and receipts older than these were all looked at; ids grow with time.
    decisions_through = models.UUIDField(default=UUID(int=0))
    receipts_through = models.UUIDField(default=UUID(int=0))
    learned = models.BigIntegerField(default=0)  # up to which everybody's rules follow
    preset = models.CharField(max_length=20, default="")  # by which they do
    # The policy version up to which rules sleep that speak of what it began to deny.
    denials_through = models.PositiveIntegerField(default=0, db_default=0)
    complete_at = models.DateTimeField(null=True)  # when everything was last looked at
    due_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="one_stream_of_events")]

    def __str__(self) -> str:
        return f"events to #{self.sequence}"


class LearnerState(TenantOwned):
    """What was learned of a person; all of it can be made again from the events."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    state = models.JSONField(null=True)  # delegation/state.py; null: nothing yet
    # By tool's version: what would have run before it could, and how the person decided that.
    shadow = models.JSONField(default=dict)
    sequence = models.BigIntegerField(default=0)  # of the events, up to which it learned
    # The last of those in the order in which they are learned from.
    through_at = models.DateTimeField(null=True)
    through = models.UUIDField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_learner_a_person"),
        ]

    def __str__(self) -> str:
        return f"what was learned of {self.user_id}"


class DelegationTemplate(TenantOwned):
    """A rule that an admin publishes: people may take it up, and owe the same proof."""

    tool = models.UUIDField()
    tool_number = models.PositiveIntegerField()
    risk = models.CharField(max_length=6, choices=Risk.choices)
    predicate = models.JSONField()
    limits = models.JSONField(default=dict)
    sha256 = models.CharField(max_length=71)
    published_by = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(risk__in=["low", "medium"]), name="no_template_for_high_risk"
            ),
        ]

    def __str__(self) -> str:
        return f"template {self.pk}"


class DelegationPreference(TenantOwned):
    """A person's own word about all rules that speak for them."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    asks_everything_since = models.DateTimeField(null=True)  # null: rules may speak for them

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_preference_a_person"),
        ]

    def __str__(self) -> str:
        return f"preference of {self.user_id}"
