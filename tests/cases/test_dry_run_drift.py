"""Cases of the kind dry-run-drift: what was shown is what is there, or is shown again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.world import World, page_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


def plan(version: str, *changes: str) -> dict[str, Any]:
    found = [{"object": f"column {name}", "before": "there"} for name in changes]
    return {"summary": f"from {version}", "changes": found, "warnings": [], "fresh_for": 30}


def test_a_plan_whose_base_has_changed_is_approved_by_nobody(world: World) -> None:
    """rf-dry-01 (thepartly/pgroles#183; leg100/pug#23)."""
    world.outside.previews["db.migrate"] = plan("v7", "a")
    migrate = world.tool(
        "db.migrate", preview={"url": f"http://127.0.0.1:{world.port}/preview/db.migrate"}
    )
    world.given(migrate)
    run = world.run()
    step = world.propose(run, "db.migrate", {"plan": "p1"})
    world.work()
    shown = world.gate(step)
    assert shown["what"]["preview"]["changes"][0]["object"] == "column a"

    # Looked at anew and the same: the answer stands, since it is for what is shown.
    path = f"/gates/{shown['id']}/decisions"
    world.outside.previews["db.migrate"] = plan("v8", "a", "b")
    world.advance(31)
    reply = world.send("appr1", "POST", path, world.decision(shown))
    assert (reply.status, reply.code) == (409, "digest-mismatch")
    now = reply.body["gate"]
    assert now["what"]["digest"] != shown["what"]["digest"]
    changes = now["what"]["preview"]["changes"]
    assert [one["object"] for one in changes] == ["column a", "column b"]
    assert "column b" in page_of(world, "appr1", f"/decisions/{shown['id']}")
    assert (world.gate(step)["state"], world.gate(step)["decisions"]) == ("pending", [])
    asked = len([one for one in world.outside.server.asked if one.path.startswith("/preview")])

    world.advance(31)
    now = world.gate(step)
    assert world.decide(step)["state"] == "approved"
    world.catch_up()
    previews = [one for one in world.outside.server.asked if one.path.startswith("/preview")]
    assert len(previews) == asked + 1
    assert world.gate(step)["what"]["digest"] == now["what"]["digest"]
    assert world.outside.times == {"db.migrate": 1}


def test_where_nothing_is_left_to_be_done_nothing_runs(world: World) -> None:
    """rf-dry-01, its last expectation: the gate is ended by an answer in the call's place."""
    world.outside.previews["db.migrate"] = plan("v9")
    world.given(
        world.tool(
            "db.migrate", preview={"url": f"http://127.0.0.1:{world.port}/preview/db.migrate"}
        )
    )
    step = world.propose(world.run(), "db.migrate", {"plan": "p2"})
    world.work()
    assert world.gate(step)["what"]["preview"]["changes"] == []
    world.decide(step, "respond", value={"done": "by hand"})
    world.catch_up()
    assert world.fresh(step)["result"] == {"done": "by hand"}
    assert world.outside.times == {}
