"""Cases of the kind audit-trail: what happened is told, and who was refused what."""

from __future__ import annotations

import json
import logging
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tenants.models import User
from tests.cases.world import BY_AGENT, World, as_superuser, browser_of, rows
from tests.database import as_owner

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


def test_who_was_refused_leaves_a_line(world: World, caplog: pytest.LogCaptureFixture) -> None:
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
    pair = {"decisions": [{"gate": gate["id"], "digest": gate["what"]["digest"]}]}
    told: list[tuple[str, str]] = []

    def lines() -> list[str]:
        found = [one.getMessage() for one in caplog.records if one.name == "tenants.refusals"]
        caplog.clear()
        return found

    with caplog.at_level(logging.WARNING, logger="tenants.refusals"):
        for who, path, sent, status, code in (
            ("viewer", decisions, body, 403, "forbidden"),
            ("req", decisions, body, 403, "not-an-approver"),
            ("ops", decisions, body, 403, "people-only"),
            ("ops@globex", f"/runs/{run['id']}/claim", {}, 404, "not-found"),
            ("other", f"/runs/{run['id']}/claim", {}, 403, "not-your-run"),
            ("appr1", decisions, other, 409, "digest-mismatch"),
            ("ops", f"/runs/{run['id']}/steps", changed, 409, "step-key-reused"),
        ):
            world.refused(who, "POST", path, sent, status=status)
            (line,) = lines()
            assert line.endswith(f"POST '/api/v1{path}': {code}"), line
            assert line.startswith("refused agent:" if "o" in who[:1] else "refused user:")
            told.append((who, line))
        world.post("req", "/gates/decisions", pair)
        (line,) = lines()
        assert line.endswith(f"'/api/v1/gates/decisions' of {gate['id']}: not-in-bulk") or (
            line.endswith(f" of {gate['id']}: not-an-approver")
        )
        form = {"digest": gate["what"]["digest"]}
        browser_of(world, "req").post(f"/decisions/{gate['id']}/approve", form)
        (line,) = lines()
        assert line.endswith(f"POST '/decisions/{gate['id']}/approve': not-an-approver")
        # A typing fault, a repeat, and whoever is not known leave none; no line is made by a path.
        world.send("appr1", "POST", decisions, {**body, "verdict": "aprove"})
        world.send("ops", "POST", f"/runs/{run['id']}/steps", {"tool": "nothing"})
        world.send("nobody", "POST", decisions, body)
        world.decide(step)
        assert lines() == []
        world.send("ops", "GET", f"/runs/{uuid4()}%0arefused user:1")
        (line,) = lines()
        assert "\n" not in line
    by_req = str(User.objects.get(username="req").pk)
    assert f"user:{by_req} " in dict(told)["req"]
    assert not [line for _, line in told if "4711" in line]


def test_a_journal_tells_what_was_shown_decided_and_done(world: World) -> None:
    """rf-aud-03 (extra-org/extra#139; IBM/mcp-context-forge#5437)."""
    world.given(world.tool("a.do", executor=BY_AGENT, risk="medium"))
    run, left = world.run(), world.run()
    step = world.propose(run, "a.do", {"x": 1})
    world.decide(step)
    gate = world.gate(step)
    claimed = world.claim(step)
    world.receipt(claimed, external_id="X-1")
    failed = world.propose(run, "a.do", {"x": 2})
    world.decide(failed)
    world.receipt(world.claim(failed), "failed", error="no")
    never = world.propose(left, "a.do", {"x": 3})
    world.decide(never)
    world.post("opr", f"/runs/{left['id']}/cancel", {})

    entries = [one for one in world.journal(run) if one["data"].get("step") == step["id"]]
    kinds = [one["kind"] for one in entries]
    order = ["step.proposed", "gate.opened", "gate.decided", "step.authorized", "attempt.started"]
    order += ["receipt.recorded", "step.settled"]
    assert [kind for kind in kinds if kind in order] == order
    by_kind: dict[str, Any] = {one["kind"]: one for one in entries}
    decided, authorized = by_kind["gate.decided"]["data"], by_kind["step.authorized"]["data"]
    assert decided["digest"] == gate["what"]["digest"]
    assert authorized["digest"] == step["digest"] == claimed["digest"]
    assert decided["policy_version"] == authorized["policy_version"]
    assert by_kind["gate.decided"]["actor"]["kind"] == "user"
    assert by_kind["attempt.started"]["actor"]["kind"] == "agent"
    # Approved and never run, run and failed, run and succeeded are told apart.
    ends = [world.fresh(one) for one in (step, failed, never)]
    assert [(one["status"], one["attempts"]) for one in ends] == [
        ("succeeded", 1),
        ("failed", 1),
        ("cancelled", 0),
    ]
    assert "attempt.started" not in world.kinds(left)
    with as_superuser() as looking:  # who was shown what, whole, when
        shown = looking.execute(
            "SELECT u.username, v.digest, v.snapshot FROM approvals_view v"
            " JOIN tenants_user u ON u.id = v.user_id WHERE v.gate_id = %s",
            [gate["id"]],
        ).fetchall()
    assert [(who, digest) for who, digest, _ in shown] == [("appr1", gate["what"]["digest"])]
    assert shown[0][2]["what"]["arguments"] == {"x": 1}

    # None of it is changed by anybody: not over the API, not in the admin, not by the owner.
    before = rows()
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("journal", "events", "checkpoints/1"):
            assert world.send("adm", method, f"/runs/{run['id']}/{path}", {}).status in (404, 405, 422)
    browser = browser_of(world, "adm")
    for table in ("approvals/decision", "interrupts/receipt", "approvals/gate", "interrupts/step"):
        listed = browser.get(f"/admin/{table}/")
        pk = listed.context["cl"].result_list[0].pk
        assert browser.post(f"/admin/{table}/{pk}/delete/", {"post": "yes"}).status_code == 403
        assert browser.post(f"/admin/{table}/{pk}/change/", {}).status_code == 403
        acted = {"action": "delete_selected", "_selected_action": [str(pk)], "post": "yes"}
        browser.post(f"/admin/{table}/", acted)
    changed = {name for name, row in rows().items() if row != before[name]}
    assert changed <= {"django_session"}
    for change in (
        "UPDATE tenants_journalentry SET text = '{}'",
        "DELETE FROM tenants_journalentry",
        "TRUNCATE tenants_journalentry",
        "UPDATE interrupts_receipt SET outcome = 'failed'",
        "DELETE FROM interrupts_receipt",
    ):
        with as_owner() as owner, pytest.raises(psycopg.Error):
            owner.execute(change)


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
