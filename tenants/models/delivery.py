from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tenants.models.base import TenantOwned


class IdempotentAnswer(TenantOwned):
    """The first answer to a request that carried an ``Idempotency-Key``.

    Written in the transaction of what it names: there is no answer without its change, and no
    change without its answer.
    """

    caller = models.CharField(max_length=60)  # "agent:<id>" or "user:<id>"
    key = models.CharField(max_length=255)
    fingerprint = models.BinaryField(max_length=32)  # of method, path and body
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField(default=dict)
    body = models.BinaryField()  # sealed: an answer may hold what its tool calls sensitive
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "caller", "key"], name="idempotency_key_names_one_answer"
            ),
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotent_answer_age")]

    def __str__(self) -> str:
        return f"{self.caller} {self.key}"


class OutboxMessage(TenantOwned):
    """Something to tell the outside once the transaction that decided it has committed."""

    kind = models.CharField(max_length=40)
    payload = models.JSONField()
    about = models.UUIDField(null=True)  # what it tells of
    recipient = models.UUIDField(null=True)  # the person it is mailed to
    batch = models.UUIDField(null=True)  # the one mail that it shares with others
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    due_at = models.DateTimeField(db_default=Now(), null=True)
    attempts = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="outbox_due"),
            models.Index(
                fields=["recipient", "sent_at"],
                condition=Q(recipient__isnull=False),
                name="outbox_of_a_person",
            ),
        ]
        constraints = [
            # Whoever repeats, races or wakes twice: one mail about one thing.
            models.UniqueConstraint(
                fields=["recipient", "about", "kind"],
                condition=Q(recipient__isnull=False),
                name="a_person_is_told_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"
