from __future__ import annotations

from datetime import datetime
from uuid import UUID, uuid5

from django.db import models
from django.db.models.functions import Now

from tenants.models.base import TenantOwned
from tenants.models.people import Membership, User


class Agent(TenantOwned):
    """A machine identity. Its owner answers for it, and never decides its gates."""

    name = models.CharField(max_length=100)
    owner = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="agents"
    )
    active = models.BooleanField(default=True)
    # What its runs may use in a day, in the place of what the policy says for every agent.
    daily_budget = models.JSONField(default=dict, db_default={}, blank=True)
    begun_again_at = models.DateTimeField(null=True, editable=False)  # after it had ended
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="agent_name_once_per_tenant"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def identity(self) -> UUID:
        """Which of those that had its name it is: what ended is not what began again."""
        return identity_of(self.pk, self.begun_again_at)


def identity_of(agent: UUID, begun_again_at: datetime | None) -> UUID:
    """Return what tells an agent from those that had its row and name before: its id at first."""
    return agent if begun_again_at is None else uuid5(agent, begun_again_at.isoformat())


class Credential(TenantOwned):
    """A secret shown once and kept as its SHA-256; revoked, never deleted."""

    hash = models.BinaryField(max_length=32, unique=True, editable=False)
    hint = models.CharField(max_length=16, editable=False)  # the first characters, to tell it by
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


class AgentKey(Credential):
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="keys", db_constraint=False
    )

    def __str__(self) -> str:
        return f"{self.hint}… of {self.agent_id}"


class UserToken(Credential):
    """A person's token for one tenant: it is worth what the membership is worth."""

    membership = models.ForeignKey(
        Membership, on_delete=models.PROTECT, related_name="tokens", db_constraint=False
    )

    def __str__(self) -> str:
        return f"{self.hint}… of {self.membership_id}"
