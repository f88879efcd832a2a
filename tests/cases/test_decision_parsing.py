"""Cases of the kind decision-parsing: what is not clearly a yes is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.test import Client

from approvals import judging
from config.memo import Memo
from interrupts.models import Choice
from tests.cases.world import World, as_superuser, document

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
NO_VERDICTS: tuple[Any, ...] = (
    None, True, 1, "", "true", "yes", "Approve", "APPROVE", "approve ", "approved", "aprove",
    "\uff41pprove", ["approve"], {"approve": True}, "accept", "ignore",
)  # fmt: skip


def test_what_is_no_verdict_decides_nothing(world: World) -> None:
    """rf-dec-01 (pydantic/pydantic-ai#8060; pydantic/pydantic-ai#8081)."""
    world.given(world.tool("db.drop"))
    step = world.propose(world.run(), "db.drop", {"table": "t"})
    gate = world.gate(step)
    path, body = f"/gates/{gate['id']}/decisions", world.decision(gate)
    for verdict in NO_VERDICTS:
        reply = world.refused("appr1", "POST", path, {**body, "verdict": verdict}, status=422)
        assert reply.pointers == ["/verdict"]
    del body["verdict"]
    assert world.refused("appr1", "POST", path, body, status=422).pointers == ["/verdict"]
    twice = b'{"verdict":"reject","verdict":"approve","digest":"%s"}'
    digest = gate["what"]["digest"]
    world.refused("appr1", "POST", path, raw=twice % digest.encode(), status=422)
    for wrong in (None, "", digest[:-1], digest.upper(), [digest]):
        sent = {"verdict": "approve", "digest": wrong}
        assert world.send("appr1", "POST", path, sent).status in (409, 422)
    assert (world.gate(step)["state"], world.gate(step)["decisions"]) == ("pending", [])
    # The same words in what is approved with others, and in an interrupt's answer.
    for wrong in (None, True, {"decisions": None}, {"decisions": True}, {"decisions": []}):
        assert world.send("appr1", "POST", "/gates/decisions", wrong).status in (400, 422)
    assert world.fresh(step)["authorization"] is None


WRONG_RULES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"allowed_outcomes": []}, "allowed_outcomes"),
    ({"allowed_outcomes": ["aprove"]}, "allowed_outcomes"),
    ({"then": "gates"}, "then"),
    ({"then": None}, "then"),
    ({"then": ["approve"]}, "then"),
    ({"trigger": "actions"}, "trigger"),
    ({"quorum": 0}, "quorum"),
    ({"approvers": []}, "approvers"),
    ({"tools": []}, "tools"),
    ({"tools": ["db.drop**"]}, "tools/0"),
    ({"on_expiry": "approve", "expires_in": 60}, "on_expiry"),
    ({"condition": "arguments.table = 't'"}, "condition"),
)


def test_a_policy_that_means_nothing_switches_no_gate_off(world: World) -> None:
    """rf-dec-03 (langchain-ai/langchain#39247; langchain-ai/langchain#38838)."""
    drop = world.tool("db.drop")
    ask = {"name": "ask", "trigger": "action", "tools": ["db.drop"], "then": "approve"}
    world.given(drop)  # no rule at all: asked about
    assert world.propose(world.run(), "db.drop", {"table": "t"})["status"] == "waiting"
    world.given(drop, rules=[ask])
    policy = world.get("appr1", "/policies/current")
    everything = {"groups": {}, "may_decide": {}}
    for members, place in WRONG_RULES:
        wrong = document("acme", world.port, [drop], [{**ask, **members}], **everything)
        with pytest.raises(CommandError, match=f"acme: policy/rules/0/{place}: "):
            world.apply(wrong)
        tried = {"policy": wrong["policy"]}
        reply = world.refused("adm", "POST", "/policies/simulate", tried, status=422)
        assert f"/policy/rules/0/{place}" in reply.pointers
    assert world.get("appr1", "/policies/current") == policy
    assert world.propose(world.run(), "db.drop", {"table": "t"})["status"] == "waiting"


WRONG_DECISIONS: tuple[tuple[Any, str], ...] = (
    (["aprove"], "decisions/0"),
    (["approve", "reject", "gates"], "decisions/2"),
    (["approve", "reject", "reject"], "decisions/2"),
    (["reject"], "decisions"),
    (["approve"], "decisions"),
    (None, "decisions"),
    ("approve", "decisions"),
    ({"approve": True}, "decisions"),
    ([["approve"], "reject"], "decisions/0"),
)


def test_decisions_of_a_tool_that_mean_nothing_leave_its_gate_as_it_was(world: World) -> None:
    """rf-dec-03, of what people may decide of a tool: empty and misspelt lists, with its name."""
    drop = world.tool("db.drop", decisions=["approve", "reject"])
    rule = {"name": "ask", "trigger": "action", "tools": ["db.drop"], "then": "approve"}
    world.given(drop, rules=[rule])
    declared = world.get("ops", "/tools/db.drop")
    assert declared["decisions"] == ["approve", "reject"]
    for wrong, place in WRONG_DECISIONS:
        tenant = document(
            "acme", world.port, [{**drop, "decisions": wrong}], [rule], groups={}, may_decide={}
        )
        with pytest.raises(CommandError, match=rf"acme: tools/(0|db\.drop)/{place}: "):
            world.apply(tenant)
        assert world.get("ops", "/tools/db.drop") == declared
    # An empty list takes nothing from people, and spares nobody being asked.
    world.given({**drop, "decisions": []}, rules=[rule])
    open_ = world.propose(world.run(), "db.drop", {"table": "t"})
    assert open_["status"] == "waiting"
    assert len(world.gate(open_)["allowed_decisions"]) == len(Choice)
    world.decide(open_, "reject")
    world.given(drop, rules=[rule])
    # Whatever is left to people, nobody is spared being asked, and what is not left is not taken.
    step = world.propose(world.run(), "db.drop", {"table": "t"})
    gate = world.gate(step)
    path = f"/gates/{gate['id']}/decisions"
    assert (step["status"], gate["allowed_decisions"]) == ("waiting", ["approve", "reject"])
    for verdict, more in (("request_changes", {}), ("respond", {"value": 1})):
        body = {**world.decision(gate, verdict), **more}
        assert world.refused("appr1", "POST", path, body, status=422).code == "decision-not-allowed"
    edit = {**world.decision(gate), "arguments": {"table": "u"}}
    assert world.refused("appr1", "POST", path, edit, status=422).code == "decision-not-allowed"
    assert world.decide(step)["state"] == "approved"
    world.catch_up()
    assert world.outside.times == {"db.drop": 1}


@pytest.mark.parametrize("broken", [{"rules": [{"name": "x", "then": "gates"}]}, {"rules": None}])
def test_a_policy_that_was_broken_where_it_is_kept_lets_nothing_run(
    world: World, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rf-dec-03, its second expectation: broken in the database, past every check."""
    rule = {"name": "all", "trigger": "action", "tools": ["*"], "then": "allow"}
    world.given(world.tool("db.drop"), rules=[rule])
    run = world.run()
    with as_superuser() as owner:
        broken_text = json.dumps(broken)
        owner.execute("UPDATE approvals_policyversion SET document = %s::jsonb", [broken_text])
    monkeypatch.setattr(judging, "_POLICIES", Memo(8))  # as a process that has just begun
    answer = Client(raise_request_exception=False).post(
        f"/api/v1/runs/{run['id']}/steps",
        {"tool": "db.drop", "arguments": {"table": "t"}},
        content_type="application/json",
        headers={"Authorization": f"Bearer {world.secrets['ops']}"},
    )
    told = answer.json()
    assert (answer.status_code, told.get("status")) == (201, "waiting") or (
        (answer.status_code, told["code"]) == (500, "internal-error")
    )
    world.catch_up()
    assert world.outside.times == {}


def test_what_a_rule_cannot_read_is_asked_about(world: World) -> None:
    """rf-dec-05 (mckinsey/agents-at-scale-ark#3467)."""
    base = {"trigger": "action", "tools": ["fs.*"]}
    etc = {**base, "name": "etc", "condition": "arguments.path.matches('^/etc/')"}
    tools = [world.tool("fs.read", effect="read", reconcile=None), world.tool("fs.stat")]
    tmp = {**base, "name": "tmp", "condition": "!arguments.path.matches('^/etc/')"}
    world.given(*tools, rules=[{**etc, "then": "approve"}, {**tmp, "then": "allow"}])
    run = world.run()
    path = f"/runs/{run['id']}/steps"
    text = {"tool": "fs.read", "arguments": '{"path": "/etc/shadow"'}
    assert world.refused("ops", "POST", path, text, status=422).pointers == ["/arguments"]
    raw = b'{"tool":"fs.read","arguments":{"path":"/etc/shadow"'
    assert world.refused("ops", "POST", path, raw=raw, status=400).code == "malformed-json"
    unreadable: tuple[Any, ...] = (
        {"path": ["/etc/shadow"]}, {}, {"path": None}, {"path": 7}, {"Path": "/etc/shadow"},
        {"path": {"path": "/etc/shadow"}},
    )  # fmt: skip
    for arguments in unreadable:
        for tool in ("fs.read", "fs.stat"):
            step = world.propose(world.run(), tool, arguments)
            assert step["status"] == "waiting", arguments
            (trigger,) = world.gate(step)["triggers"]
            assert trigger["rule"] == "etc"
            assert "not" in trigger["explanation"]
    assert world.propose(world.run(), "fs.stat", {"path": "/data/x"})["status"] == "ready"
    world.catch_up()
    assert world.outside.times == {"fs.stat": 1}
