"""Cases of the kind stale-authority: an approval is for the world in which it was given."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.world import BY_AGENT, World, auto, page_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
ASK = {"name": "money", "trigger": "action", "tools": ["payments.*"], "then": "approve"}
TRANSFER = {"amount": "900.00", "to": "V-1"}


def test_a_policy_that_was_tightened_is_asked_before_the_effect(world: World) -> None:
    """rf-stale-01 (openai/openai-agents-python#4896)."""
    pay = world.tool("payments.transfer", executor=BY_AGENT)
    world.given(pay, rules=[ASK])
    run, other = world.run(), world.run()
    step = world.propose(run, "payments.transfer", TRANSFER)
    doomed = world.propose(other, "payments.transfer", TRANSFER)
    old = world.decide(step)
    world.decide(doomed)
    world.given(pay, rules=[{**ASK, "quorum": 2}])
    reply = world.send("ops", "POST", f"/steps/{step['id']}/claim", {})
    assert (reply.status, reply.code) == (409, "not-authorized")
    step = world.fresh(step)
    assert (step["status"], step["authorization"], step["attempts"]) == ("waiting", None, 0)
    new = world.gate(step)
    assert (new["id"] != old["id"], new["quorum"]) == (True, {"needed": 2, "given": 0})
    assert new["policy_version"] == old["policy_version"] + 1
    kept = world.get("appr1", f"/gates/{old['id']}")
    assert (kept["state"], [one["by"] for one in kept["decisions"]]) == ("superseded", ["appr1"])
    world.decide(step)
    assert world.decide(step, who="appr2")["state"] == "approved"
    assert world.claim(step)["digest"] == step["digest"]

    # A policy that forbids it by now: denied, not failed.
    deny = {**ASK, "name": "never", "then": "deny", "reason": "no transfers any more"}
    world.given(pay, rules=[deny])
    reply = world.send("ops", "POST", f"/steps/{doomed['id']}/claim", {})
    assert (reply.status, reply.code) == (409, "not-authorized")
    doomed = world.fresh(doomed)
    assert (doomed["status"], doomed["reason"]) == ("denied", "no transfers any more")
    assert (doomed["error"], doomed["outcome"], doomed["attempts"]) == (None, None, 0)
    assert world.fresh(other)["status"] == "running"


def preview(price: str, fresh_for: float = 30) -> dict[str, Any]:
    shown = {"summary": f"10 of A at {price} EUR", "changes": [], "warnings": []}
    return {**shown, "fresh_for": fresh_for}


def test_terms_that_moved_are_shown_before_they_are_agreed_to(world: World) -> None:
    """rf-stale-02 (vercel/eve#758).

    The terms are part of what is approved: those that moved meanwhile are looked at anew, and are
    approved by nobody. What may move after that goes into the arguments, for the far end to hold.
    """
    world.outside.previews["order.buy"] = preview("9.90")
    buy = world.tool(
        "order.buy",
        executor=BY_AGENT,
        preview={"url": f"http://127.0.0.1:{world.port}/preview/order.buy"},
    )
    world.given(buy, rules=[{**ASK, "tools": ["order.*"], "quorum": 2}])
    run = world.run()
    step = world.propose(run, "order.buy", {"sku": "A", "qty": 10, "most": "9.90"})
    world.work()
    first = world.gate(step)
    assert first["what"]["preview"]["summary"] == "10 of A at 9.90 EUR"
    world.decide(step)
    world.outside.previews["order.buy"] = preview("14.90")
    world.advance(31)
    path = f"/gates/{first['id']}/decisions"
    reply = world.send("appr2", "POST", path, world.decision(first))
    assert (reply.status, reply.code) == (409, "digest-mismatch")
    now = reply.body["gate"]
    assert now["what"]["preview"]["summary"] == "10 of A at 14.90 EUR"
    assert (now["quorum"]["given"], now["state"]) == (0, "pending")
    assert "14.90 EUR" in page_of(world, "appr1", f"/decisions/{first['id']}")
    world.decide(step, "reject", who="appr2", reason="too dear")

    # Agreed to, and then moved: the agent's own look is before its effect, and it reports that.
    world.outside.previews["order.buy"] = preview("14.90", 3600)
    agreed = world.propose(run, "order.buy", {"sku": "A", "qty": 10, "most": "14.90"})
    world.work()
    world.decide(agreed)
    world.decide(agreed, who="appr2")
    claimed = world.claim(agreed)
    assert claimed["arguments"]["most"] == "14.90"
    assert world.receipt(claimed, "failed", error="the price is 19.90")["status"] == "failed"
    again = world.propose(run, "order.buy", {"sku": "A", "qty": 10, "most": "19.90"})
    assert (again["status"], again["gate"] != agreed["gate"]) == ("waiting", True)


def test_what_runs_is_what_was_recorded_whichever_program_goes_on(world: World) -> None:
    """rf-stale-04 (mastra-ai/mastra#16260; micro/go-micro#4936).

    The run went on with another version of the agent than had paused, which asked its model again.
    """
    world.given(world.tool("mail.send", executor=BY_AGENT))
    run = world.run()
    v1, v2 = ({"format": "f", "version": version, "data": {}} for version in ("1", "2"))
    call = {"tool": "mail.send", "arguments": {"to": "a@example.org"}, "key": "mail"}
    first = world.post("ops", f"/runs/{run['id']}/claim", {})["session"]
    step = world.propose(run, **call, agent_state=v1, session=first)
    world.decide(step)
    checkpoint = world.get("ops", f"/checkpoints/{world.fresh(run, 'ops')['checkpoint']}")
    assert checkpoint["agent_state"]["version"] == "1"  # the newer program is told what it finds
    second = world.post("ops", f"/runs/{run['id']}/claim", {})["session"]
    path = f"/runs/{run['id']}/steps"
    other = {**call, "arguments": {"to": "b@example.org"}, "agent_state": v2, "session": second}
    assert world.refused("ops", "POST", path, other, status=409).code == "step-key-reused"
    late = {**call, "key": "late", "session": first}
    assert world.refused("ops", "POST", path, late, status=409).code == "stale-session"
    again = world.post("ops", path, {**call, "agent_state": v2, "session": second})
    assert again["id"] == step["id"]
    claimed = world.post("ops", f"/steps/{step['id']}/claim", {"session": second})
    assert (claimed["arguments"], claimed["digest"]) == (call["arguments"], step["digest"])
    # And one whose tool has another version by now is another call: asked about anew.
    step = world.propose(run, "mail.send", {"to": "c@example.org"})
    old = world.decide(step)
    world.given(world.tool("mail.send", executor=BY_AGENT, risk="high"))
    reply = world.send("ops", "POST", f"/steps/{step['id']}/claim", {})
    assert (reply.status, reply.code) == (409, "not-authorized")
    new = world.gate(world.fresh(step))
    assert (new["id"] != old["id"], new["ceremony"]) == (True, "explicit")
    assert new["what"]["tool_version"] == old["what"]["tool_version"] + 1


def test_what_was_approved_is_not_asked_again(world: World) -> None:
    """rf-stale-05 (curie-eng/curie#430; openai/openai-agents-python#4244).

    The approval lived in an object that the resumed process made without it.
    """
    world.given(world.tool("ticket.close", executor=BY_AGENT))
    run = world.run()
    call = {"tool": "ticket.close", "arguments": {"id": "T-1"}, "key": "close"}
    step = world.propose(run, **call)
    world.decide(step)
    for _ in range(2):  # the agent begins anew, with more context
        session = world.post("ops", f"/runs/{run['id']}/claim", {})["session"]
        state = {"format": "f", "version": "1", "data": {"x": session}}
        world.post("ops", f"/runs/{run['id']}/checkpoints", {"agent_state": state})
        seen = world.post("ops", f"/runs/{run['id']}/steps", {**call, "session": session})
        assert (seen["id"], seen["status"], seen["gate"]) == (step["id"], "ready", step["gate"])
        world.advance(3600)
        world.catch_up()
    claimed = world.claim(step)
    path = f"/steps/{step['id']}/claim"
    assert world.refused("ops", "POST", path, {}, status=409).code == "already-claimed"
    assert world.receipt(claimed)["status"] == "succeeded"
    assert world.refused("ops", "POST", path, {}, status=409).code == "already-claimed"
    assert world.kinds(run).count("gate.opened") == 1


def test_a_rule_is_for_the_tool_it_names_and_no_namesake(world: World) -> None:
    """rf-stale-06 (anthony-chaudhary/fak#3200; generative-computing/mellea#1612).

    A tool is known by its whole name, connector and all, and by its version.
    """
    names = ("crm-eu.contact.update", "crm-us.contact.update", "crm-eu.contact.update2")
    mine = {**auto("crm-eu.contact.update"), "condition": "arguments.id == 'C-1'"}
    tools = [world.tool(name) for name in names]
    world.given(*tools, rules=[mine], may_decide={"req": ["crm-eu.contact.update"]})
    seen = {name: world.propose(world.run(), name, {"id": "C-1"}) for name in names}
    assert [step["status"] for step in seen.values()] == ["ready", "waiting", "waiting"]
    assert world.propose(world.run(), names[0], {"id": "C-2"})["status"] == "waiting"
    for name in names[1:]:  # nor is authority over the one authority over the other
        gate = world.gate(seen[name], "req")
        assert gate["may_decide"] is False
        path = f"/gates/{gate['id']}/decisions"
        assert world.refused("req", "POST", path, world.decision(gate), status=403).code == (
            "not-an-approver"
        )
    for near in ("CRM-EU.contact.update", "crm-eu.contact.update ", "crm\u2011eu.contact.update"):
        body = {"tool": near, "arguments": {"id": "C-1"}}
        path = f"/runs/{world.run()['id']}/steps"
        assert world.refused("ops", "POST", path, body, status=422).code == "unknown-tool"
