"""Cases of the kind audit-trail: what happened is told, and who was refused what."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import DatabaseError, connection

from tenants.models import User
from tenants.scope import tenant_scope
from tests.cases.world import BY_AGENT, World, as_superuser, browser_of, rows
from tests.database import as_owner

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


@dataclass
class Refusals:
    """The lines that the log keeps of refusals; each is given out once."""

    caplog: pytest.LogCaptureFixture

    def lines(self) -> list[str]:
        found = [one.getMessage() for one in self.caplog.records if one.name == "tenants.refusals"]
        self.caplog.clear()
        return found


@pytest.fixture
def refusals(caplog: pytest.LogCaptureFixture) -> Iterator[Refusals]:
    with caplog.at_level(logging.WARNING, logger="tenants.refusals"):
        yield Refusals(caplog)


def test_who_was_refused_leaves_a_line(world: World, refusals: Refusals) -> None:
    """rf-aud-01 (lobu-ai/lobu#2861; tiana-code/fincore-engine#133).

    There was a record when all went well and none when it mattered: it was rolled back with what
    was refused. Here it is a line of the log, which nothing takes back, and no row.
    """
    world.given(world.tool("db.drop", executor=BY_AGENT), may_decide={"req": []})
    run = world.run()
    step = world.propose(run, "db.drop", {"table": "t-4711"}, key="drop")
    gate = world.gate(step)
    decisions, body = f"/gates/{gate['id']}/decisions", world.decision(gate)
    other = {**body, "digest": f"sha256:{'0' * 64}"}
    changed = {"tool": "db.drop", "arguments": {"table": "other-4711"}, "key": "drop"}
    req = User.objects.get(username="req").pk
    for who, by, path, sent, status, code in (
        ("viewer", "user:", decisions, body, 403, "forbidden"),
        ("req", f"user:{req} ", decisions, body, 403, "not-an-approver"),
        ("ops", "agent:", decisions, body, 403, "people-only"),
        ("ops@globex", "agent:", f"/runs/{run['id']}/claim", {}, 404, "not-found"),
        ("other", "agent:", f"/runs/{run['id']}/claim", {}, 403, "not-your-run"),
        ("appr1", "user:", decisions, other, 409, "digest-mismatch"),
        ("ops", "agent:", f"/runs/{run['id']}/steps", changed, 409, "step-key-reused"),
    ):
        world.refused(who, "POST", path, sent, status=status)
        (line,) = refusals.lines()
        assert line.startswith(f"refused {by}"), line
        assert line.endswith(f"POST '/api/v1{path}': {code}"), line
        assert "4711" not in line
    # Of several at once each, and on a page.
    pair = {"decisions": [{"gate": gate["id"], "digest": gate["what"]["digest"]}]}
    world.post("req", "/gates/decisions", pair)
    form = {"digest": gate["what"]["digest"]}
    browser_of(world, "req").post(f"/decisions/{gate['id']}/approve", form)
    assert [line.partition(": POST ")[2] for line in refusals.lines()] == [
        f"'/api/v1/gates/decisions' of {gate['id']}: not-an-approver",
        f"'/decisions/{gate['id']}/approve': not-an-approver",
    ]


def test_what_is_no_refusal_by_right_leaves_none(world: World, refusals: Refusals) -> None:
    """rf-aud-01, its second expectation: typing faults do not flood it, and a path makes no line."""
    world.given(world.tool("db.drop"))
    step = world.propose(world.run(), "db.drop", {"table": "t"})
    gate = world.gate(step)
    path, body = f"/gates/{gate['id']}/decisions", world.decision(gate)
    for who, sent in (("appr1", {**body, "verdict": "aprove"}), ("nobody", body), ("appr1", {})):
        assert world.send(who, "POST", path, sent).status in (401, 422)
    world.decide(step)
    world.decide(step)
    world.refused("appr2", "POST", path, body, status=409)  # too late
    assert refusals.lines() == []
    world.send("ops", "GET", f"/runs/{uuid4()}%0arefused user:1")
    (line,) = refusals.lines()
    assert "\n" not in line


def test_a_journal_tells_what_was_shown_decided_and_done(world: World) -> None:
    """rf-aud-03 (extra-org/extra#139; IBM/mcp-context-forge#5437)."""
    world.given(world.tool("a.do", executor=BY_AGENT, risk="medium"))
    run, left = world.run(), world.run()
    step = world.propose(run, "a.do", {"x": 1})
    world.decide(step)
    gate = world.gate(step)
    world.receipt(claimed := world.claim(step), external_id="X-1")
    failed = world.propose(run, "a.do", {"x": 2})
    world.decide(failed)
    world.receipt(world.claim(failed), "failed", error="no")
    never = world.propose(left, "a.do", {"x": 3})
    world.decide(never)
    world.post("opr", f"/runs/{left['id']}/cancel", {})

    entries = [one for one in world.journal(run) if one["data"].get("step") == step["id"]]
    order = ["step.proposed", "gate.opened", "gate.decided", "step.authorized", "attempt.started"]
    order += ["receipt.recorded", "step.settled"]
    assert [one["kind"] for one in entries if one["kind"] in order] == order
    by_kind: dict[str, Any] = {one["kind"]: one for one in entries}
    decided, authorized = (by_kind[kind]["data"] for kind in ("gate.decided", "step.authorized"))
    assert decided["digest"] == gate["what"]["digest"]
    assert authorized["digest"] == step["digest"] == claimed["digest"]
    assert decided["policy_version"] == authorized["policy_version"]
    actors = [by_kind[kind]["actor"]["kind"] for kind in ("gate.decided", "attempt.started")]
    assert actors == ["user", "agent"]
    # Approved and never run, run and failed, run and succeeded are told apart.
    ends = [world.fresh(one) for one in (step, failed, never)]
    assert [(one["status"], one["attempts"]) for one in ends] == [
        ("succeeded", 1),
        ("failed", 1),
        ("cancelled", 0),
    ]
    with as_superuser() as looking:  # who was shown what, whole, when
        shown = looking.execute(
            "SELECT u.username, v.digest, v.snapshot FROM approvals_view v"
            " JOIN tenants_user u ON u.id = v.user_id WHERE v.gate_id = %s",
            [gate["id"]],
        ).fetchall()
    assert [(who, digest) for who, digest, _ in shown] == [("appr1", gate["what"]["digest"])]
    assert shown[0][2]["what"]["arguments"] == {"x": 1}


def test_no_row_of_it_is_changed_by_anybody(world: World) -> None:
    """rf-aud-03, its last expectation: not over the API, not in the admin, not by the owner."""
    world.given(world.tool("a.do", executor=BY_AGENT))
    run = world.run()
    step = world.propose(run, "a.do", {"x": 1})
    world.decide(step)
    world.receipt(world.claim(step))
    before = rows()
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("journal", "events", "checkpoints/1"):
            assert world.send("adm", method, f"/runs/{run['id']}/{path}", {}).status in (
                404,
                405,
                422,
            )
    browser = browser_of(world, "adm")
    for table in ("approvals/decision", "interrupts/receipt", "approvals/gate", "interrupts/step"):
        listed = browser.get(f"/admin/{table}/")
        pk = listed.context["cl"].result_list[0].pk
        assert browser.post(f"/admin/{table}/{pk}/delete/", {"post": "yes"}).status_code == 403
        assert browser.post(f"/admin/{table}/{pk}/change/", {}).status_code == 403
        acted = {"action": "delete_selected", "_selected_action": [str(pk)], "post": "yes"}
        browser.post(f"/admin/{table}/", acted)
    changed = {name for name, row in rows().items() if row != before[name]}
    assert changed <= {"django_session", "tenants_user"}  # the sign-in
    for change in (
        "UPDATE tenants_journalentry SET text = '{}'",
        "DELETE FROM tenants_journalentry",
        "UPDATE interrupts_receipt SET outcome = 'failed'",
        "DELETE FROM interrupts_receipt",
    ):
        with as_owner() as owner, pytest.raises(psycopg.errors.RestrictViolation):
            owner.execute(change)
        with (
            tenant_scope(world.tenant),
            connection.cursor() as service,
            pytest.raises(DatabaseError, match="permission denied"),
        ):
            service.execute(change)


def test_what_is_read_out_is_the_very_text_and_no_sheet(world: World) -> None:
    """rf-aud-04 (TheMorpheus407/the-dmz#361; openMF/web-app#3706).

    Agents' text ran as formulas in the auditor's sheet. There is no sheet here: what is read out
    is JSON, and nothing of it is changed.
    """
    world.given(world.tool("mail.send"))
    run = world.run(goal="=1+1", workflow="@SUM(A1)")
    arguments = {
        "to": '=HYPERLINK("https://evil.example","ok")',
        "subject": "+1",
        "x": "@SUM(A1)",
        "y": "\t=1",
    }
    step = world.propose(run, "mail.send", arguments, reasoning="-2+3\r\n=cmd")
    world.decide(step, "reject", reason="=1+1")
    paths = ("journal", "steps")
    for path in (f"/runs/{run['id']}", *(f"/runs/{run['id']}/{more}" for more in paths), "/gates"):
        plain = world.send("adm", "GET", path)
        assert plain.headers["Content-Type"] == "application/json"
        for asked in ("?format=csv", "?format=xlsx", ""):
            reply = world.send("adm", "GET", f"{path}{asked}", Accept="text/csv")
            assert (reply.status, reply.body) == (200, plain.body), path
    assert world.fresh(step)["arguments"] == arguments
    assert world.fresh(step)["reason"] == "=1+1"
    gate = world.get("adm", f"/gates/{step['gate']}")
    assert gate["why"]["reasoning"] == "-2+3\r\n=cmd"
    assert "globex" not in json.dumps(world.journal(run))
    browser = browser_of(world, "adm")
    for table in ("interrupts/run", "approvals/gate", "approvals/decision"):
        page = browser.get(f"/admin/{table}/").content.decode()
        assert "export" not in page.lower()
        assert browser.get(f"/admin/{table}/export/").status_code in (302, 303, 404)
