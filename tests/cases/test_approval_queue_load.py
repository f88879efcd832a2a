"""Cases of the kind approval-queue-load: what is approved when much waits."""

from __future__ import annotations

import pytest

from tests.cases.world import World

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
ASK = {"name": "ask", "trigger": "action", "tools": ["*"], "then": "approve"}


def test_approving_all_takes_in_nothing_that_came_later(world: World) -> None:
    """rf-que-01 (tinyhumansai/opencompany#1713; ever-works/ever-works#1690)."""
    drop = world.tool("db.drop", effect="irreversible", risk="high")
    world.given(world.tool("a.do"), drop, rules=[ASK])
    for number in (1, 2):
        world.propose(world.run(), "a.do", {"x": number})
    listed = world.get("appr1", "/gates?mine=true")["results"]
    pairs = [{"gate": gate["id"], "digest": gate["what"]["digest"]} for gate in listed]
    assert len(pairs) == 2
    late = world.propose(world.run(), "db.drop", {"table": "t"})
    policy = world.get("appr1", "/policies/current")

    told = world.post("appr1", "/gates/decisions", {"decisions": pairs})
    assert [one["status"] for one in told["results"]] == ["approved", "approved"]
    every = {"select": "all pending", "decision": "approve"}
    reply = world.refused("appr1", "POST", "/gates/decisions", every, status=422)
    assert "/select" in reply.pointers

    gate = world.gate(late)
    assert gate["state"] == "pending"
    one = {"decisions": [{"gate": gate["id"], "digest": gate["what"]["digest"]}]}
    (told,) = world.post("appr1", "/gates/decisions", one)["results"]
    assert (told["status"], told["problem"]["code"]) == ("refused", "not-in-bulk")
    assert world.gate(late)["decisions"] == []
    world.work()
    assert world.outside.times == {"a.do": 2}
    assert world.get("appr1", "/policies/current") == policy
