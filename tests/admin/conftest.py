"""Two tenants: acme, where everything there is happened once, and umbrella, which looks at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.test import Client

from approvals.models import View
from approvals.services import substitutions
from approvals.services.policies import save_draft
from delegation.models import (
    DecisionEvent,
    Delegation,
    DelegationDay,
    DelegationPreference,
    DelegationTemplate,
    DelegationUse,
    DelegationVersion,
    EventStream,
    LearnerState,
    SpotCheck,
)
from interrupts.models import AgentDay, Step
from interrupts.services import freezes
from tenants import scope
from tenants.clock import database_now
from tenants.ids import uuid7
from tenants.journal import SYSTEM
from tenants.models import Tenant, User
from tenants.scope import tenant_scope
from tenants.services.agents import AgentWanted, set_agents
from tenants.services.groups import set_groups
from tenants.services.organisations import make_tenant
from tenants.services.people import MemberWanted, set_members
from tenants.services.secrets import set_secrets
from tests.approvals.house import House, empty_house, house

__all__ = ["empty_house", "house"]


@dataclass
class Place:
    """A tenant and the people who come to its admin."""

    tenant: Tenant
    people: dict[str, User] = field(default_factory=dict)

    @property
    def id(self) -> UUID:
        return self.tenant.pk

    def browser(self, who: str | User, tenant: UUID | None = None) -> Client:
        return signed_in(self.people[who] if isinstance(who, str) else who, tenant or self.id)


def signed_in(user: User | AnonymousUser, tenant: UUID | None) -> Client:
    """A browser in which this person signed in and chose that tenant."""
    client = Client()
    assert isinstance(user, User)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    if tenant:
        session = client.session
        session["tenant"] = str(tenant)
        session.save()
    return client


def make_place(slug: str, **roles: str) -> Place:
    with transaction.atomic():
        tenant, _ = make_tenant(SYSTEM, slug=slug, name=slug.title())
        with tenant_scope(tenant.pk):
            wanted = [
                MemberWanted(name, f"{name}@{slug}.test", role) for name, role in roles.items()
            ]
            set_members(SYSTEM, wanted)
    users = User.objects.filter(username__in=roles)
    return Place(tenant, {user.username: user for user in users})


@pytest.fixture
def acme(transactional_db: None) -> Place:
    return make_place(
        "acme", ada="admin", alan="admin", olga="operator", bob="approver", vera="viewer"
    )


@pytest.fixture
def umbrella(transactional_db: None) -> Place:
    return make_place("umbrella", charlie="admin")


@pytest.fixture
def root(transactional_db: None) -> User:
    return User.objects.create(username="root", email="root@service.test", is_superuser=True)


@pytest.fixture
def lived(house: House) -> Iterator[House]:
    """A tenant with a row in every table that the admin shows; its scope is left for browsers."""
    house.tool("mail.send", effect="idempotent")
    gate = house.ask()
    house.decide("alice", gate)
    house.ask("mail.send")
    house.work(gate.run)
    with transaction.atomic():
        everyone = [MemberWanted("bob", "", "approver")]
        set_members(SYSTEM, everyone)
        set_groups(SYSTEM, {"finance": ["bob"]})
        set_agents(SYSTEM, [AgentWanted("bot")])
        save_draft(SYSTEM, {"rules": []})
        set_secrets(SYSTEM, {"pay-key": "sk_live_of-the-tenant"})
    bob = User.objects.get(username="bob")
    substitutions.set_as(
        house.people["alice"],
        substitute="bob",
        ends_at=database_now() + timedelta(days=1),
    )
    View.objects.create(gate=gate, user=bob, digest=gate.digest, snapshot={}, at=database_now())
    AgentDay.objects.create(agent_id=house.agent.id, day=database_now().date())
    freezes.freeze(house.people["olga"], scope="tenant")
    make_delegation(house, Step.objects.get(gate=gate.pk))
    token = scope._scope.set(None)
    scope.leave()
    yield house
    scope._scope.reset(token)


def make_delegation(house: House, step: Step) -> None:
    bob = User.objects.get(username="bob")
    common: dict[str, Any] = {"version": 1, "at": database_now()}
    made = Delegation.objects.create(
        user=bob,
        tool=step.tool_id,
        status="active",
        origin="person",
        risk="low",
        predicate={},
        sha256="sha256:0",
    )
    DelegationUse.objects.create(delegation=made, step=step.pk, **common)
    SpotCheck.objects.create(delegation=made, gate=uuid7(), **common)
    DecisionEvent.objects.create(
        user=bob, sequence=1, kind="approve", tool=step.tool_id, data={}, at=common["at"]
    )
    of_tool: dict[str, Any] = {"predicate": {}, "sha256": "sha256:0"}
    DelegationVersion.objects.create(delegation=made, by="system:abeyance", **common, **of_tool)
    DelegationDay.objects.create(delegation=made, day=common["at"].date())
    DelegationTemplate.objects.create(
        tool=step.tool_id, tool_number=1, risk="low", published_by=bob, **of_tool
    )
    EventStream.objects.create(sequence=1)
    LearnerState.objects.create(user=bob)
    DelegationPreference.objects.create(user=bob)
