"""Cases of the kind durability-and-recovery: everything ends at some time, and runs go on."""

from __future__ import annotations

from socket import socket
from typing import Any

import pytest

from interrupts import queue
from tests.cases.world import World, auto, deliver
from tests.interrupts.effects.far_end import Asked, answering

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


def refuses_the_second(world: World) -> None:
    """Have the far end refuse one call of the group, and do the others."""
    refuse = answering(422, {"error": "exit 1"})

    def behave(connection: socket, asked: Asked) -> None:
        second = asked.json()["arguments"]["n"] == 2
        (refuse if second else world.outside.done)(connection, asked)

    world.outside.behaviour["t"] = behave


@pytest.mark.parametrize("on_failure", ["interrupt", "tell"])
def test_what_comes_after_a_group_is_computed_from_rows(world: World, on_failure: str) -> None:
    """rf-durb-05 (celery/celery#9674; celery/celery#4207; celery/celery#1401).

    s1, s2 and s3 are to be done before s4; s2 fails, and every message of the broker is lost.
    """
    world.given(world.tool("t", on_failure=on_failure), world.tool("after"), rules=[auto("*")])
    refuses_the_second(world)
    run = world.run()
    group = [{"tool": "t", "arguments": {"n": n}} for n in (1, 2, 3)]
    world.broker_is_gone = True
    body = {"steps": group, "parallel": True}
    two = world.post("ops", f"/runs/{run['id']}/steps", body)["steps"][1]
    four = world.propose(run, "after", {"n": 4})
    for _ in range(3):  # only the sweep sees that something is to be done
        world.advance(5)
        world.broker_is_gone = False
        world.sweep()
        world.broker_is_gone = True
        for message in world.messages:
            deliver(message)
        world.messages.clear()
    world.broker_is_gone = False
    if on_failure == "tell":  # a failure is the agent's to look at: see README.md
        assert world.outside.times == {"t": 2, "after": 1}
        assert (world.fresh(four)["status"], world.fresh(run)["status"]) == ("succeeded", "running")
        return
    held = only_the_failure_holds(world, run, two)
    assert (world.fresh(four)["status"], world.fresh(four)["attempts"]) == ("ready", 0)
    before = len(world.delivered)
    for _ in range(5):  # and nothing looks at the run again and again
        world.advance(3600)
        world.catch_up()
    assert {task for task, _ in world.delivered[before:]} <= {queue.LEARN}
    world.answer(held)
    world.catch_up()
    assert world.outside.times == {"t": 2, "after": 1}
    assert world.fresh(four)["status"] == "succeeded"


def only_the_failure_holds(world: World, run: Any, step: Any) -> Any:
    """Return the one interrupt of the run, which says what failed and why."""
    (held,) = world.interrupts(run)
    assert (held["reason"], held["step"]) == ("effect_failed", step["id"])
    assert "422" in held["evidence"]["error"]
    assert world.fresh(run)["suspension"] == "partially_complete"
    return held
