"""Cases of the kind dry-run-drift: what was shown is what is there, or is shown again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.world import World, page_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


def plan(version: str, *changes: str) -> dict[str, Any]:
    found = [{"path": "/columns", "change": change} for change in changes]
    return {"summary": f"from {version}", "changes": found, "warnings": [], "fresh_for": 30}


def test_a_plan_whose_base_has_changed_is_approved_by_nobody(world: World) -> None:
    """rf-dry-01 (thepartly/pgroles#183; leg100/pug#23)."""
    world.outside.previews["db.migrate"] = plan("v7", "drop column a")
    migrate = world.tool(
        "db.migrate", preview={"url": f"http://127.0.0.1:{world.port}/preview/db.migrate"}
    )
    world.given(migrate)
    run = world.run()
    step = world.propose(run, "db.migrate", {"plan": "p1"})
    world.work()
    shown = world.gate(step)
    assert shown["what"]["preview"]["changes"][0]["change"] == "drop column a"

    # Looked at anew and the same: the answer stands, since it is for what is shown.
    path = f"/gates/{shown['id']}/decisions"
    world.outside.previews["db.migrate"] = plan("v8", "drop column a", "drop column b")
    world.advance(31)
    reply = world.send("appr1", "POST", path, world.decision(shown))
    assert (reply.status, reply.code) == (409, "digest-mismatch")
    now = reply.body["gate"]
    assert now["what"]["digest"] != shown["what"]["digest"]
    assert [one["change"] for one in now["what"]["preview"]["changes"]] == [
        "drop column a",
        "drop column b",
    ]
    assert "drop column b" in page_of(world, "appr1", f"/decisions/{shown['id']}")
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

    # Nothing is left to be done: the answer in its place ends it, and nothing runs.
    again = world.propose(run, "db.migrate", {"plan": "p2"})
    world.work()
    world.decide(again, "respond", value={"done": "by hand"})
    world.catch_up()
    assert world.fresh(again)["result"] == {"done": "by hand"}
    assert world.outside.times == {"db.migrate": 1}
