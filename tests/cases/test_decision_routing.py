"""Cases of the kind decision-routing: an answer is for the one question it names."""

from __future__ import annotations

import pytest

from tests.cases.world import World

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


def test_steps_of_one_turn_are_asked_about_one_by_one(world: World) -> None:
    """rf-route-01 (langchain-ai/langgraph#6626; langchain-ai/langgraph#6533)."""
    world.given(world.tool("shape.create"))
    run = world.run()
    kinds = ("circle", "square", "circle")
    proposals = [{"tool": "shape.create", "arguments": {"kind": kind}} for kind in kinds]
    path = f"/runs/{run['id']}/steps"
    steps = world.post("ops", path, {"steps": proposals, "parallel": True})["steps"]
    assert len({step["gate"] for step in steps}) == len({step["interrupt"] for step in steps}) == 3
    first, second, third = steps
    assert first["digest"] == third["digest"]
    world.decide(second)
    world.decide(first, "reject", reason="no circle")
    seen = [world.fresh(step) for step in steps]
    assert [step["status"] for step in seen] == ["rejected", "ready", "waiting"]
    assert [step["reason"] for step in seen] == ["no circle", None, None]
    world.catch_up()
    assert world.outside.times == {}  # nothing of a group starts before each of its gates is final
    assert world.fresh(run)["open_interrupts"] == [third["interrupt"]]
    world.decide(third)
    world.catch_up()
    done = sorted(key for key, _ in world.outside.calls("shape.create"))
    assert done == sorted([second["id"], third["id"]])


def test_an_answer_names_what_it_answers(world: World) -> None:
    """rf-route-02 (langchain-ai/langgraph#6108; langchain-ai/langgraph#4028)."""
    world.given(world.tool("mail.send"), world.tool("db.drop"))
    run = world.run()
    proposals = [
        {"tool": "mail.send", "arguments": {"to": "a@example.org"}},
        {"tool": "db.drop", "arguments": {"table": "t"}},
    ]
    path = f"/runs/{run['id']}/steps"
    steps = world.post("ops", path, {"steps": proposals})["steps"]
    gates = [world.gate(step) for step in steps]
    bare = {"decision": "approve"}
    for path, body, status in (
        (f"/runs/{run['id']}/resume", bare, 404),
        (f"/runs/{run['id']}/decisions", bare, 404),
        ("/gates/decisions", bare, 422),
        ("/gates/decisions", {"decisions": [{"digest": gates[0]["what"]["digest"]}]}, 422),
        (f"/gates/{gates[0]['id']}/decisions", {"verdict": "approve"}, 422),
    ):
        world.refused("appr1", "POST", path, body, status=status)
    for interrupt in world.interrupts(run):
        body = {"checkpoint": interrupt["checkpoint"], "resolution": "resume"}
        path = f"/interrupts/{interrupt['id']}/response"
        assert world.refused("opr", "POST", path, body, status=409).code == "decide-the-gate"
    # One gate's answer, sent to the other.
    path = f"/gates/{gates[1]['id']}/decisions"
    reply = world.refused("appr1", "POST", path, world.decision(gates[0]), status=409)
    assert reply.code == "digest-mismatch"
    assert [world.gate(step)["state"] for step in steps] == ["pending", "pending"]
    assert [world.fresh(step)["authorization"] for step in steps] == [None, None]


def test_a_pause_is_answered_once(world: World) -> None:
    """rf-route-04 (langchain-ai/langgraph#6663).

    A second answer from an old checkpoint forked the history, and the step ran again.
    """
    world.given(world.tool("crm.add"))
    run = world.run()
    step = world.propose(run, "crm.add", {"value": 1})
    world.decide(step)
    world.catch_up()
    asked = {"reason": "input_required", "question": "How many?", "schema": {"type": "integer"}}
    interrupt = world.post("ops", f"/runs/{run['id']}/interrupts", asked)
    path = f"/interrupts/{interrupt['id']}/response"
    answer = {"checkpoint": interrupt["checkpoint"], "resolution": "resume", "value": 1}
    first = world.send("opr", "POST", path, answer, key="k-1")
    assert (first.status, first.body["status"]) == (200, "resolved")
    version = world.fresh(run)["state_version"]
    for key in ("k-1", None, "k-3"):
        again = world.send("opr", "POST", path, answer, key=key)
        assert (again.status, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert world.fresh(run)["state_version"] == version
    other = {**answer, "value": 2}
    reply = world.refused("opr", "POST", path, other, status=409, key="k-2")
    assert reply.code == "already-resolved"

    # A newer pause takes no answer that was made from what was there before it.
    newer = world.post("ops", f"/runs/{run['id']}/interrupts", {**asked, "question": "Still?"})
    path = f"/interrupts/{newer['id']}/response"
    reply = world.refused("opr", "POST", path, answer, status=409)
    assert reply.code == "stale-checkpoint"
    no = world.decision(world.gate(step), "reject")
    path = f"/gates/{step['gate']}/decisions"
    assert world.refused("appr1", "POST", path, no, status=409).code == "already-decided"
    assert [one["verdict"] for one in world.gate(step)["decisions"]] == ["approve"]
    world.catch_up()
    assert world.outside.times == {"crm.add": 1}
