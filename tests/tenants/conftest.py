"""Two tenants: Alice and Bob belong to acme, Charlie to umbrella; each has an agent."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from config.keys import secret_hash
from tenants.ids import uuid7
from tenants.models import Agent, AgentKey, Membership, Role, Tenant, User, UserToken
from tenants.scope import tenant_scope


@dataclass
class World:
    """A tenant with its people and agent, and the secret that each signs in with."""

    tenant: Tenant
    users: dict[str, User] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    agent: Agent | None = None

    @property
    def id(self) -> UUID:
        return self.tenant.pk

    def bearer(self, who: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secrets[who]}"}


def make_world(slug: str, people: dict[str, Role]) -> World:
    tenant = Tenant(pk=uuid7(), slug=slug, name=slug.title())
    world = World(tenant)
    with tenant_scope(tenant.pk):
        tenant.save(force_insert=True)
        for name, role in people.items():
            user = User.objects.create(username=name, email=f"{name}@{slug}.test")
            membership = Membership.objects.create(user=user, role=role)
            secret = f"aby_user_{secrets.token_urlsafe(32)}"
            UserToken.objects.create(
                membership=membership, hash=secret_hash(secret), hint=secret[:16]
            )
            world.users[name], world.secrets[name] = user, secret
        owner = next(iter(world.users.values()), None)
        world.agent = Agent.objects.create(name="agent", owner=owner)
        secret = f"aby_agent_{secrets.token_urlsafe(32)}"
        AgentKey.objects.create(agent=world.agent, hash=secret_hash(secret), hint=secret[:16])
        world.secrets["agent"] = secret
    return world


@pytest.fixture
def acme(db: None) -> World:
    return make_world(
        "acme",
        {
            "alice": Role.ADMIN,
            "olga": Role.OPERATOR,
            "bob": Role.APPROVER,
            "vera": Role.VIEWER,
        },
    )


@pytest.fixture
def umbrella(db: None) -> World:
    return make_world("umbrella", {"charlie": Role.ADMIN})
