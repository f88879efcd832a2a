"""People, groups and agents become what is wanted; a repeat changes nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.test import Client

from tenants.changes import Change, Issued
from tenants.journal import Actor
from tenants.models import (
    Agent,
    AgentKey,
    Group,
    GroupMember,
    JournalEntry,
    Membership,
    Tenant,
    User,
    UserToken,
)
from tenants.scope import tenant_scope
from tenants.services.agents import AgentWanted, set_agents
from tenants.services.groups import set_groups
from tenants.services.organisations import make_tenant, rename_tenant
from tenants.services.people import AnotherPerson, MemberWanted, remove_members, set_members

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.tenants.api_urls")]

ADA = Actor("user", "ada")
ALICE = MemberWanted("alice", "alice@acme.test", "approver")
BOB = MemberWanted("bob", "bob@acme.test", "viewer")


@pytest.fixture
def acme() -> Iterator[Tenant]:
    tenant, _ = make_tenant(ADA, slug="acme", name="Acme")
    with tenant_scope(tenant.pk):
        yield tenant


def kinds(changes: list[Change]) -> list[tuple[str, str, str, bool]]:
    return [(one.noun, one.name, one.kind, one.narrows) for one in changes]


def version(tenant: Tenant) -> int:
    return Tenant.objects.get(pk=tenant.pk).authority_version


def changed_nothing(tenant: Tenant, act: Callable[[], Any]) -> None:
    before = Tenant.objects.get(pk=tenant.pk)
    assert act() == []
    after = Tenant.objects.get(pk=tenant.pk)
    assert after.journal_seq == before.journal_seq
    assert after.authority_version == before.authority_version


def test_a_tenants_journal_begins_with_the_tenant(acme: Tenant) -> None:
    (entry,) = JournalEntry.objects.all()
    assert (entry.seq, entry.kind) == (1, "tenant.added")
    changed_nothing(acme, lambda: rename_tenant(ADA, "Acme"))
    assert kinds(rename_tenant(ADA, "Acme Ltd")) == [("tenant", "acme", "changed", False)]
    assert Tenant.objects.get(pk=acme.pk).name == "Acme Ltd"


def test_people_are_made_members_once(acme: Tenant) -> None:
    before = version(acme)
    assert kinds(set_members(ADA, [ALICE, BOB])) == [
        ("member", "alice", "added", False),
        ("member", "bob", "added", False),
    ]
    assert version(acme) == before
    changed_nothing(acme, lambda: set_members(ADA, [ALICE, BOB]))
    assert not User.objects.get(username="alice").has_usable_password()


def test_every_change_stands_in_the_journal_with_before_and_after(acme: Tenant) -> None:
    set_members(ADA, [ALICE])
    set_members(ADA, [MemberWanted("alice", "alice@acme.test", "admin")])
    last = JournalEntry.objects.order_by("-seq")[0]
    assert last.kind == "member.changed"
    assert '"before":{"role":"approver"}' in last.text
    assert '"after":{"role":"admin"}' in last.text
    assert '"actor":{"id":"ada","kind":"user"}' in last.text


def test_another_role_makes_older_authorizations_stale(acme: Tenant) -> None:
    set_members(ADA, [ALICE])
    before = version(acme)
    set_members(ADA, [MemberWanted("alice", "alice@acme.test", "viewer")])
    assert version(acme) == before + 1


def test_who_leaves_is_deactivated_and_loses_their_tokens(acme: Tenant, client: Client) -> None:
    issued = Issued()
    set_members(ADA, [ALICE, BOB], issued=issued)
    before = version(acme)
    assert kinds(set_members(ADA, [ALICE], others_leave=True)) == [
        ("member", "bob", "removed", True)
    ]
    assert version(acme) == before + 1
    assert not Membership.objects.get(user__username="bob").active
    assert UserToken.objects.get(membership__user__username="bob").revoked_at
    assert User.objects.get(username="bob").is_active  # their other tenants are no concern of ours
    changed_nothing(acme, lambda: set_members(ADA, [ALICE], others_leave=True))
    assert signs_in(client, issued.users["alice"]["token"])
    assert not signs_in(client, issued.users["bob"]["token"])


def test_who_comes_back_has_a_new_token_and_not_the_old_one(acme: Tenant, client: Client) -> None:
    first, second = Issued(), Issued()
    set_members(ADA, [BOB], issued=first)
    set_members(ADA, [], others_leave=True)
    assert kinds(set_members(ADA, [BOB], issued=second)) == [("member", "bob", "added", False)]
    assert set(second.users["bob"]) == {"token"}
    assert signs_in(client, second.users["bob"]["token"])
    assert not signs_in(client, first.users["bob"]["token"])


def test_credentials_are_given_out_once(acme: Tenant) -> None:
    first, again = Issued(), Issued()
    set_members(ADA, [ALICE], issued=first)
    set_members(ADA, [ALICE], issued=again)
    assert not again
    password, token = first.users["alice"]["password"], first.users["alice"]["token"]
    assert token.startswith("aby_user_")
    assert authenticate(username="alice", password=password)
    assert authenticate(username="alice", password=password + "x") is None


def test_at_the_first_login_a_password_is_hashed_at_the_usual_cost(acme: Tenant) -> None:
    issued = Issued()
    set_members(ADA, [ALICE], issued=issued)
    cheap = User.objects.get(username="alice").password
    assert authenticate(username="alice", password=issued.users["alice"]["password"])
    dear = User.objects.get(username="alice").password
    assert int(cheap.split("$")[1]) < 10_000
    assert int(dear.split("$")[1]) > 500_000


def test_who_was_made_without_credentials_gets_a_token_later(acme: Tenant) -> None:
    set_members(ADA, [ALICE])
    issued = Issued()
    set_members(ADA, [ALICE], issued=issued)
    assert set(issued.users["alice"]) == {"token"}


def make_two() -> tuple[Tenant, Tenant]:
    one, _ = make_tenant(ADA, slug="one", name="One")
    other, _ = make_tenant(ADA, slug="other", name="Other")
    return one, other


def test_a_known_person_keeps_what_is_theirs() -> None:
    one, other = make_two()
    first, second = Issued(), Issued()
    with tenant_scope(one.pk):
        set_members(ADA, [ALICE], issued=first)
    alice = User.objects.get(username="alice")
    with tenant_scope(other.pk):
        set_members(ADA, [MemberWanted("alice", "Alice@ACME.test", "admin")], issued=second)
    known = User.objects.get(username="alice")
    assert (known.password, known.email) == (alice.password, "alice@acme.test")
    assert set(second.users["alice"]) == {"token"}  # worth what the new membership is worth
    with tenant_scope(one.pk):
        assert Membership.objects.get(user=alice).role == "approver"
        assert UserToken.objects.get().revoked_at is None


def test_a_username_of_another_person_is_refused() -> None:
    one, other = make_two()
    with tenant_scope(one.pk):
        set_members(ADA, [ALICE])
    thief = MemberWanted("alice", "mallory@umbrella.test", "admin")
    with tenant_scope(other.pk):
        with pytest.raises(AnotherPerson, match="alice"):
            set_members(ADA, [thief, MemberWanted("eve", "eve@umbrella.test", "viewer")])
        assert not Membership.objects.exists()
    assert not User.objects.filter(username="eve").exists()
    assert User.objects.get(username="alice").email == "alice@acme.test"


def test_groups_hold_whom_they_should(acme: Tenant) -> None:
    set_members(ADA, [ALICE, BOB])
    before = version(acme)
    assert kinds(set_groups(ADA, {"finance": ["bob"], "leads": []})) == [
        ("group", "finance", "added", False),
        ("group", "leads", "added", False),
    ]
    assert kinds(set_groups(ADA, {"finance": ["alice", "bob"]})) == [
        ("group", "finance", "changed", False)
    ]
    assert version(acme) == before
    changed_nothing(acme, lambda: set_groups(ADA, {"finance": ["bob", "alice"]}))
    assert kinds(set_groups(ADA, {"finance": ["alice"]}, others_end=True)) == [
        ("group", "finance", "changed", True),
        ("group", "leads", "removed", False),
    ]
    assert version(acme) == before + 1
    assert list(Group.objects.values_list("name", flat=True)) == ["finance"]
    assert GroupMember.objects.get().membership.user.username == "alice"


def test_who_comes_back_is_in_no_group_of_before_and_the_journal_says_so(acme: Tenant) -> None:
    set_members(ADA, [ALICE, BOB])
    set_groups(ADA, {"finance": ["alice", "bob"], "leads": ["alice"]})
    remove_members(ADA, ["bob"])
    assert kinds(set_members(ADA, [ALICE, BOB])) == [
        ("member", "bob", "added", False),
        ("group", "finance", "changed", True),
    ]
    said = JournalEntry.objects.filter(kind="group.changed").get().text
    assert '"after":{"members":["alice"]},"before":{"members":["alice","bob"]}' in said
    held = GroupMember.objects.values_list("group__name", "membership__user__username")
    assert sorted(held) == [("finance", "alice"), ("leads", "alice")]
    changed_nothing(acme, lambda: set_members(ADA, [ALICE, BOB]))


def test_a_group_holds_members_only(acme: Tenant) -> None:
    set_members(ADA, [ALICE])
    with pytest.raises(Membership.DoesNotExist, match="bob"):
        set_groups(ADA, {"finance": ["bob"]})
    assert not Group.objects.exists()


def test_agents_have_the_owner_who_answers_for_them(acme: Tenant) -> None:
    set_members(ADA, [ALICE, BOB])
    before = version(acme)
    wanted = [AgentWanted("bot", "alice"), AgentWanted("cron")]
    assert kinds(set_agents(ADA, wanted)) == [
        ("agent", "bot", "added", False),
        ("agent", "cron", "added", False),
    ]
    changed_nothing(acme, lambda: set_agents(ADA, wanted))
    assert version(acme) == before
    assert kinds(set_agents(ADA, [AgentWanted("bot", "bob")])) == [
        ("agent", "bot", "changed", True)
    ]
    assert version(acme) == before + 1
    assert Agent.objects.get(name="bot").owner.username == "bob"
    with pytest.raises(Membership.DoesNotExist, match="eve"):
        set_agents(ADA, [AgentWanted("new", "eve")])
    assert not Agent.objects.filter(name="new").exists()


def test_an_agent_that_ends_loses_its_keys(acme: Tenant, client: Client) -> None:
    first, second = Issued(), Issued()
    set_agents(ADA, [AgentWanted("bot"), AgentWanted("cron")], issued=first)
    assert kinds(set_agents(ADA, [AgentWanted("cron")], others_end=True)) == [
        ("agent", "bot", "removed", True)
    ]
    assert AgentKey.objects.get(agent__name="bot").revoked_at
    assert signs_in(client, first.agents["cron"])
    assert not signs_in(client, first.agents["bot"])
    set_agents(ADA, [AgentWanted("bot")], issued=second)
    assert list(second.agents) == ["bot"]
    assert signs_in(client, second.agents["bot"])
    assert not signs_in(client, first.agents["bot"])


def signs_in(client: Client, secret: str) -> bool:
    answer = client.get("/api/v1/groups", headers={"Authorization": f"Bearer {secret}"})
    return bool(answer.status_code == 200)
