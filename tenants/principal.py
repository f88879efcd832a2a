"""Who asks, once it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from tenants.journal import Actor

# What a secret begins with, so that it can be told in a log or a repository.
AGENT_PREFIX, USER_PREFIX = "aby_agent_", "aby_user_"


@dataclass(frozen=True, slots=True)
class Principal:
    """A known caller in one tenant. ``role`` is a person's, ``owner_id`` an agent's."""

    kind: Literal["agent", "user"]
    id: UUID
    tenant_id: UUID
    name: str
    credential_id: UUID | None  # None: the web session
    role: str | None = None
    owner_id: UUID | None = None

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def is_agent(self) -> bool:
        return self.kind == "agent"

    @property
    def is_person(self) -> bool:
        return self.kind == "user"

    @property
    def actor(self) -> Actor:
        return Actor(self.kind, str(self.id))
