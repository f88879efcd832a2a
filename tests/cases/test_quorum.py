"""Cases of the kind quorum: people are counted, not votes and not seats."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management.base import CommandError

from tenants.models import Membership
from tenants.scope import tenant_scope
from tenants.services.credentials import issue_tokens
from tests.cases.world import World, browser_of, document

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
TWO = {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}


def test_one_person_fills_one_seat_in_however_many_groups(world: World) -> None:
    """rf-quo-01 (palantir/policy-bot#33; superplanehq/superplane#1785)."""
    groups = {"ops": ["appr1"], "sec": ["appr1", "appr2"]}
    rules = [{**TWO, "approvers": ["ops", "sec"]}, {**TWO, "name": "again", "approvers": ["sec"]}]
    world.given(world.tool("keys.rotate"), rules=rules, groups=groups)
    with tenant_scope(world.tenant):
        member = Membership.objects.select_related("user").get(user__username="appr1")
        world.secrets["appr1's phone"] = issue_tokens([member])["appr1"]
    step = world.propose(world.run(), "keys.rotate", {"k": "root"})
    gate = world.gate(step)
    body, path = world.decision(gate), f"/gates/{gate['id']}/decisions"
    reply = world.refused("appr1", "POST", path, {**body, "as_group": "ops"}, status=422)
    assert reply.pointers == ["/as_group"]
    assert world.post("appr1", path, body)["quorum"] == {"needed": 2, "given": 1}
    # With another token, another key, in the browser: it is the same person.
    for who, key in (("appr1", "a"), ("appr1's phone", None), ("appr1's phone", "b")):
        again = world.send(who, "POST", path, body, key=key)
        assert (again.status, again.headers["Idempotent-Replayed"]) == (200, "true")
    form = {"digest": gate["what"]["digest"]}
    browser_of(world, "appr1").post(f"/decisions/{gate['id']}/approve", form)
    told = world.post("appr1", "/gates/decisions", {"decisions": [{"gate": gate["id"], **form}]})
    assert told["results"][0]["status"] == "counted"
    gate = world.gate(step)
    assert (gate["state"], gate["quorum"]["given"], len(gate["decisions"])) == ("pending", 1, 1)
    world.catch_up()
    assert world.outside.times == {}
    assert world.decide(step, who="appr2")["state"] == "approved"
    world.catch_up()
    assert world.outside.times == {"keys.rotate": 1}


def test_one_person_fills_one_seat_in_however_many_stages(world: World) -> None:
    """rf-quo-01, of seats that are filled one after the other: each by somebody else."""
    groups = {"ops": ["appr1", "appr2"], "sec": ["appr1", "appr3"]}
    rule = {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve"}
    stages = [{"approvers": ["ops"]}, {"approvers": ["sec"]}]
    # A rule whose only person would have to fill both seats is none.
    tenant = document(
        "acme", world.port, [world.tool("keys.rotate")], [{**rule, "stages": stages}],
        groups={"ops": ["appr1"], "sec": ["appr1"]}, may_decide={},
    )  # fmt: skip
    with pytest.raises(CommandError, match="policy/rules/0/stages: A person approves once"):
        world.apply(tenant)
    world.given(world.tool("keys.rotate"), rules=[{**rule, "stages": stages}], groups=groups)
    with tenant_scope(world.tenant):
        member = Membership.objects.select_related("user").get(user__username="appr1")
        world.secrets["appr1's phone"] = issue_tokens([member])["appr1"]
    step = world.propose(world.run(), "keys.rotate", {"k": "root"})
    gate = world.gate(step)
    body, path = world.decision(gate), f"/gates/{gate['id']}/decisions"
    assert world.post("appr1", path, body)["stage"] == 2
    # The same again is the same vote; said of the next stage in any way, it is refused.
    again = world.send("appr1's phone", "POST", path, body)
    assert (again.status, again.headers["Idempotent-Replayed"]) == (200, "true")
    other = {"verdict": "reject", "digest": body["digest"], "reason": "no"}
    for who in ("appr1", "appr1's phone"):
        assert world.refused(who, "POST", path, other, status=403).code == "not-your-stage"
    form = {"digest": gate["what"]["digest"]}
    browser_of(world, "appr1").post(f"/decisions/{gate['id']}/approve", form)
    gate = world.gate(step)
    assert (gate["state"], gate["stage"], gate["quorum"]["given"]) == ("pending", 2, 1)
    assert (world.inbox("appr1"), world.inbox("appr3")) == ([], [gate["id"]])
    world.catch_up()
    assert world.outside.times == {}
    assert world.decide(step, who="appr3")["state"] == "approved"
    world.catch_up()
    assert world.outside.times == {"keys.rotate": 1}


def test_a_name_that_is_there_twice_blocks_nothing(world: World) -> None:
    """rf-quo-04 (aergonaut/cody#73; danmunn/redmine_dmsf#298).

    A seat that nobody could fill: the same approver was listed twice for two.
    """
    tool = world.tool("deploy")

    def said(groups: dict[str, list[str]], approvers: list[str]) -> dict[str, Any]:
        rules = [{**TWO, "approvers": approvers}]
        return document("acme", world.port, [tool], rules, groups=groups, may_decide={})

    twice = said({"ops": ["appr1", "appr1", "appr2"]}, ["ops"])
    with pytest.raises(CommandError, match="groups/ops/1: Is there twice"):
        world.apply(twice)
    with pytest.raises(CommandError, match="policy/rules/0/approvers/1: It stands here twice"):
        world.apply(said({"ops": ["appr1", "appr2"]}, ["ops", "ops"]))
    # Nor is a quorum taken that these groups can't make up, however often they hold somebody.
    with pytest.raises(CommandError, match="hold 1 people, the quorum is 2"):
        world.apply(said({"ops": ["appr1"], "sec": ["appr1"]}, ["ops", "sec"]))
    world.given(
        tool,
        rules=[{**TWO, "approvers": ["ops", "sec"]}],
        groups={"ops": ["appr1", "appr2"], "sec": ["appr1"]},
    )
    step = world.propose(world.run(), "deploy", {"ref": "a"})
    assert world.decide(step)["state"] == "pending"
    assert world.decide(step, who="appr2")["state"] == "approved"
    world.catch_up()
    assert world.outside.times == {"deploy": 1}
