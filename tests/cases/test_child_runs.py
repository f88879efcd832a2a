"""Cases of the kind child-runs: a child has its parent's limits, and its parent's end."""

from __future__ import annotations

from functools import partial

import pytest

from tests.cases.world import BY_AGENT, World, auto, deliver, in_background, page_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
RULES = [
    {"name": "never", "trigger": "action", "tools": ["db.drop"], "then": "deny", "reason": "no"},
    {"name": "mails", "trigger": "action", "tools": ["mail.*"], "then": "approve"},
]


def test_a_child_is_judged_as_its_parent_is(world: World) -> None:
    """rf-child-01 (openJiuwen-ai/agent-core#963; anomalyco/opencode#33223)."""
    world.given(world.tool("db.drop"), world.tool("mail.send"), rules=RULES)
    root = world.run(budget={"steps": 5}, requested_by="req")
    run = world.run(parent=root["id"])
    child = world.run(parent=run["id"], budget={"steps": 100})
    for here in (root, child):
        dropped = world.propose(here, "db.drop", {"table": "t"})
        assert (dropped["status"], dropped["gate"], dropped["reason"]) == ("denied", None, "no")
    mail = world.propose(child, "mail.send", {"to": "x@example.org"})
    gate = world.gate(mail)
    assert (gate["state"], gate["triggers"][0]["rule"]) == ("pending", "mails")
    assert gate["run"] == child["id"]
    assert gate["why"]["started_by"] == [run["id"], root["id"]]
    page = page_of(world, "appr1", f"/decisions/{gate['id']}")
    assert all(f'href="/runs/{above["id"]}"' in page for above in (run, root))
    # What it is given by itself can only be less, and it is made for the same person.
    assert child["budget"] == {"steps": 5}
    assert child["requested_by"] == "req"
    world.catch_up()
    assert world.outside.server.asked == []


def test_a_child_of_another_agent_is_not_started(world: World) -> None:
    """rf-child-01: a helper does not get at the parent's run by calling itself its child."""
    world.given(world.tool("db.drop"))
    run = world.run()
    body = {"workflow": "w", "goal": "g", "parent": run["id"]}
    assert world.refused("other", "POST", "/runs", body, status=403).code == "not-your-run"


def test_a_cancel_reaches_everything_below(world: World) -> None:
    """rf-child-03 (tinyhumansai/opencompany#675; elastic/kibana#250526)."""
    world.given(
        world.tool("mail.send", executor=BY_AGENT), world.tool("slow"), rules=[auto("slow")]
    )
    run = world.run()
    child = world.run(parent=run["id"])
    grandchild = world.run(parent=child["id"])
    done = world.run(parent=run["id"])
    world.post("ops", f"/runs/{done['id']}/complete", {"output": "kept"})
    mail = world.propose(grandchild, "mail.send", {"to": "x@example.org"})
    world.decide(mail)
    world.work()
    world.outside.takes_its_time("slow")
    world.propose(child, "slow")
    (message,) = [one for one in world.messages if one[0] == "interrupts.work_run"]
    world.messages.clear()
    with in_background(partial(deliver, message)):
        assert world.outside.arrived.wait(20)
        cancelled = world.post("opr", f"/runs/{run['id']}/cancel", {})
        assert cancelled["status"] == "cancelling"
        path = f"/steps/{mail['id']}/claim"
        assert world.refused("ops", "POST", path, {}, status=409).code == "run-ended"
        assert world.fresh(grandchild)["status"] == "cancelled"
        assert world.fresh(child)["suspension"] == "still_cancelling"
        assert world.fresh(run)["status"] == "cancelling"
        world.outside.let_go.set()
    world.advance(6)  # what is above looks whether what is below has ended
    world.catch_up()
    assert {world.fresh(one)["status"] for one in (run, child, grandchild)} == {"cancelled"}
    kept = world.fresh(done)
    assert (kept["status"], kept["output"]) == ("completed", "kept")
    assert world.outside.times == {"slow": 1}


@pytest.mark.parametrize("why", ["budget_exhausted", "owner_lost"])
def test_nothing_starts_under_a_parent_that_ran_out(world: World, why: str) -> None:
    """rf-child-04 (cadence-workflow/cadence#4898; risa-labs-inc/boss-plugin-flow-tab#19)."""
    world.given(world.tool("t"), rules=[auto("t")])
    run = world.run(idle_after=7200, budget={"seconds": 3600})
    child = world.run(parent=run["id"], agent_state={"format": "f", "version": "1", "data": []})
    if why == "owner_lost":
        world.advance(7201)
        world.catch_up()
    else:
        world.post("ops", f"/runs/{run['id']}/usage", {"seconds": 3601})
    assert [one["reason"] for one in world.interrupts(run)] == [why]
    assert [one["reason"] for one in world.interrupts(child)] == ["parent_interrupted"]
    start = {"workflow": "w", "goal": "g", "parent": run["id"]}
    step = {"tool": "t", "arguments": {}}
    fork = {"checkpoint": world.fresh(child)["checkpoint"]}
    paths = [("/runs", start), (f"/runs/{child['id']}/steps", step)]
    for path, body in paths:
        assert world.refused("ops", "POST", path, body, status=409).code == "run-suspended"
    assert world.refused("opr", "POST", f"/runs/{child['id']}/fork", fork, status=409).code == (
        "run-not-ended"
    )

    world.post("opr", f"/runs/{run['id']}/cancel", {})
    assert {world.fresh(one)["status"] for one in (run, child)} == {"cancelled"}
    for path, body in [*paths, ("/runs", {**start, "parent": child["id"]})]:
        assert world.refused("ops", "POST", path, body, status=409).code == "run-ended"
    path = f"/runs/{child['id']}/fork"
    assert world.refused("ops", "POST", path, fork, status=403).code == "people-only"
    made = world.post("opr", path, fork)
    assert (made["forked_from"], made["parent"], made["status"]) == (child["id"], None, "running")
    world.catch_up()
    assert world.outside.server.asked == []
