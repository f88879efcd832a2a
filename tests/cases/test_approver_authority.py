"""Cases of the kind approver-authority: who decides is who is signed in, and may."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from tenants.models import User
from tests.cases.world import BY_AGENT, World, browser_of, page_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
ASK = {"name": "ask", "trigger": "action", "tools": ["*"], "then": "approve"}


def test_nobody_approves_what_is_done_for_them(world: World) -> None:
    """rf-auth-01 (kRamu81/MedTrack_Application#1393; LanternOps/breeze#1662).

    The guard of another project fired above an amount only, and not for admins.
    """
    big = {**ASK, "name": "big", "condition": "decimal(arguments.total) >= decimal('50000')"}
    po = world.tool("po.create")
    world.given(po, rules=[ASK, {**big, "quorum": 2}], may_decide={"adm": ["*"]})
    User.objects.filter(username__in=["adm", "appr1"]).update(is_superuser=True, is_staff=True)
    mine = {who: world.run(requested_by=who) for who in ("appr1", "adm")}
    for who, run in mine.items():
        for total in ("0.01", "50000"):
            step = world.propose(run, "po.create", {"total": total})
            gate = world.gate(step, who)
            assert (gate["may_decide"], world.inbox(who)) == (False, [])
            path = f"/gates/{gate['id']}/decisions"
            for verdict in ("approve", "reject"):
                body = world.decision(gate, verdict)
                assert world.refused(who, "POST", path, body, status=403).code == "own-request"
            several = {"decisions": [{"gate": gate["id"], "digest": gate["what"]["digest"]}]}
            (told,) = world.post(who, "/gates/decisions", several)["results"]
            assert told["problem"]["code"] == "own-request"
            form = browser_of(world, who).post(
                f"/decisions/{gate['id']}/approve", {"digest": gate["what"]["digest"]}
            )
            assert form.status_code == 403
            world.decide(step, "reject", who="appr2")
        # What is theirs they may stop.
        assert world.stop(run, who)["status"] == "open"
    world.catch_up()
    assert world.outside.server.asked == []
    # No policy allows it either: there is nothing to say it with.
    rule = {**ASK, "self_approval": True}
    reply = world.send("adm", "POST", "/policies/simulate", {"policy": {"rules": [rule]}})
    assert (reply.status, reply.pointers) == (422, ["/policy/rules/0/self_approval"])


def test_nobody_approves_what_is_done_for_them_by_standing_in_for_another(world: World) -> None:
    """rf-auth-01, of a requester who has a substitute, or is one."""
    world.given(world.tool("po.create"), rules=[{**ASK, "quorum": 2}], may_decide={"req": []})
    ends_at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    for person, substitute in (("appr1", "req"), ("appr2", "opr")):
        body = {"substitute": substitute, "ends_at": ends_at}
        world.post(person, "/substitutions", body)
    total = {"total": "0.01"}

    def refused(step: Any, who: str) -> None:
        gate = world.gate(step, who)
        assert (gate["may_decide"], gate["id"] in world.inbox(who)) == (False, False)
        path = f"/gates/{gate['id']}/decisions"
        for verdict in ("approve", "reject"):
            body = world.decision(gate, verdict)
            assert world.refused(who, "POST", path, body, status=403).code == "own-request"

    # The substitute asked for it: neither by their own authority, nor by the other's.
    own = world.propose(world.run(requested_by="req"), "po.create", total)
    refused(own, "req")
    # The person asked for it: whoever stands in for them decides by an authority that has none here.
    theirs = world.propose(world.run(requested_by="appr2"), "po.create", total)
    refused(theirs, "appr2")
    refused(theirs, "opr")
    # Of what is for others the substitute's approval is the person's, once.
    free = world.propose(world.run(), "po.create", total)
    decided = world.decide(free, who="opr")
    assert (decided["state"], decided["decisions"][0]["acting_for"]) == ("pending", "appr2")
    assert world.decide(free, who="appr2")["quorum"] == {"needed": 2, "given": 1}
    world.catch_up()
    assert world.outside.server.asked == []


def test_a_decision_is_of_who_is_signed_in_whatever_its_body_says(world: World) -> None:
    """rf-auth-02 (sjohnston1972/parity-dynatrace#7)."""
    world.given(world.tool("net.push"))
    step = world.propose(world.run(), "net.push", {"cli": "reload"})
    gate = world.gate(step)
    path = f"/gates/{gate['id']}/decisions"
    for name in ("approved_by", "by", "user", "actor", "user_id", "on_behalf_of"):
        signed = {**world.decision(gate), name: "appr1"}
        assert world.refused("viewer", "POST", path, signed, status=403).code == "forbidden"
        other = {**signed, name: "somebody-else"}
        reply = world.refused("appr1", "POST", path, other, status=422)
        assert reply.pointers == [f"/{name}"]
    sent = {"X_User": "appr1", "X_Remote_User": "appr1", "Remote_User": "appr1", "X_Actor": "appr1"}
    reply = world.refused("req", "POST", path, world.decision(gate), status=403, **sent)
    assert reply.code == "not-an-approver"
    decided = world.post("appr1", path, world.decision(gate), X_Remote_User="appr2")
    assert [one["by"] for one in decided["decisions"]] == ["appr1"]
    (entry,) = [one for one in world.journal(step_run(step)) if one["kind"] == "gate.decided"]
    assert entry["actor"] == {
        "kind": "user",
        "id": str(User.objects.get(username="appr1").pk),
    }


def step_run(step: Any) -> Any:
    return {"id": step["run"]}


def test_an_agent_finds_nothing_with_which_to_approve_itself(world: World) -> None:
    """rf-auth-03 (Osmantic/ODS#3987).

    A secret meant for the approver stood in a log that the agent could read.
    """
    world.given(world.tool("db.drop", executor=BY_AGENT), world.tool("t"))
    run = world.run()
    step = world.propose(run, "db.drop", {"table": "t"})
    gate = world.gate(step)
    world.stop(run)
    world.post("appr1", f"/gates/{gate['id']}/questions", {"text": "Which table?"})
    read = ["/runs", "/gates", "/tools", "/interrupts", f"/runs/{run['id']}"]
    read += [f"/runs/{run['id']}/{more}" for more in ("journal", "steps", "checkpoints")]
    read += [f"/gates/{gate['id']}", f"/steps/{step['id']}", f"/interrupts/{step['interrupt']}"]
    told = "".join(str(world.get("ops", path)) for path in read)
    told += world.send("ops", "GET", f"/runs/{run['id']}/events").headers.get("Content-Type", "")
    assert not [secret for secret in world.secrets.values() if secret in told]
    assert not [word for word in ("appr1", "appr2", "csrf", "aby_") if word in told]

    for path in (
        f"/gates/{gate['id']}/decisions",
        f"/gates/{gate['id']}/questions",
        f"/gates/{gate['id']}/assignment",
        "/gates/decisions",
        f"/interrupts/{step['interrupt']}/response",
        "/freezes",
    ):
        for body in (world.decision(gate), {"token": gate["id"]}, {}):
            assert world.refused("ops", "POST", path, body, status=403).code == "people-only"
    # Nor do pages take an agent's key, and there is no link that decides by being opened.
    key = {"Authorization": f"Bearer {world.secrets['ops']}"}
    for page in (f"/decisions/{gate['id']}/approve", "/approve-link", "/inbox"):
        for answer in (Client().get(page, headers=key), Client().post(page, {}, headers=key)):
            assert answer.status_code in (303, 403, 404, 405), page
            assert not answer.headers.get("Location", "/sign-in").startswith("/decisions")
    assert world.gate(step)["decisions"] == []


def test_a_run_is_nobodys_by_its_id(world: World) -> None:
    """rf-auth-06 (agno-agi/agno#8885; aegra/aegra#336).

    The fresh-run path passed the caller's identity, the resume path did not.
    """
    world.given(world.tool("t", executor=BY_AGENT))
    run = world.run()
    step = world.propose(run, "t")
    world.decide(step)
    asked = world.post("ops", f"/runs/{run['id']}/interrupts", {"reason": "agent_requested"})
    world.answer(asked)
    claimed = world.claim(step)
    calls: list[tuple[str, str, Any]] = [
        ("POST", "/runs/{}/claim", {}),
        ("POST", "/runs/{}/steps", {"tool": "t", "arguments": {}}),
        (
            "POST",
            "/runs/{}/checkpoints",
            {"agent_state": {"format": "f", "version": "1", "data": []}},
        ),
        ("POST", "/runs/{}/usage", {"tokens": 1}),
        ("POST", "/runs/{}/acknowledge", {"guidance": []}),
        ("POST", "/runs/{}/complete", {"output": None}),
        ("POST", "/runs/{}/fail", {"error": "x"}),
        ("POST", "/runs/{}/interrupts", {"reason": "agent_requested"}),
        ("GET", "/runs/{}", None),
        ("GET", "/runs/{}/journal", None),
        ("GET", "/runs/{}/steps", None),
        ("POST", "/steps/{}/claim", {}),
        ("GET", "/steps/{}", None),
        ("POST", "/attempts/{}/receipt", {"fence": 1, "outcome": "succeeded"}),
        ("POST", "/attempts/{}/heartbeat", {"fence": 1}),
    ]
    ids = {"runs": run["id"], "steps": step["id"], "attempts": claimed["attempt"]}
    for method, path, body in calls:
        found = path.format(ids[path.split("/")[1]])
        reply = world.refused("ops@globex", method, found, body, status=404)
        absent = world.refused("ops@globex", method, path.format(uuid4()), body, status=404)
        assert reply.body == absent.body
        assert world.refused("other", method, found, body, status=403).code == "not-your-run"
    assert world.get("other", "/runs")["results"] == []
    assert world.get("ops@globex", "/runs")["results"] == []
    assert world.receipt(claimed)["status"] == "succeeded"


def test_each_verb_of_a_run_is_held_to_who_may(world: World) -> None:
    """rf-auth-07 (AINative-Studio/openclaw-backend#153; Molecule-AI/molecule-core#265)."""
    world.given(world.tool("t", effect="reversible"), world.tool("u"))
    run = world.run()
    step = world.propose(run, "t")
    world.decide(step)
    world.work()
    interrupt = world.stop(run)
    answer = {"checkpoint": interrupt["checkpoint"], "resolution": "resume"}
    verbs: list[tuple[str, str, Any]] = [
        ("POST", f"/runs/{run['id']}/interrupts", {"reason": "operator_stop"}),
        ("POST", f"/runs/{run['id']}/cancel", {}),
        ("POST", f"/runs/{run['id']}/fork", {"checkpoint": run["checkpoint"]}),
        ("POST", f"/steps/{step['id']}/compensation", {}),
        ("POST", f"/interrupts/{interrupt['id']}/response", answer),
        ("POST", "/freezes", {"scope": "tenant", "note": ""}),
    ]
    for method, path, body in verbs:
        assert world.refused("viewer", method, path, body, status=403).code == "forbidden"
        if path != "/freezes":
            assert world.refused("appr1@globex", method, path, body, status=404).code == "not-found"
        # An agent neither stops itself as its operator nor answers its operator's stop.
        reply = world.refused("ops", method, path, body, status=403)
        assert reply.code in ("people-only", "forbidden")
    for who in ("viewer", "appr1", "adm", "ops"):
        world.refused(who, "DELETE", f"/runs/{run['id']}", status=405)
    for path, form in (
        (f"/runs/{run['id']}/stop", {"reason": "x"}),
        (f"/runs/{run['id']}/cancel", {}),
        (f"/steps/{step['id']}/undo", {}),
        (f"/interrupts/{interrupt['id']}/answer", {**answer, "answer": "resume"}),
    ):
        assert browser_of(world, "viewer").post(path, form).status_code in (403, 422), path
        stranger = browser_of(world, "opr-globex", "globex")
        assert stranger.post(path, form).status_code == 404, path
    assert world.fresh(run)["open_interrupts"] == [interrupt["id"]]
    assert world.outside.undone == []
    assert world.answer(interrupt)["status"] == "resolved"


def test_a_label_lowers_no_risk_and_a_freeze_holds_what_was_approved(world: World) -> None:
    """rf-auth-08 (https://infraveil.com/ai-agent-deleted-production-database).

    The agent says staging; the volume is production's, and its backups lie on it.
    """
    production = "arguments.id.startsWith('vol-prod') ? 1.0 : 0.1"
    world.given(
        world.tool(
            "volume.delete",
            arguments={"type": "object", "properties": {"id": {"type": "string", "maxLength": 20}}},
            effect="irreversible",
            risk="high",
            executor=BY_AGENT,
            consequence="Volume {id} and the backups on it are gone for good.",
            failure_modes=["It is shared with production"],
            confirmation="delete {id}",
        ),
        world.tool("t"),
        rules=[
            {"name": "all", "trigger": "action", "tools": ["*"], "then": "allow"},
            {"name": "risky", "trigger": "risk", "at_least": 0.7, "then": "approve"},
        ],
        scorers=[{"name": "where", "tools": ["volume.*"], "score": production}],
    )
    run = world.run(labels={"env": "staging"}, workflow="staging clean-up")
    said = {"risk_score": 0.0, "confidence": 1.0, "reasoning": "staging clean-up"}
    step = world.propose(run, "volume.delete", {"id": "vol-prod-1"}, **said)
    gate = world.gate(step)
    assert (step["status"], gate["triggers"][0]["rule"]) == ("waiting", "risky")
    assert (gate["ceremony"], gate["required_confirmation"]) == ("typed", "delete vol-prod-1")
    page = page_of(world, "appr1", f"/decisions/{gate['id']}")
    assert "the backups on it are gone for good" in page
    assert "It is shared with production" in page

    world.decide(step)
    freeze = world.post("adm", "/freezes", {"scope": "tool", "name": "volume.delete", "note": "x"})
    path = f"/steps/{step['id']}/claim"
    assert world.refused("ops", "POST", path, {}, status=409).code == "not-authorized"
    for who in ("appr1", "viewer", "ops"):
        world.refused(who, "DELETE", f"/freezes/{freeze['id']}", status=403)
    # Decisions are taken in a freeze; nothing starts by them.
    second = world.propose(world.run(), "volume.delete", {"id": "vol-prod-2"})
    world.decide(second)
    path = f"/steps/{second['id']}/claim"
    assert world.refused("ops", "POST", path, {}, status=409).code == "not-authorized"
    world.send("adm", "DELETE", f"/freezes/{freeze['id']}")
    assert world.claim(second)["arguments"] == {"id": "vol-prod-2"}
