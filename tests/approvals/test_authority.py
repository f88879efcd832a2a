"""Who may decide: guardian's object permissions, a live membership, and never one's own request."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from uuid import UUID

import pytest
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext
from guardian.core import ObjectPermissionChecker
from guardian.shortcuts import assign_perm, remove_perm

from approvals import authority
from approvals.models import TenantPermission, ToolPermission
from approvals.services.grants import set_grants
from interrupts.models import Tool
from tenants.journal import Actor
from tenants.models import Agent, JournalEntry, Membership, Tenant, User
from tenants.scope import tenant_scope
from tenants.services.agents import AgentWanted, set_agents
from tenants.services.organisations import make_tenant
from tenants.services.people import MemberWanted, set_members

pytestmark = pytest.mark.django_db

ADA = Actor("user", "ada")
ROLES = {"alice": "approver", "bob": "approver", "olga": "operator", "vera": "viewer"}


@dataclass
class Run:
    agent_id: UUID
    requested_by_id: UUID | None = None


@dataclass
class Place:
    tenant: Tenant
    people: dict[str, User]
    tools: dict[str, Tool]
    run: Run

    def grant(self, **globs: list[str]) -> None:
        set_grants(ADA, globs, others_end=True)

    def refusal(
        self, who: str, tool: str = "payments.refund", run: Run | None = None
    ) -> str | None:
        return refusal(self.people[who].pk, self.tools[tool].pk, run or self.run)


def refusal(user: UUID, tool: UUID, run: Run) -> str | None:
    refused = authority.refusals([user], tool, run)[user, user]
    return refused.code if refused else None


def make_place(slug: str, roles: dict[str, str]) -> Place:
    tenant, _ = make_tenant(ADA, slug=slug, name=slug)
    with tenant_scope(tenant.pk):
        set_members(ADA, [MemberWanted(n, f"{n}@{slug}.test", role) for n, role in roles.items()])
        set_agents(ADA, [AgentWanted("bot")])
        tools = {
            name: Tool.objects.create(name=name)
            for name in ("payments.refund", "payments.payout", "mail.send")
        }
        people = {user.username: user for user in User.objects.filter(username__in=roles)}
        return Place(tenant, people, tools, Run(Agent.objects.get().pk))


@pytest.fixture
def acme() -> Iterator[Place]:
    place = make_place("acme", ROLES)
    with tenant_scope(place.tenant.pk):
        yield place


def test_nobody_may_by_their_role(acme: Place) -> None:
    set_members(ADA, [MemberWanted("olga", "olga@acme.test", "admin")])
    assert {acme.refusal(who) for who in ROLES} == {"not-an-approver"}


def test_a_permission_on_the_tool_or_on_the_tenant_is_authority(acme: Place) -> None:
    acme.grant(alice=["*"], bob=["payments.refund"])
    assert acme.refusal("alice") is None
    assert acme.refusal("bob") is None
    assert acme.refusal("bob", "payments.payout") == "not-an-approver"
    assert acme.refusal("olga") == "not-an-approver"


def test_a_viewer_only_looks_whatever_they_were_given(acme: Place) -> None:
    acme.grant(vera=["*"])
    assert acme.refusal("vera") == "not-an-approver"


def test_who_has_left_or_is_locked_out_may_not(acme: Place) -> None:
    acme.grant(alice=["*"], bob=["*"])
    Membership.objects.filter(user=acme.people["alice"]).update(active=False)
    User.objects.filter(username="bob").update(is_active=False)
    assert acme.refusal("alice") == "not-an-approver"
    assert acme.refusal("bob") == "not-an-approver"


def test_being_superuser_gives_nothing(acme: Place) -> None:
    User.objects.filter(username="olga").update(is_superuser=True, is_staff=True)
    assert acme.refusal("olga") == "not-an-approver"


def test_a_permission_for_all_objects_gives_nothing(acme: Place) -> None:
    """Django's model-wide permissions, of a person or of their Django group, are no authority."""
    everywhere = Permission.objects.get(
        codename="decide_tool", content_type=ContentType.objects.get_for_model(Tool)
    )
    acme.people["alice"].user_permissions.add(everywhere)
    group = Group.objects.create(name="deciders")
    group.permissions.add(everywhere)
    acme.people["bob"].groups.add(group)
    assert acme.people["alice"].has_perm("interrupts.decide_tool")
    assert acme.refusal("alice") == "not-an-approver"
    assert acme.refusal("bob") == "not-an-approver"


def test_nobody_decides_what_runs_for_them_or_what_their_agent_does(acme: Place) -> None:
    acme.grant(alice=["*"], bob=["*"])
    for_alice = Run(acme.run.agent_id, acme.people["alice"].pk)
    assert acme.refusal("alice", run=for_alice) == "own-request"
    assert acme.refusal("bob", run=for_alice) is None
    set_agents(ADA, [AgentWanted("bot", "bob")])
    assert acme.refusal("bob") == "own-request"
    assert acme.refusal("alice") is None
    assert acme.refusal("olga", run=Run(acme.run.agent_id, acme.people["olga"].pk)) == (
        "not-an-approver"
    )


def test_what_another_tenant_gave_is_nothing_here() -> None:
    """The same person is a member of both, and was given everything in the one."""
    here, there = make_place("acme", ROLES), make_place("umbrella", {"charlie": "admin"})
    with tenant_scope(there.tenant.pk):
        set_members(ADA, [MemberWanted("alice", "alice@acme.test", "approver")])
        set_grants(ADA, {"alice": ["*"]})
        alice = here.people["alice"].pk
        assert refusal(alice, there.tools["mail.send"].pk, there.run) is None
    with tenant_scope(here.tenant.pk):
        for place in (here, there):
            assert refusal(alice, place.tools["mail.send"].pk, place.run) == "not-an-approver"


def test_the_answer_is_guardians_own(acme: Place) -> None:
    """For each person and tool: what the one function says, guardian's checker says too."""
    acme.grant(alice=["*"], bob=["payments.*"], olga=["mail.send"])
    for who, tool in product(("alice", "bob", "olga"), acme.tools):
        checker = ObjectPermissionChecker(acme.people[who])
        of_guardian = checker.has_perm("decide_tool", acme.tools[tool]) or checker.has_perm(
            "decide_tool", acme.tenant
        )
        assert (acme.refusal(who, tool) is None) == of_guardian, (who, tool)


def test_what_guardian_gives_and_takes_counts(acme: Place) -> None:
    bob, tool = acme.people["bob"], acme.tools["payments.refund"]
    assign_perm("interrupts.decide_tool", bob, tool)
    assert acme.refusal("bob") is None
    remove_perm("interrupts.decide_tool", bob, tool)
    assert acme.refusal("bob") == "not-an-approver"
    assign_perm("tenants.decide_tool", bob, acme.tenant)
    assert acme.refusal("bob") is None


def test_it_takes_one_statement(acme: Place) -> None:
    acme.grant(alice=["*"])
    with CaptureQueriesContext(connection) as seen:
        assert acme.refusal("alice") is None
    assert len(seen) == 1
    with CaptureQueriesContext(connection) as seen:
        everybody = [person.pk for person in acme.people.values()]
        found = authority.refusals(everybody, acme.tools["mail.send"].pk, acme.run)
    may = [user for (user, _), why in found.items() if why is None]
    assert (may, len(seen)) == ([acme.people["alice"].pk], 1)


def test_one_of_several_tools_is_enough_to_decide_any(acme: Place) -> None:
    acme.grant(bob=["mail.send"])
    tools = [tool.pk for tool in acme.tools.values()]
    assert authority.may_decide_any(acme.people["bob"].pk, tools, acme.run)
    assert not authority.may_decide_any(acme.people["bob"].pk, tools[:2], acme.run)
    assert not authority.may_decide_any(acme.people["bob"].pk, [], acme.run)
    assert not authority.may_decide_any(acme.people["olga"].pk, tools, acme.run)


# Giving and taking authority


def test_globs_are_the_tools_there_are_and_a_star_those_to_come(acme: Place) -> None:
    acme.grant(alice=["*"], bob=["payments.*"])
    later = Tool.objects.create(name="payments.chargeback")
    assert refusal(acme.people["alice"].pk, later.pk, acme.run) is None
    assert refusal(acme.people["bob"].pk, later.pk, acme.run) == "not-an-approver"
    acme.grant(alice=["*"], bob=["payments.*"])
    assert refusal(acme.people["bob"].pk, later.pk, acme.run) is None


def test_giving_makes_nothing_stale_and_taking_does(acme: Place) -> None:
    def version() -> int:
        return Tenant.objects.get(pk=acme.tenant.pk).authority_version

    before = version()
    acme.grant(alice=["*"], bob=["mail.*"])
    assert version() == before
    acme.grant(alice=["*"], bob=["mail.*"])
    assert version() == before
    acme.grant(alice=["mail.*"], bob=["mail.*"])
    assert version() == before + 1
    last = JournalEntry.objects.order_by("-seq")[0]
    assert last.kind == "authority.changed"
    assert '"before":{"may_decide":["*"]}' in last.text
    assert '"after":{"may_decide":["mail.send"]}' in last.text
    acme.grant()
    assert version() == before + 2
    assert not ToolPermission.objects.exists()
    assert not TenantPermission.objects.exists()


def test_authority_is_given_to_members_only(acme: Place) -> None:
    User.objects.create(username="charlie")
    with pytest.raises(Membership.DoesNotExist, match="charlie"):
        acme.grant(alice=["*"], charlie=["*"])
    assert not TenantPermission.objects.exists()
