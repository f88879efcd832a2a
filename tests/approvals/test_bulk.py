"""Several gates approved at once: each for itself, of low risk only, and only as it was seen."""

import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections

from approvals.errors import AlreadyDecided
from approvals.models import Decision, Gate
from approvals.services import bulk
from approvals.services.bulk import Chosen, approve_together
from config.errors import InvalidBody, PeopleOnly
from config.keys import secret_hash
from interrupts.models import Interrupt
from tenants.ids import uuid7
from tenants.models import Agent, JournalEntry, Membership, Role, Tenant, User, UserToken
from tenants.scope import tenant_scope
from tests.approvals.house import CALL, fresh, no_preview, shown_preview

PATH = "/gates/decisions"
TWO = {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}


def named(*gates):
    return {"decisions": [{"gate": str(gate.pk), "digest": gate.digest} for gate in gates]}


def send(house, *gates, who="alice", **headers):
    """Send the gates as they were seen; what came back of each: its status, and why not."""
    status, body, _ = house.request(who, "POST", PATH, named(*gates), **headers)
    assert status == 200, body
    assert [one["gate"] for one in body["results"]] == [str(gate.pk) for gate in gates]
    return [one.get("problem", {}).get("code") or one["status"] for one in body["results"]]


def traces(house, *gates):
    return [house.trace(gate) for gate in gates]


def alone(house, gate, who="alice"):
    """What the decision by itself is refused with."""
    body = {"verdict": "approve", "digest": gate.digest}
    status, told, _ = house.request(who, "POST", f"/gates/{gate.pk}/decisions", body)
    assert status >= 400
    return told["code"]


def test_each_is_approved_and_runs(house):
    gates = [house.ask(), house.ask(), house.ask()]

    assert send(house, *gates) == ["approved"] * 3

    assert [fresh(gate).state for gate in gates] == ["approved"] * 3
    for gate in gates:
        house.work(gate.run_id)
    assert house.calls == [("payments.refund", CALL)] * 3


def test_the_journal_is_that_of_a_decision_by_itself(house):
    together, by_itself = house.ask(), house.ask()

    send(house, together)
    house.decide("alice", by_itself)

    assert house.kinds(together.run_id) == house.kinds(by_itself.run_id)
    said = [
        JournalEntry.objects.get(stream=gate.run_id, kind="gate.decided")
        for gate in (together, by_itself)
    ]
    told = [json.loads(one.text) for one in said]
    assert told[0].keys() == told[1].keys()
    assert told[0]["data"].pop("bulk") is True
    assert told[0]["data"].keys() == told[1]["data"].keys()
    one, other = Decision.objects.order_by("id")
    assert (one.verdict, one.user_id, one.policy_version, one.reason, one.edits) == (
        other.verdict,
        other.user_id,
        other.policy_version,
        other.reason,
        other.edits,
    )


def test_what_is_not_named_stays_as_it_is(house):
    """rf-que-01 (tinyhumansai/opencompany#1713; ever-works/ever-works#1690)."""
    first, second = house.ask(), house.ask()
    house.tool("db.drop", effect="irreversible", risk="high")
    later = house.ask("db.drop")
    before = house.trace(later)["gate"]

    assert send(house, first, second) == ["approved", "approved"]
    status, told, _ = house.request(
        "alice", "POST", PATH, {"select": "all pending", "decision": "approve"}
    )

    assert (status, told["code"]) == (422, "invalid-body")
    assert house.trace(later)["gate"] == before
    assert Decision.objects.count() == 2
    assert send(house, later) == ["not-in-bulk"]
    assert house.trace(later)["gate"] == before


@pytest.mark.parametrize(
    "declared",
    [
        {"risk": "medium"},
        {"risk": "high"},
        {"effect": "irreversible"},
        {"effect": "irreversible", "risk": "high"},
    ],
)
def test_more_than_low_risk_is_not_approved_with_others(house, declared):
    house.tool("other", **declared)
    gate, low = house.ask("other"), house.ask()
    house.look(gate, "alice")
    before = house.trace(gate)

    assert send(house, gate) == ["not-in-bulk"]

    assert house.trace(gate) == before
    assert send(house, gate, low) == ["not-in-bulk", "approved"]
    assert fresh(gate).state == "pending"


def test_what_takes_a_ceremony_is_not_approved_with_others(house):
    house.previews["other"] = no_preview
    house.tool("other", previewed=True)
    gate = house.ask("other")
    house.look(gate, "alice")
    assert (gate.risk, gate.ceremony) == ("low", "review")
    before = house.trace(gate)

    assert send(house, gate) == ["not-in-bulk"]
    assert house.trace(gate) == before


@pytest.mark.parametrize(("effect", "risk"), [("read", "low"), ("idempotent", "low")])
def test_what_is_of_low_risk_is(house, effect, risk):
    house.tool("other", effect=effect, risk=risk)
    house.policy({"name": "all", "trigger": "action", "tools": ["*"], "then": "approve"})
    assert send(house, house.ask("other")) == ["approved"]


def test_what_was_not_seen_is_refused_alone(house):
    seen, other = house.ask(), house.ask()
    before = house.trace(other)["gate"]
    other.digest = "sha256:" + "0" * 64

    assert send(house, other, seen) == ["digest-mismatch", "approved"]

    assert house.trace(other)["gate"] == before


def test_each_refusal_is_that_of_a_decision_by_itself(house):
    expired, decided, not_hers, mail = house.ask(), house.ask(), house.ask(), house.ask()
    past = expired.opened_at - timedelta(seconds=1)
    Gate.objects.filter(pk=expired.pk).update(expires_at=past, on_expiry="reject")
    Interrupt.objects.filter(pk=expired.interrupt_id).update(expires_at=past, on_expiry="reject")
    house.decide("carol", decided, "reject", reason="no")
    not_hers = house.ask(run=house.run(requested_by="alice"))

    told = send(house, expired, decided, not_hers, mail)

    assert told == ["gate-expired", "already-decided", "own-request", "approved"]
    assert [alone(house, gate) for gate in (expired, decided, not_hers)] == told[:3]
    assert Decision.objects.count() == 2


def test_a_gate_that_is_not_there_is_refused_alone(house):
    gate, unknown = house.ask(), house.ask()
    unknown.pk = house.agent.id

    assert send(house, unknown, gate) == ["not-found", "approved"]


def test_who_may_not_decide_approves_none(house):
    gates = [house.ask(), house.ask()]
    before = traces(house, *gates)

    assert send(house, *gates, who="bob") == ["not-an-approver"] * 2
    assert traces(house, *gates) == before


@pytest.mark.parametrize(
    ("who", "code"), [("vera", "forbidden"), ("bot", "people-only"), ("other", "people-only")]
)
def test_a_viewer_and_an_agent_are_refused(house, who, code):
    gate = house.ask()
    before = house.trace(gate)

    status, told, _ = house.request(who, "POST", PATH, named(gate))

    assert (status, told["code"]) == (403, code)
    assert house.trace(gate) == before


def test_the_service_takes_no_agent_either(house):
    gate = house.ask()
    with pytest.raises(PeopleOnly):
        approve_together(house.agent, [Chosen(gate.pk, gate.digest)])
    assert not Decision.objects.exists()


def test_a_policy_that_asks_for_more_since_counts_it(house):
    gate = house.ask()
    house.policy(TWO)

    assert send(house, gate) == ["counted"]
    assert fresh(gate).state == "pending"


def test_a_newer_version_of_the_tool_is_asked_about_anew(house):
    gate = house.ask()
    house.tool(risk="high")

    assert send(house, gate) == ["already-decided"]

    assert fresh(gate).state == "superseded"
    assert not Decision.objects.exists()


def test_one_vote_of_several_is_counted(house):
    house.policy(TWO)
    gate = house.ask()

    assert send(house, gate) == ["counted"]
    assert fresh(gate).state == "pending"
    assert send(house, gate) == ["counted"]
    assert send(house, gate, who="carol") == ["approved"]
    assert Decision.objects.filter(gate=gate, counts=True).count() == 2
    assert send(house, gate) == ["approved"]


def test_a_vote_for_what_was_rejected_since_is_told_so(house):
    house.policy(TWO)
    gate = house.ask()
    send(house, gate)
    house.decide("carol", gate, "reject", reason="no")
    before = house.trace(gate)

    assert send(house, gate) == ["already-decided"]
    assert house.trace(gate) == before


def test_sent_again_the_rest_is_approved(house):
    gates = [house.ask(), house.ask()]
    send(house, gates[0])
    before = house.trace(gates[0])["gate"], house.kinds(gates[0].run_id)

    assert send(house, *gates) == ["approved", "approved"]

    assert (house.trace(gates[0])["gate"], house.kinds(gates[0].run_id)) == before
    assert Decision.objects.count() == 2


def test_a_request_with_a_key_is_answered_alike(house):
    house.tool("other", risk="medium")
    gates = [house.ask(), house.ask("other")]
    key = {"Idempotency-Key": "k1"}
    first = house.request("alice", "POST", PATH, named(*gates), **key)
    house.look(gates[1], "alice")
    house.decide("alice", gates[1])

    again = house.request("alice", "POST", PATH, named(*gates), **key)

    assert again[:2] == first[:2]
    assert again[2]["Idempotent-Replayed"] == "true"
    assert house.request("alice", "POST", PATH, named(gates[0]), **key)[0] == 422
    assert Decision.objects.count() == 2


def test_what_broke_off_is_finished_under_the_same_key(house, monkeypatch):
    gates = [house.ask(), house.ask()]
    decide, done = bulk.decisions.decide_gate, []

    def break_off(*args, **more):
        if done:
            raise RuntimeError("the process ends")
        done.append(decide(*args, **more))
        return done[0]

    monkeypatch.setattr(bulk.decisions, "decide_gate", break_off)
    with pytest.raises(RuntimeError, match="the process ends"):
        approve_together(house.people["alice"], [Chosen(one.pk, one.digest) for one in gates])
    monkeypatch.undo()
    assert [fresh(gate).state for gate in gates] == ["approved", "pending"]

    assert send(house, *gates, **{"Idempotency-Key": "k1"}) == ["approved", "approved"]
    assert Decision.objects.count() == 2


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        (lambda body, _: body.update(select="all"), "/select"),
        (lambda body, _: body.update(verdict="approve"), "/verdict"),
        (lambda body, _: body.pop("decisions"), "/decisions"),
        (lambda body, _: body.update(decisions=[]), "/decisions"),
        (lambda body, _: body.update(decisions="all"), "/decisions"),
        (lambda body, _: body["decisions"][1].pop("digest"), "/decisions/1/digest"),
        (lambda body, _: body["decisions"][1].update(digest=""), "/decisions/1/digest"),
        (lambda body, _: body["decisions"][1].update(gate="g-2"), "/decisions/1/gate"),
        (lambda body, _: body["decisions"][1].update(verdict="reject"), "/decisions/1/verdict"),
        (lambda body, _: body["decisions"].append(body["decisions"][0]), "/decisions/2/gate"),
        (
            lambda body, gate: body["decisions"].append(
                {"gate": str(gate.pk).upper(), "digest": gate.digest}
            ),
            "/decisions/2/gate",
        ),
        (lambda body, _: body.update(decisions=body["decisions"] * 26), "/decisions"),
    ],
)
def test_a_request_of_another_shape_decides_nothing(house, change, pointer):
    gates = [house.ask(), house.ask()]
    before = traces(house, *gates)
    body = named(*gates)
    change(body, gates[0])

    status, told, _ = house.request("alice", "POST", PATH, body)

    assert (status, told["code"]) == (422, "invalid-body")
    assert pointer in [error["pointer"] for error in told["errors"]]
    assert traces(house, *gates) == before


def test_the_service_takes_no_more_than_a_page_either(house):
    gate = house.ask()
    many = [Chosen(gate.pk, gate.digest)] * (bulk.MOST + 1)
    with pytest.raises(InvalidBody):
        approve_together(house.people["alice"], many)
    assert not Decision.objects.exists()


def test_once_the_time_is_up_no_other_is_begun(house, monkeypatch):
    monkeypatch.setattr(bulk, "LONGEST_SECONDS", 0.0)
    gates = [house.ask(), house.ask()]
    before = house.trace(gates[1])["gate"]

    assert send(house, *gates) == ["approved", "gate-preparing"]
    assert house.trace(gates[1])["gate"] == before
    assert send(house, gates[1]) == ["approved"]


def test_a_preview_that_shows_something_else_by_now_is_refused(house):
    house.previews["other"] = lambda *_: shown_preview(fresh_for=0)
    house.tool("other", previewed=True)
    gate = house.ask("other")
    assert (gate.state, gate.ceremony) == ("pending", "single")
    house.previews["other"] = lambda *_: shown_preview("30.00 goes back")

    assert send(house, gate) == ["digest-mismatch"]

    assert fresh(gate).digest != gate.digest
    assert not Decision.objects.exists()


def test_a_gate_of_another_tenant_is_not_there(house):
    gate = house.ask()
    before = house.trace(gate)
    house.secrets["charlie"] = f"aby_user_{secrets.token_urlsafe(32)}"
    with ThreadPoolExecutor(1) as thread:
        told = thread.submit(as_stranger, house, gate).result()

    assert told == ["not-found"]
    assert house.trace(gate) == before


def as_stranger(house, gate):
    """Send the gate as a person of a tenant of their own."""
    other = uuid7()
    try:
        with tenant_scope(other):
            Tenant.objects.create(id=other, slug="umbrella", name="Umbrella")
            user = User.objects.create(username="charlie")
            member = Membership.objects.create(user=user, role=Role.ADMIN)
            UserToken.objects.create(
                membership=member, hash=secret_hash(house.secrets["charlie"]), hint="aby_user"
            )
        return send(house, gate, who="charlie")
    finally:
        connections.close_all()


def test_what_an_agent_proposed_that_was_deactivated_is_not_approved(house):
    gate = house.ask()
    Agent.objects.filter(pk=house.agent.id).update(active=False)

    (code,) = send(house, gate)

    assert code == AlreadyDecided.code
    assert not Decision.objects.exists()
