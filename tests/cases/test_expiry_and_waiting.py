"""Cases of the kind expiry-and-waiting: silence is no answer, and one clock says when it is over."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.core.management.base import CommandError
from django.utils import timezone

from tests.cases.world import BY_AGENT, World, as_superuser, browser_of, document, page_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
YEAR = 366 * 86_400


def asks(**more: Any) -> dict[str, Any]:
    return {"name": "asks", "trigger": "action", "tools": ["*"], "then": "approve", **more}


def test_silence_is_no_yes(world: World) -> None:
    """rf-exp-01 (sipyourdrink-ltd/bernstein#5051; openclaw/openclaw#89938; juspay/clairvoyance#769)."""
    timed = asks(tools=["deploy"], expires_in=600)
    alone = asks(name="alone", tools=["alone"], approvers=["ops"])
    tools = [world.tool(name) for name in ("deploy", "for.ever", "alone")]
    world.given(*tools, rules=[timed, alone], groups={"ops": ["req"]})
    runs = {tool["name"]: world.run() for tool in tools}
    steps = {name: world.propose(run, name, {"ref": "aaa"}) for name, run in runs.items()}
    refused = world.propose(world.run(), "deploy", {"ref": "bbb"})
    world.decide(refused, "reject", reason="not today")
    world.advance(601)
    world.catch_up()
    gate = world.gate(steps["deploy"])
    assert (gate["state"], gate["decisions"]) == ("expired", [])
    step = world.fresh(steps["deploy"])
    assert (step["status"], step["authorization"]) == ("rejected", None)
    assert step["reason"] == "nobody decided in time"
    assert "gate.expired" in world.kinds(runs["deploy"])
    assert "gate.decided" not in world.kinds(runs["deploy"])
    by_person = world.fresh(refused)
    assert (by_person["status"], by_person["reason"]) == ("rejected", "not today")
    assert {"gate.decided", "gate.expired"} & set(world.kinds({"id": refused["run"]})) == {
        "gate.decided"
    }
    # Without a time, and where nobody may decide it, it waits for ever.
    world.advance(YEAR)
    world.catch_up()
    for name in ("for.ever", "alone"):
        assert world.gate(steps[name])["state"] == "pending"
        assert world.fresh(steps[name])["authorization"] is None
    assert world.gate(steps["alone"])["undecidable"]
    assert world.outside.server.asked == []


def test_no_time_that_is_none_keeps_a_question_open(world: World) -> None:
    """rf-exp-02 (hummbl-io/hummbl-governance#326).

    The expiry check caught the fault of reading it, and went on.
    """
    world.given(world.tool("deploy"))
    run = world.run()
    path = f"/runs/{run['id']}/steps"
    call = {"tool": "deploy", "arguments": {"ref": "a"}}
    times = ("2026-13-40T99:00", "2026-06-01T10:00:00", "tomorrow", 1e300, None)
    for moment in (*times, "9999-12-31T23:59:59Z"):
        reply = world.refused("ops", "POST", path, {**call, "expires_at": moment}, status=422)
        assert reply.pointers == ["/expires_at"]  # agents say nothing of when it expires
    for moment in times:
        context = [{"name": "balance", "fresh_until": moment}]
        reply = world.refused("ops", "POST", path, {**call, "context": context}, status=422)
        assert reply.pointers == ["/context/0/fresh_until"]
    asked = {"reason": "agent_requested", "question": "May I?"}
    for seconds in (-1, 0, "60", 1e300, None, True):
        body = {**asked, "expires_in": seconds}
        reply = world.refused("ops", "POST", f"/runs/{run['id']}/interrupts", body, status=422)
        assert reply.pointers == ["/expires_in"]
    for seconds in (0, -1, YEAR + 1, 60.5, "60", None):
        rules = [asks(expires_in=seconds)]
        tenant = document(
            "acme", world.port, [world.tool("deploy")], rules, groups={}, may_decide={}
        )
        with pytest.raises(CommandError, match="acme: policy/rules/0/expires_in: "):
            world.apply(tenant)
    step = world.propose(run, **call)
    # What stands in the database is no text that is read again.
    with as_superuser() as owner, pytest.raises(psycopg.errors.DatetimeFieldOverflow):
        owner.execute("UPDATE approvals_gate SET expires_at = '2026-13-40T99:00'")
    assert world.gate(step)["state"] == "pending"


def test_context_that_went_stale_while_people_were_asked_interrupts_and_runs_nothing(
    world: World,
) -> None:
    """rf-exp-02, of what a call needs to know: what was read too long ago keeps nothing open."""
    needs = [{"name": "balance", "longest_age": 300}]
    world.given(world.tool("deploy", context=needs), rules=[asks(expires_in=86_400)])
    known = [{"name": "balance", "fresh_until": "9999-12-31T23:59:59Z"}]  # the tool's age counts
    run = world.run()
    step = world.propose(run, "deploy", {"ref": "a"}, context=known)
    gate = world.gate(step)
    world.advance(301)
    path, body = f"/gates/{gate['id']}/decisions", world.decision(gate)
    late = world.send("appr1", "POST", path, body)
    assert (late.status, late.code) == (409, "already-decided")
    assert world.gate(step)["state"] == "superseded"
    held = world.open_of(world.fresh(step))
    assert (held["reason"], world.fresh(step)["authorization"]) == ("context_missing", None)
    world.catch_up()
    assert world.outside.server.asked == []
    # What a person says is known is asked about anew; stale before it starts, it runs no more.
    world.answer(held, value={"balance": "40.00 at noon"})
    again = world.fresh(step)
    assert (again["status"], again["gate"] != step["gate"]) == ("waiting", True)
    assert world.decide(again)["state"] == "approved"
    world.advance(301)
    world.catch_up()
    assert world.outside.server.asked == []
    assert world.open_of(world.fresh(step))["reason"] == "context_missing"


def test_waiting_for_an_answer_takes_nothing_of_its_time(world: World) -> None:
    """rf-exp-04 (denoland/clawpatrol#676)."""
    world.given(world.tool("deploy", executor=BY_AGENT), rules=[asks(expires_in=60)])
    step = world.propose(world.run(), "deploy", {"ref": "a"})
    first = world.gate(step, "ops")
    world.advance(58)
    for path in (f"/gates/{step['gate']}", f"/steps/{step['id']}"):
        reply = world.send("ops", "GET", f"{path}?wait=60")
        assert reply.status == 200
        assert {"X-Abeyance-Wait", "X-Abeyance-Version"} <= set(reply.headers)  # it is held, then
    gate = world.gate(step, "ops")
    assert (gate["state"], gate["settled_at"]) == ("pending", None)
    assert gate["expires_at"] == first["expires_at"]
    assert world.decide(step)["state"] == "approved"
    assert world.claim(step)["fence"] == 1
    # One whose time is over says so, with when it ended, and nothing is guessed from a text.
    late = world.propose(world.run(), "deploy", {"ref": "b"})
    world.advance(61)
    world.catch_up()
    gate = world.gate(late, "ops")
    assert gate["state"] == "expired"
    assert gate["settled_at"] >= gate["expires_at"]


@pytest.mark.parametrize("hours", [-5, 5])
def test_the_clock_of_a_machine_opens_and_closes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """rf-exp-05 (margince/margince#228).

    A machine whose clock trails could still decide what had been withdrawn.
    """
    world.given(world.tool("rate.set"), rules=[asks(expires_in=600)])
    skew = timedelta(hours=hours)
    real, seconds = timezone.now, time.time
    monkeypatch.setattr(timezone, "now", lambda: real() + skew)
    monkeypatch.setattr(time, "time", lambda: seconds() + skew.total_seconds())
    runs = [world.run() for _ in range(3)]
    steps = [world.propose(run, "rate.set", {"v": "1.1"}) for run in runs]
    gates = [world.gate(step) for step in steps]
    left = datetime.fromisoformat(gates[0]["expires_at"]) - datetime.fromisoformat(
        gates[0]["opened_at"]
    )
    assert left == timedelta(seconds=600)
    value = {"guidance": "not this", "withdraw": [steps[0]["id"]]}
    world.answer(world.stop(runs[0]), "revise", value=value)
    path = f"/gates/{gates[0]['id']}/decisions"
    reply = world.refused("appr1", "POST", path, world.decision(gates[0]), status=409)
    assert reply.code == "already-decided"
    assert world.gate(steps[0])["state"] == "withdrawn"
    assert world.decide(steps[1])["state"] == "approved"
    world.advance(601)
    reply = world.send(
        "appr1", "POST", f"/gates/{gates[2]['id']}/decisions", world.decision(gates[2])
    )
    assert (reply.status, reply.code) == (410, "gate-expired")
    assert world.gate(steps[2])["decisions"] == []
    world.catch_up()
    assert world.outside.times == {"rate.set": 1}


def test_a_page_that_was_left_open_says_that_nothing_was_done(world: World) -> None:
    """rf-exp-07 (mezmo/aura#303; kovyrin/agent-secret#39)."""
    world.given(world.tool("deploy"), rules=[asks(expires_in=60)])
    run = world.run()
    step = world.propose(run, "deploy", {"ref": "a"})
    gate = world.gate(step)
    browser, path = browser_of(world, "appr1"), f"/decisions/{gate['id']}"
    assert f'action="{path}/approve"' in browser.get(path).content.decode()
    world.advance(61)
    for swept in (False, True):  # whether or not anybody has looked since
        if swept:
            world.catch_up()
            assert world.propose(run, "deploy", {"ref": "other"})["status"] == "waiting"
        page = browser.get(path).content.decode()
        assert "Expired, nothing was sent" in page
        assert f'action="{path}/approve"' not in page
        late = browser.post(f"{path}/approve", {"digest": gate["what"]["digest"]})
        assert late.status_code == 410
        text = late.content.decode()
        assert "Expired, nothing was sent" in text
        assert "Traceback" not in text
        assert f'action="{path}/approve"' not in text
    assert gate["id"] not in page_of(world, "appr1", "/inbox")
    assert world.gate(step)["decisions"] == []
    assert world.outside.server.asked == []
    assert datetime.fromisoformat(gate["expires_at"]).tzinfo == UTC
