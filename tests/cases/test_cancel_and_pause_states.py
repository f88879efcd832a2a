"""Cases of the kind cancel-and-pause-states: what a state says is what is true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tests.cases.world import BY_AGENT, Pair, World, auto, deliver, in_background, page_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


def test_a_run_is_not_called_suspended_while_a_step_is_in_flight(world: World) -> None:
    """rf-can-01 (PrefectHQ/prefect#20388; PrefectHQ/prefect#17822).

    A thousand mails go out in two calls of one group; it is stopped in the middle of the first.
    """
    world.given(world.tool("batch.mail", executor=BY_AGENT))
    run = world.run()
    group = [{"tool": "batch.mail", "arguments": {"n": n}} for n in (400, 600)]
    first, second = world.post("ops", f"/runs/{run['id']}/steps", {"steps": group})["steps"]
    world.decide(first)
    world.decide(second)
    claimed = world.claim(first)
    stop = world.stop(run, "appr1", note="operator stop")
    assert world.fresh(run)["suspension"] == "still_cancelling"
    assert world.fresh(run)["suspension_counts"]["in_flight"] == 1

    more = {"tool": "batch.mail", "arguments": {"n": 5}}
    for path, body in (
        (f"/runs/{run['id']}/steps", more),
        (f"/steps/{second['id']}/claim", {}),
        (f"/runs/{run['id']}/complete", {"output": None}),
    ):
        assert world.refused("ops", "POST", path, body, status=409).code == "run-suspended"

    world.receipt(claimed, result={"done": 400, "of": 1000})
    assert world.fresh(run)["suspension"] == "partially_complete"
    assert world.fresh(first)["result"] == {"done": 400, "of": 1000}
    assert world.fresh(second)["attempts"] == 0
    value = {"guidance": "leave the rest", "withdraw": [second["id"]]}
    world.answer(stop, "revise", value=value)
    world.stop(run)
    assert world.fresh(run)["suspension"] == "safely_suspended"
    assert world.fresh(run)["suspension_counts"] == {"unknown": 0, "in_flight": 0, "partial": 0}


@dataclass
class Everything:
    """Runs that wait for an approval (r1, r2), an outcome, a try and a parent; and one at work."""

    runs: dict[str, Any]
    steps: dict[str, Any]


@pytest.fixture
def everything(world: World) -> Iterator[Everything]:
    names = ("asked", "lost", "busy", "slow")
    world.given(*(world.tool(name) for name in names), rules=[auto("lost", "busy", "slow")])
    world.outside.loses_the_request("lost")
    world.outside.is_busy("busy")
    world.outside.takes_its_time("slow")
    runs = {name: world.run() for name in ("r1", "r2", "lost", "busy", "slow")}
    runs["child"] = world.run(parent=runs["lost"]["id"])
    steps = {name: world.propose(runs[name], "asked", {"of": name}) for name in ("r1", "r2")}
    steps |= {name: world.propose(runs[name], name) for name in ("lost", "busy")}
    world.work()
    steps["slow"] = world.propose(runs["slow"], "slow")
    (message,) = [one for one in world.messages if one[0] == "interrupts.work_run"]
    world.messages.clear()
    with in_background(partial(deliver, message)):
        try:
            assert world.outside.arrived.wait(20)
            yield Everything(runs, steps)
        finally:
            world.outside.let_go.set()


def test_a_freeze_of_everything_reaches_what_waits(world: World, everything: Everything) -> None:
    """rf-can-03 (styfle/cancel-workflow-action#75)."""
    frozen = world.post("opr", "/freezes", {"scope": "tenant", "note": "stop all"})
    assert len(frozen["in_flight"]) == 1
    step = everything.steps["r1"]
    world.decide(step)  # decisions are taken, and nothing starts
    before = len(world.outside.keys_sent("busy"))
    for _ in range(3):
        world.advance(40)
        world.catch_up()
    assert world.outside.keys_sent("asked") == []
    assert len(world.outside.keys_sent("busy")) == before
    assert len(world.outside.keys_sent("lost")) == 1
    assert world.fresh(step)["status"] == "ready"


def test_a_cancel_of_everything_that_is_listed_reaches_what_waits(
    world: World, everything: Everything
) -> None:
    """rf-can-03, run by run: what waits leaves the inbox and can be approved no more."""
    runs, steps = everything.runs, everything.steps
    listed = world.get("opr", "/runs")["results"]
    assert {run["id"] for run in listed} == {run["id"] for run in runs.values()}
    gates = [world.gate(steps[name]) for name in ("r1", "r2")]
    for run in listed:
        if world.fresh(run)["ended_at"] is None:
            world.post("opr", f"/runs/{run['id']}/cancel", {})
    assert world.inbox("appr1") == world.inbox("appr2") == []
    for gate in gates:
        path = f"/gates/{gate['id']}/decisions"
        reply = world.refused("appr2", "POST", path, world.decision(gate), status=409)
        assert reply.code == "already-decided"
    waits = {"lost": "cancelling", "slow": "cancelling"}
    status = {name: world.fresh(run)["status"] for name, run in runs.items()}
    assert status == {**dict.fromkeys(runs, "cancelled"), **waits}
    world.outside.let_go.set()
    for _ in range(2):
        world.advance(40)
        world.catch_up()
    assert {world.fresh(run)["status"] for run in runs.values()} == {"cancelled"}
    assert {world.fresh(steps[name])["status"] for name in ("lost", "busy")} == {"cancelled"}
    assert world.outside.times == {"slow": 1}


def test_no_number_of_resumes_answers_the_next_pause(world: World, pair: Pair) -> None:
    """rf-can-04 (langchain-ai/langgraph-studio#218; PrefectHQ/prefect#9269), fifty times."""
    world.given(world.tool("a.do"), world.tool("b.do"))
    run = world.run()
    one = world.propose(run, "a.do", {"x": 1})
    first = world.interrupts(run)[0]
    gate = world.gate(one)
    approval = world.decision(gate)
    world.post("appr1", f"/gates/{gate['id']}/decisions", approval)
    world.work()
    assert world.outside.times == {"a.do": 1}
    two = world.propose(run, "b.do", {"x": 2})
    (second,) = world.interrupts(run)
    resume = {"resolution": "resume"}
    old = {"checkpoint": first["checkpoint"], **resume}
    new = {"checkpoint": second["checkpoint"], **resume}
    mixed = {"checkpoint": first["checkpoint"], **resume}

    def respond(interrupt: str, body: dict[str, str]) -> tuple[int, str]:
        reply = world.send("opr", "POST", f"/interrupts/{interrupt}/response", body)
        return reply.status, reply.code

    for _ in range(17):
        assert pair.at_once(
            partial(respond, first["id"], old), partial(respond, second["id"], new)
        ) == [(409, "already-resolved"), (409, "decide-the-gate")]
        assert respond(second["id"], mixed) == (409, "stale-checkpoint")
        replay = world.send("appr1", "POST", f"/gates/{gate['id']}/decisions", approval)
        assert (replay.status, replay.headers["Idempotent-Replayed"]) == (200, "true")
    world.catch_up()
    assert world.fresh(run)["open_interrupts"] == [second["id"]]
    assert (world.fresh(run)["status"], world.fresh(two)["status"]) == ("suspended", "waiting")
    assert world.outside.times == {"a.do": 1}


def test_a_run_whose_gate_expired_says_what_is_true_of_it(world: World) -> None:
    """rf-can-05 (PrefectHQ/prefect#11414; omnigent-ai/omnigent#5144).

    It was shown as paused although nothing could have it go on.
    """
    rule = {"name": "asks", "trigger": "action", "tools": ["*"], "then": "approve"}
    world.given(world.tool("a.do"), rules=[{**rule, "expires_in": 60, "on_expiry": "reject"}])
    run = world.run()
    step = world.propose(run, "a.do", {"x": 1})
    (asked,) = world.interrupts(run)
    page = page_of(world, "appr1", "/inbox")
    assert "1 decision." in page
    assert world.inbox("appr1") == [step["gate"]]
    world.advance(61)
    world.catch_up()
    step, run = world.fresh(step), world.fresh(run)
    assert (run["status"], run["suspension"], run["open_interrupts"]) == ("running", None, [])
    assert (step["status"], step["reason"]) == ("rejected", "nobody decided in time")
    body = {"checkpoint": asked["checkpoint"], "resolution": "resume"}
    reply = world.refused("opr", "POST", f"/interrupts/{asked['id']}/response", body, status=409)
    assert reply.code == "already-resolved"
    assert world.inbox("appr1") == []
    assert "Nothing waits for you" in page_of(world, "appr1", "/inbox")
    again = world.propose(run, "a.do", {"x": 1})  # nobody refused it: it may be asked again
    assert (again["status"], world.inbox("appr1")) == ("waiting", [again["gate"]])


def test_what_an_inbox_counts_is_what_it_lists(world: World) -> None:
    """rf-can-05, its second expectation: no badge for what cannot be opened."""
    world.given(world.tool("a.do"))
    runs = [world.run() for _ in range(3)]
    steps = [world.propose(run, "a.do", {"n": 1}) for run in runs]
    world.decide(steps[0], who="appr2")
    world.post("opr", f"/runs/{runs[1]['id']}/cancel", {})
    for who in ("appr1", "appr2"):
        page = page_of(world, who, "/inbox")
        (gate,) = world.inbox(who)
        assert gate == steps[2]["gate"]
        assert "1 decision." in page
        assert page.count(f'href="/decisions/{gate}"') >= 1
        assert all(step["gate"] not in page for step in steps[:2])
        page_of(world, who, f"/decisions/{gate}")
