"""Authority that a group holds: whoever is in it has it, and no longer than they are."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from approvals import authority, hot
from approvals.errors import BeyondAuthority, NotAnApprover, OwnRequest
from approvals.models import GroupPermission
from approvals.services.grants import (
    end_group_grants,
    held_by_group,
    set_group_grants,
)
from approvals.services.inboxes import refresh_inboxes
from interrupts.models import Run, Step
from tenants.errors import OwnAuthority
from tenants.ids import uuid7
from tenants.journal import SYSTEM, Actor
from tenants.models import Group, JournalEntry, Membership, Tenant, User
from tenants.scope import tenant_scope
from tenants.services.groups import remove_groups, set_groups
from tenants.services.people import MemberWanted, remove_members, set_members
from tests.approvals.house import House, fresh
from tests.approvals.test_authority import ROLES, make_place
from tests.approvals.test_limits import ASKS, TWO, UP_TO_500, costing, grant, inboxes, within
from tests.approvals.test_substitutions import end, stand_in, votes

UP_TO_10 = "decimal(arguments.amount) <= decimal('10')"
NOT_HIGH = "tool.risk != 'high'"


def give(actor: Actor = SYSTEM, /, **groups: Any) -> list[Any]:
    with transaction.atomic():
        changes = set_group_grants(actor, groups)
        refresh_inboxes()
    return changes


def belong(actor: Actor = SYSTEM, /, **groups: list[str]) -> list[Any]:
    with transaction.atomic():
        changes = set_groups(actor, groups)
        refresh_inboxes()
    return changes


def version() -> int:
    return Tenant.objects.get().authority_version


@pytest.fixture
def grouped(house: House) -> House:
    """Bob and vera (who only looks) are in finance, which may decide refunds; nobody else may."""
    house.policy(ASKS)
    grant(alice=[], bob=[], carol=[], vera=[])
    belong(finance=["bob", "vera"], leads=[])
    give(finance=["payments.refund"])
    return house


def test_whoever_is_in_the_group_decides_what_it_may_and_nobody_else(grouped, monkeypatch):
    gate = grouped.ask()
    assert inboxes(gate) == {"bob"}
    for who in ("alice", "vera", "ada"):
        before = grouped.trace(gate)
        with pytest.raises(NotAnApprover):
            grouped.decide(who, gate)
        assert grouped.trace(gate) == before
    taken, way = [], hot.approve
    monkeypatch.setattr(hot, "approve", lambda *given: taken.append(way(*given)) or taken[-1])
    assert grouped.decide("bob", gate).state == "approved"
    assert taken != [None]
    assert grouped.work(gate.run_id) == 1
    # Not of other tools; every tool is those to come too.
    grouped.tool("payments.payout")
    other = grouped.ask("payments.payout")
    assert inboxes(other) == set()
    give(finance=["*"])
    assert inboxes(other) == {"bob"}
    assert authority.may_decide_any(grouped.people["bob"].id, [uuid7()], other.run)
    # Never one's own request, whoever else may.
    own = grouped.ask(run=grouped.run(requested_by="bob"))
    with pytest.raises(OwnRequest):
        grouped.decide("bob", own)


def test_leaving_ends_it_at_once_for_inboxes_votes_and_what_has_not_started(grouped):
    belong(finance=["bob", "carol"])
    started, waiting = grouped.ask(), grouped.ask()
    grouped.decide("bob", started)
    grouped.policy(TWO)
    asked = grouped.ask()
    grouped.decide("bob", asked)
    assert votes(asked) == [("bob", None)]
    before = version()

    belong(finance=["carol", "alice"])

    assert version() == before + 1
    assert inboxes(waiting) == inboxes(asked) == {"alice", "carol"}
    with pytest.raises(NotAnApprover):
        grouped.decide("bob", waiting)
    assert grouped.decide("carol", fresh(asked)).state == "pending"
    assert votes(asked) == [("carol", None)]
    assert grouped.decide("alice", fresh(asked)).state == "approved"
    assert grouped.work(started.run_id) == 0
    assert (Step.objects.get(pk=started.step_id).status, grouped.calls) == ("waiting", [])


@pytest.mark.parametrize(
    "lose",
    [
        lambda: give(finance=[]),
        lambda: belong(finance=[]),
        lambda: (end_group_grants(SYSTEM), remove_groups(SYSTEM, ["finance"]), refresh_inboxes()),
        lambda: Membership.objects.filter(user__username="bob").update(active=False),
    ],
    ids=["taken", "left", "removed", "no member"],
)
def test_what_ends_it_is_seen_by_every_way_to_ask(grouped, lose):
    gate = grouped.ask()
    asked = (grouped.people["bob"].id, gate.tool_id, gate.run.agent_id)
    assert refusal(*asked) is None
    with transaction.atomic():
        lose()
    assert refusal(*asked) == "not-an-approver"
    assert hot.approve(grouped.people["bob"], hot.look(gate.pk), gate.digest, None) is None
    with pytest.raises(NotAnApprover):
        grouped.decide("bob", gate)
    refresh_inboxes()
    assert (inboxes(gate), fresh(gate).undecidable_at is None) == (set(), False)


def test_who_left_the_tenant_and_comes_back_has_nothing_by_their_former_groups(grouped):
    gate = grouped.ask()
    bob = User.objects.get(pk=grouped.people["bob"].id)
    with transaction.atomic():
        remove_members(SYSTEM, ["bob"])
        set_members(SYSTEM, [MemberWanted("bob", bob.email, "approver")])
        refresh_inboxes()
    assert inboxes(gate) == set()
    before = grouped.trace(gate)
    with pytest.raises(NotAnApprover):
        grouped.decide("bob", gate)
    assert grouped.trace(gate) == before
    assert refusal(grouped.people["bob"].id, gate.tool_id, gate.run.agent_id) == "not-an-approver"


def refusal(user, tool, agent) -> str | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT approvals_refusal(%s, %s, %s, NULL)", [user, tool, agent])
        (hot_says,) = cursor.fetchone()
    refused = authority.refusals([user], tool, Run(agent_id=agent))[user, user]
    assert (refused.code if refused else None) == hot_says
    return hot_says


def test_what_the_database_was_given_is_the_one_function(house):
    named = {"holder": "p_user", "tool": "p_tool"}
    with connection.cursor() as cursor:
        for name, asked in (
            ("approvals_refusal", authority.limits_sql(**named)),
            ("approvals_by_group", authority.by_group_sql(**named)),
            ("approvals_ways", authority.ways_sql(**named)),
        ):
            cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = %s", [name])
            assert asked in cursor.fetchone()[0]


# Limits


def test_one_way_is_enough_and_each_limit_of_it_must_hold(grouped):
    belong(leads=["bob"], finance=["bob"])
    given: Mapping[str, Any]
    for given, amount, unmet in (
        ({"bob": [within(UP_TO_10)], "finance": [], "leads": []}, "11.00", (UP_TO_10,)),
        ({"bob": [within(UP_TO_10)], "finance": [within(UP_TO_500)], "leads": []}, "11.00", None),
        ({"bob": [within(UP_TO_500)], "finance": [within(UP_TO_10)], "leads": []}, "11.00", None),
        ({"bob": [], "finance": [within(UP_TO_10)], "leads": [within(UP_TO_500)]}, "500.00", None),
        ({"bob": [within(UP_TO_10)], "finance": ["*"], "leads": []}, "900.00", None),
        ({"bob": ["*"], "finance": [within(UP_TO_10)], "leads": []}, "900.00", None),
        # Of one holder every limit holds, whatever stands by; what comes closest is told.
        ({"bob": [], "finance": ["*", within(UP_TO_10)], "leads": []}, "11.00", (UP_TO_10,)),
        (
            {
                "bob": [],
                "finance": [within(UP_TO_10), within("tool.risk == 'high'", "*")],
                "leads": [within(UP_TO_500)],
            },
            "501.00",
            (UP_TO_500,),
        ),
    ):
        grant(bob=given["bob"])
        give(finance=given["finance"], leads=given["leads"])
        gate = grouped.ask(arguments=costing(amount))
        assert inboxes(gate) == (set() if unmet else {"bob"}), given
        grouped.look(gate, "bob")
        if unmet is None:
            assert grouped.decide("bob", gate).state == "approved"
            continue
        before = grouped.trace(gate)
        with pytest.raises(BeyondAuthority) as told:
            grouped.decide("bob", gate)
        assert (told.value.limits, grouped.trace(gate)) == (unmet, before)


def test_who_is_within_a_limit_of_one_of_many_ways_only_goes_the_long_way(grouped):
    give(finance=[within(UP_TO_500)])
    gate = grouped.ask()
    assert hot.approve(grouped.people["bob"], hot.look(gate.pk), gate.digest, None) is None
    assert grouped.decide("bob", gate).state == "approved"


# What follows from it


def test_who_stands_in_has_it_while_they_do_and_the_member_is_in_the_group(grouped):
    gate, other = grouped.ask(), grouped.ask()
    row = stand_in(grouped, "carol", "bob")
    assert grouped.decide("carol", gate).state == "approved"
    assert votes(gate) == [("carol", "bob")]
    belong(finance=["alice"])
    with pytest.raises(NotAnApprover):
        grouped.decide("carol", other)
    belong(finance=["bob"])
    end(grouped, row, by="bob")
    with pytest.raises(NotAnApprover):
        grouped.decide("carol", other)
    # Nothing of what the substitute's own groups may goes the other way.
    belong(finance=["alice"])
    stand_in(grouped, "alice", "carol")
    with pytest.raises(NotAnApprover):
        grouped.decide("carol", other)


def test_a_stage_is_decided_by_who_its_groups_and_another_group_let(grouped):
    """The rule's approvers narrow: finance holds the authority, and leads is asked first."""
    belong(finance=["bob", "carol", "alice"], leads=["carol"])
    stages = [{"approvers": ["leads"]}, {"approvers": ["finance"]}]
    grouped.policy({**ASKS, "stages": stages})
    gate = grouped.ask()
    assert inboxes(gate) == {"carol"}
    grouped.decide("carol", gate)
    gate = fresh(gate)
    assert (gate.stage, inboxes(gate)) == (2, {"bob", "alice"})
    give(finance=[], leads=["*"])
    assert (inboxes(gate), fresh(gate).undecidable_at is None) == (set(), False)


# Giving it


def test_what_is_given_and_taken_is_journaled_and_only_taking_makes_stale(grouped):
    before = version()
    assert give(finance=["payments.*"]) == []
    (change,) = give(finance=["*", within(UP_TO_500, "payments.*")])
    assert (change.noun, change.name, change.narrows) == ("group_authority", "finance", True)
    assert version() == before + 1
    last = JournalEntry.objects.filter(kind="group_authority.changed").get()
    assert '"before":{"may_decide":["payments.refund"]}' in last.text
    assert 'may_decide":["*",{"condition"' in last.text
    finance = Group.objects.get(name="finance").pk
    assert held_by_group(finance) == ["*", within(UP_TO_500)]
    give(leads=["payments.refund"])
    assert version() == before + 1
    with transaction.atomic():
        ended = end_group_grants(SYSTEM, keep=["leads"])
        assert [(one.name, one.after) for one in ended] == [("finance", None)]
    assert version() == before + 2
    assert GroupPermission.objects.get().group.name == "leads"
    with pytest.raises(Group.DoesNotExist, match="nobody"), transaction.atomic():
        give(leads=["*"], nobody=["*"])
    assert GroupPermission.objects.get().tool_id is not None


def test_nobody_gives_a_group_that_they_are_in_what_it_has_not(grouped):
    bob = Actor("user", str(grouped.people["bob"].id))
    held = list(GroupPermission.objects.values())
    give(finance=[within(UP_TO_500)])
    held = list(GroupPermission.objects.values())
    for wanted in (
        ["*"],
        ["payments.refund"],
        [within("true")],
        [within(UP_TO_500), "mail.*", "*"],
    ):
        with pytest.raises(OwnAuthority):
            give(bob, finance=wanted)
    assert list(GroupPermission.objects.values()) == held
    assert give(bob, finance=[within(UP_TO_500), within(NOT_HIGH)])
    assert give(bob, leads=["*"])
    with pytest.raises(OwnAuthority):
        belong(bob, leads=["bob"])
    assert give(bob, finance=[])


@pytest.mark.django_db
def test_the_database_takes_no_second_of_a_kind_and_none_of_another_tenant():
    here, there = make_place("acme", ROLES), make_place("umbrella", {"charlie": "admin"})
    with tenant_scope(here.tenant.pk):
        set_groups(SYSTEM, {"finance": ["bob"]})
        set_group_grants(SYSTEM, {"finance": ["*", "payments.refund"]})
        finance = Group.objects.get()
        assert [here.refusal("bob"), here.refusal("alice")] == [None, "not-an-approver"]
        for of in (here.tools["payments.refund"], None):
            with pytest.raises(IntegrityError, match="once"), transaction.atomic():
                GroupPermission.objects.create(group=finance, tool=of)
        with pytest.raises(IntegrityError, match="same_tenant"), transaction.atomic():
            GroupPermission.objects.create(group=finance, tool=there.tools["payments.refund"])
    with tenant_scope(there.tenant.pk):
        set_members(SYSTEM, [MemberWanted("bob", "bob@acme.test", "approver")])
        asked = (here.people["bob"].pk, there.tools["payments.refund"].pk, there.run.agent_id)
        assert refusal(*asked) == "not-an-approver"
        assert not GroupPermission.objects.exists()
        with pytest.raises(IntegrityError, match="same_tenant"), transaction.atomic():
            GroupPermission.objects.create(group=finance, tool=there.tools["payments.refund"])
