"""Cases of the kind ownership-and-leases: who drives a run, and who only thinks so."""

from __future__ import annotations

import pytest

from tests.cases.world import BY_AGENT, World, auto, browser_of, rows

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


@pytest.mark.parametrize("late", ["succeeded", "failed"])
def test_who_was_silent_gets_nothing_back_and_is_believed_as_a_witness(
    world: World, late: str
) -> None:
    """rf-lease-01 (brendanlong/lion-reader#917).

    A worker stalls, another takes the run, and the first one wakes up again.
    """
    world.given(world.tool("t", executor=BY_AGENT), rules=[auto("t")])
    run = world.run(idle_after=300)
    path = f"/runs/{run['id']}"
    w1 = world.post("ops", f"{path}/claim")["session"]
    step = world.propose(run, "t", session=w1)
    old = world.claim(step)
    world.advance(400)
    world.catch_up()
    reasons = {one["reason"] for one in world.interrupts(run)}
    assert reasons == {"outcome_unknown"}
    w2 = world.post("ops", f"{path}/claim")["session"]
    world.recover(step, "not_performed")
    assert world.fresh(run)["status"] == "running"

    beat = {"tokens": 1, "session": w1}
    assert world.refused("ops", "POST", f"{path}/usage", beat, status=409).code == "stale-session"
    done = {"output": None, "session": w1}
    assert world.refused("ops", "POST", f"{path}/complete", done, status=409).code == (
        "stale-session"
    )
    again = {"session": w1}
    assert world.refused("ops", "POST", f"/steps/{step['id']}/claim", again, status=409).code == (
        "stale-session"
    )
    new = world.post("ops", f"/steps/{step['id']}/claim", {"session": w2})
    fence = {"fence": old["fence"]}
    assert world.refused(
        "ops", "POST", f"/attempts/{old['attempt']}/heartbeat", fence, status=409
    ).code == ("stale-claim")

    world.receipt(new, external_id="N-1", result="new")
    world.receipt(old, late, external_id="O-1", result="old")
    step = world.fresh(step)
    assert (step["status"], step["external_id"], step["result"]) == ("succeeded", "N-1", "new")
    assert {"N-1", "O-1"} <= {one["external_id"] for one in step["receipts"]}
    assert "receipt.late" in world.kinds(run)
    assert world.fresh(run)["session"] == w2


def test_the_state_of_a_run_is_changed_by_its_verbs_alone(world: World) -> None:
    """rf-lease-03 (bytedance/deer-flow#4437).

    An administrator saves another state over an active run, whose agent then writes its own.
    """
    world.given(world.tool("t"), rules=[auto("t")])
    run = world.run()
    session = world.post("ops", f"/runs/{run['id']}/claim")["session"]
    adm = browser_of(world, "adm")
    url = f"/admin/interrupts/run/{run['id']}/change/"
    page = adm.get(url)
    assert page.status_code == 200
    assert b'name="status"' not in page.content
    before = rows()
    for path in (url, f"/admin/interrupts/run/{run['id']}/delete/", "/admin/interrupts/run/add/"):
        assert adm.post(path, {"status": "completed", "_save": "1"}).status_code == 403
    assert {name: row for name, row in rows().items() if row != before[name]} == {}

    state = {"agent_state": {"format": "f", "version": "1", "data": [1]}, "session": session}
    path = f"/runs/{run['id']}/checkpoints"
    version = world.fresh(run)["state_version"]
    first = world.post("ops", path, state, If_Match=f'"{version}"')
    assert world.refused("ops", "POST", path, state, status=412, If_Match=f'"{version}"').code == (
        "version-mismatch"
    )
    world.post("ops", f"/runs/{run['id']}/claim")
    assert world.refused("ops", "POST", path, state, status=409).code == "stale-session"
    assert world.fresh(run)["checkpoint"] == first["id"]
    (only,) = world.get("ops", path)["results"]
    assert only["sequence"] == 1
