"""What people made of what was asked: exact numbers, bounds, and who may read them."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from psycopg.types.json import Jsonb

from approvals.hindsight import Window, gates, read_calibration, read_overgating, wilson
from approvals.models import Decision, Gate
from approvals.services.decisions import withdraw_decision
from approvals.services.gates import bring_up_to_date
from config.keys import secret_hash
from interrupts.effects import python as python_effects
from interrupts.services import compensating
from tenants.clock import database_now
from tenants.ids import uuid7
from tenants.models import Membership, Role, Tenant, User, UserToken
from tenants.scope import tenant_scope
from tests.approvals.house import CALL, fresh
from tests.database import forget_statistics, rewrite, superuser

LESS = {**CALL, "amount": "1.00"}
NONE = {
    "decided": 0,
    "as_proposed": 0,
    "edited": 0,
    "refused": 0,
    "responded": 0,
    "undone": 0,
    "stated": None,
    "as_proposed_rate": None,
    "refusal": None,
}
ASKS = {"name": "refunds", "trigger": "action", "tools": ["payments.*"], "then": "approve"}
PATHS = ("/policies/calibration", "/policies/overgating")


def get(house, path="calibration", who="olga", **query):
    return house.request(who, "GET", f"/policies/{path}?{urlencode(query)}")


def told(house, path="calibration", **query):
    status, body, _ = get(house, path, **query)
    assert status == 200, body
    return body


def withdraw(house, gate, who="alice"):
    decision = Decision.objects.get(gate=gate, user=house.people[who].id, counts=True)
    withdraw_decision(house.people[who], gate.pk, decision.pk)


def counts(rows):
    """The bands that hold anything, by where they begin."""
    named = ("decided", "as_proposed", "edited", "refused", "responded", "undone")
    return {one["from"]: tuple(one[name] for name in named) for one in rows if one["decided"]}


def since_then(**more):
    return Window(database_now() - timedelta(days=1), **more)


def outcomes(house):
    found = read_calibration(since_then())
    return next(band for band in found.confidence if band.low is None).counts


@pytest.fixture
def undoing(house, monkeypatch):
    """The house whose tool can undo what it did."""

    def tool_named(name):
        return python_effects.PythonTool(lambda *_: {"done": True}, compensate=lambda *_: None)

    for module in ("interrupts.effects", "interrupts.effects.python"):
        monkeypatch.setattr(f"{module}.tool_named", tool_named)
    monkeypatch.setattr("interrupts.queue.compensate", lambda *_: None)
    house.tool(compensate={})
    return house


def undo(house, gate):
    house.work(gate.run)
    compensating.compensate_step(house.people["olga"], gate.step_id)
    compensating.compensate(gate.step_id, "w")
    assert fresh(gate.step).status == "compensated"


def live(house):
    """One gate of each end, and what was stated of each."""
    house.decide("alice", house.ask(confidence=0.95, risk_score=0.1))
    house.decide("alice", house.ask(confidence=0.95, risk_score=0.1), arguments=LESS)
    house.decide("alice", house.ask(confidence=1, risk_score=1.0), "reject", reason="no")
    house.decide("alice", house.ask(confidence=0.9, risk_score=0.9), "request_changes", reason="x")
    taken_back = house.ask(confidence=0.92, risk_score=0.09)
    house.decide("alice", taken_back)
    withdraw(house, taken_back)
    undone = house.ask(confidence=0)
    house.decide("alice", undone)
    undo(house, undone)
    house.decide("alice", house.ask(), "respond", value={"done": "by hand"})
    house.ask(confidence=0.95, risk_score=0.1)


# How stated and decided compare


def test_each_end_is_counted_once_in_the_band_of_what_was_stated(undoing):
    live(undoing)

    said = told(undoing)

    assert (said["considered"], said["more"], said["decided"]) == (8, False, 7)
    assert counts(said["confidence"]) == {
        0.0: (1, 1, 0, 0, 0, 1),
        0.9: (5, 2, 1, 2, 0, 1),
        None: (1, 0, 0, 0, 1, 0),
    }
    assert counts(said["risk_score"]) == {
        0.0: (1, 1, 0, 0, 0, 1),
        0.1: (2, 1, 1, 0, 0, 0),
        0.9: (2, 0, 0, 2, 0, 0),
        None: (2, 1, 0, 0, 1, 1),
    }
    assert (said["tool"], said["workflow"]) == (None, None)


def test_rates_carry_their_interval_and_stand_only_where_people_decided(undoing):
    live(undoing)

    said = told(undoing)

    high = said["confidence"][9]
    assert (high["from"], high["to"]) == (0.9, 1.0)
    assert high["refusal"] == {"rate": 0.4, "lower": 0.1176, "upper": 0.7693}
    assert (high["stated"], high["as_proposed_rate"], high["gap"]) == (0.944, 0.4, 0.544)
    assert said["confidence"][0]["gap"] == -1.0
    assert said["calibration_error"] == round((5 * 0.544 + 1) / 6, 4)
    assert said["confidence"][4] == {"from": 0.4, "to": 0.5, **NONE, "gap": None}
    assert said["risk_score"][4] == {"from": 0.4, "to": 0.5, **NONE}
    assert len(said["risk_score"]) == len(said["confidence"]) == 11


def test_a_band_begins_at_its_tenth_and_the_last_holds_one(house):
    stated = [0, 0.0999999, 0.1, 0.2999999999999999, 0.3, 0.7, 0.9999, 1, 1.0]
    for value in stated:
        house.decide("alice", house.ask(risk_score=value))

    found = counts(told(house)["risk_score"])

    assert {low: one[0] for low, one in found.items()} == {
        0.0: 2,
        0.1: 1,
        0.2: 1,
        0.3: 1,
        0.7: 1,
        0.9: 3,
    }


def test_one_of_two_is_not_told_as_a_half():
    half = wilson(1, 2)
    assert [round(one, 4) for one in half] == [0.5, 0.0945, 0.9055]
    assert wilson(0, 0) is None
    assert wilson(0, 20)[:2] == (0.0, 0.0)
    assert round(wilson(0, 20).upper, 4) == 0.1611
    assert wilson(7, 7).upper == 1.0


def test_a_gate_is_counted_where_the_one_in_its_place_was_decided(house):
    gate = house.ask()
    house.decide("alice", gate)
    withdraw(house, gate)
    house.tool()
    bring_up_to_date(gate.pk)
    newer = Gate.objects.get(step=gate.step_id, state="pending")
    house.decide("alice", newer)

    assert told(house)["considered"] == 2
    assert outcomes(house) == gates.Counts(decided=1, as_proposed=1)


def test_what_was_edited_stays_so_whoever_approves_it_then(house):
    house.policy({**ASKS, "quorum": 2})
    gate = house.ask()
    house.decide("alice", gate, arguments=LESS)
    house.grant("alice", "mail.*")
    house.grant("bob", "*")
    for who in ("carol", "bob"):
        house.decide(who, fresh(gate))

    assert not Decision.objects.filter(counts=True, edits__isnull=False).exists()
    assert outcomes(house) == gates.Counts(decided=1, edited=1)


def test_and_in_whichever_gate(house):
    house.policy({**ASKS, "quorum": 2})
    gate = house.ask()
    house.decide("carol", gate, arguments=LESS)
    house.tool()
    bring_up_to_date(gate.pk)
    newer = Gate.objects.get(step=gate.step_id, state="pending")
    for who in ("alice", "carol"):
        house.decide(who, newer)

    assert outcomes(house) == gates.Counts(decided=1, edited=1)


def test_a_vote_taken_back_before_there_were_enough_decided_nothing(house):
    house.policy({**ASKS, "quorum": 2})
    gate = house.ask()
    house.decide("alice", gate)
    withdraw(house, gate)

    assert outcomes(house) == gates.Counts()


def test_what_was_taken_back_and_refused_is_refused_and_approved_anew_stands(house):
    refused, approved = house.ask(), house.ask()
    for gate in (refused, approved):
        house.decide("alice", gate)
        withdraw(house, gate)
    house.decide("alice", fresh(refused), "reject", reason="no")
    house.decide("alice", fresh(approved))

    assert outcomes(house) == gates.Counts(decided=2, as_proposed=1, refused=1)


def test_what_a_delegation_decided_is_no_persons_decision(house):
    gate = house.ask()
    decided = house.decided("alice", gate, "approve")
    rewrite(decided.decision, delegation=uuid7())

    assert outcomes(house) == gates.Counts()


def test_tool_and_workflow_and_since_narrow_what_is_told(house):
    house.tool("mail.send")
    house.decide("alice", house.ask())
    house.decide("alice", house.ask("mail.send"))
    house.decide("alice", house.ask("mail.send", run=house.run(workflow="news")))
    later = (database_now() + timedelta(seconds=1)).isoformat()

    def seen(**query):
        said = told(house, **query)
        return said["considered"], said["decided"]

    assert seen() == (3, 3)
    assert seen(tool="mail.send") == (2, 2)
    assert seen(tool="no.such") == (0, 0)
    assert seen(workflow="news") == (3, 1)
    assert seen(tool="mail.send", workflow="refunds") == (2, 1)
    assert seen(since=later) == (0, 0)
    assert told(house, since="2026-01-01T01:00:00+01:00")["since"] == "2026-01-01T00:00:00Z"
    assert told(house, "overgating", since=later)["considered"] == 0


# Rules that ask in vain


def rules(house, **query):
    return {one["rule"]: one for one in told(house, "overgating", **query)["rules"]}


def test_rules_that_asked_in_vain_stand_first_with_how_sure_that_is(house):
    house.policy(ASKS, {**ASKS, "name": "mails", "tools": ["mail.*"]})
    house.tool("mail.send")
    for _ in range(3):
        house.decide("alice", house.ask("mail.send"))
    for _ in range(4):
        house.decide("alice", house.ask())
    house.decide("alice", house.ask(), "reject", reason="no")
    house.decide("alice", house.ask(), arguments=LESS)
    house.ask()

    said = told(house, "overgating", minimum=3)

    assert [one["rule"] for one in said["rules"]] == ["mails", "refunds", "default"]
    mails, refunds, default = said["rules"]
    assert {name: mails[name] for name in ("asked", "alone", "decided", "as_proposed")} == {
        "asked": 3, "alone": 3, "decided": 3, "as_proposed": 3}  # fmt: skip
    assert (mails["in_vain"], mails["refusal"]["upper"]) == (True, 0.5615)
    assert mails["meaning"].startswith(
        "All of 3 were approved as proposed: with 95 % confidence people would refuse no more"
        " than 56.1% of such calls"
    )
    assert (refunds["asked"], refunds["decided"], refunds["in_vain"]) == (7, 6, False)
    assert (refunds["refused"], refunds["edited"], refunds["as_proposed"]) == (1, 1, 4)
    assert refunds["meaning"] == "Of 6 decided, 1 refused, 1 edited: to ask made a difference."
    assert (default["asked"], default["refusal"], default["median_seconds"]) == (0, None, None)
    assert (said["minimum"], said["policy_version"], said["considered"]) == (3, 1, 10)


def test_fewer_than_the_minimum_say_little(house):
    house.policy(ASKS)
    house.decide("alice", house.ask())

    assert rules(house)["refunds"]["in_vain"] is False
    assert "fewer than 20" in rules(house)["refunds"]["meaning"]
    assert rules(house, minimum=1)["refunds"]["in_vain"] is True


def test_what_was_undone_or_answered_by_hand_was_not_asked_in_vain(undoing):
    undoing.policy(ASKS)
    gate = undoing.ask()
    undoing.decide("alice", gate)
    undo(undoing, gate)

    found = rules(undoing, minimum=1)["refunds"]

    assert (found["undone"], found["in_vain"]) == (1, False)
    assert "1 approved and undone" in found["meaning"]


def test_the_median_runs_from_the_opening_to_the_decision(house):
    house.policy(ASKS)
    for waited in (10, 30, 600):
        gate = house.ask()
        decided = house.decided("alice", gate, "approve")
        rewrite(decided.decision, at=fresh(gate).opened_at + timedelta(seconds=waited))
    house.ask()

    assert rules(house)["refunds"]["median_seconds"] == 30.0


def test_every_rule_that_asked_is_told_of_and_whether_another_asked_too(house):
    risky = {"name": "risky", "trigger": "risk", "at_least": 0.5, "then": "approve"}
    house.policy(ASKS, risky)
    house.decide("alice", house.ask(risk_score=0.9))
    house.decide("alice", house.ask())

    found = rules(house)

    assert (found["refunds"]["asked"], found["refunds"]["alone"]) == (2, 1)
    assert (found["risky"]["asked"], found["risky"]["alone"]) == (1, 0)


def test_what_an_older_rule_of_the_name_asked_is_not_told_of_the_one_in_force(house):
    other = {**ASKS, "name": "mails", "tools": ["mail.*"]}
    house.policy({**ASKS, "tools": ["*"]}, other)
    house.decide("alice", house.ask(), "reject", reason="no")
    house.policy(ASKS, other)
    house.policy(ASKS, other, {**other, "name": "more"})
    house.decide("alice", house.ask())

    found = rules(house)

    assert (found["refunds"]["since_version"], found["refunds"]["asked"]) == (2, 1)
    assert found["refunds"]["refused"] == 0
    assert (found["mails"]["since_version"], found["more"]["since_version"]) == (1, 3)


def test_only_rules_that_ask_are_told_of_and_what_none_names(house):
    house.policy({**ASKS, "name": "reads", "then": "allow", "tools": ["*.get"]})
    house.decide("alice", house.ask())

    found = rules(house)

    assert set(found) == {"default"}
    assert found["default"]["asked"] == 1


# Who may ask, and how


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("who", "status", "code"),
    [
        ("bot", 403, "people-only"),
        ("alice", 403, "forbidden"),
        ("vera", 403, "forbidden"),
        ("olga", 200, None),
        ("ada", 200, None),
    ],
)
def test_operators_and_admins_may_look(house, path, who, status, code):
    gate = house.ask()
    before = house.trace(gate)

    answered, body, _ = house.request(who, "GET", path)

    assert (answered, body.get("code")) == (status, code)
    assert house.trace(gate) == before


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("policies/calibration?since=yesterday", "/since"),
        ("policies/calibration?since=2026-01-01", "/since"),
        ("policies/calibration?since=2026-01-01T00:00:00", "/since"),
        ("policies/calibration?since=0001-01-01T00:00:00%2B14:00", "/since"),
        ("policies/calibration?since=9999-12-31T23:59:59-14:00", "/since"),
        ("policies/calibration?tool=%00", "/tool"),
        ("policies/calibration?workflow=a%00b", "/workflow"),
        ("policies/overgating?since=", "/since"),
        ("policies/overgating?minimum=0", "/minimum"),
        ("policies/overgating?minimum=-1", "/minimum"),
        ("policies/overgating?minimum=1.5", "/minimum"),
        ("policies/overgating?minimum=many", "/minimum"),
    ],
)
def test_a_parameter_that_is_none_is_refused_with_its_place(house, query, pointer):
    gate = house.ask()
    before = house.trace(gate)

    status, body, _ = house.request("ada", "GET", f"/{query}")

    assert (status, body["code"]) == (422, "invalid-query")
    assert [error["pointer"] for error in body["errors"]] == [pointer]
    assert house.trace(gate) == before


@pytest.mark.parametrize("since", ["1970-01-01T00:00:00+14:00", "9998-12-31T23:59:59-14:00"])
def test_whatever_time_is_taken_is_answered(house, since):
    for path in ("calibration", "overgating"):
        assert get(house, path, since=since)[0] == 200


def test_another_tenants_history_is_not_counted(house):
    house.decide("alice", house.ask())
    secret = f"aby_user_{secrets.token_urlsafe(32)}"

    def as_stranger():
        try:
            other = uuid7()
            with tenant_scope(other):
                Tenant.objects.create(id=other, slug="umbrella", name="Umbrella")
                user = User.objects.create(username="charlie")
                member = Membership.objects.create(user=user, role=Role.ADMIN)
                UserToken.objects.create(
                    membership=member, hash=secret_hash(secret), hint=secret[:16]
                )
            house.secrets["charlie"] = secret
            return [
                told_to["considered"]
                for told_to in (
                    house.request("charlie", "GET", f"{path}")[1]
                    for path in (*PATHS, "/policies/calibration?tool=payments.refund")
                )
            ]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as apart:
        assert apart.submit(as_stranger).result(30) == [0, 0, 0]
    assert told(house)["considered"] == 1


# Bounds


def statements(house, path):
    with CaptureQueriesContext(connection) as seen:
        assert get(house, path)[0] == 200
    return len(seen)


def test_the_same_statements_tell_of_three_gates_and_of_thirty(house):
    house.policy(ASKS)

    def decide(number):
        for _ in range(number):
            house.decide("alice", house.ask(confidence=0.5))

    decide(3)
    before = [statements(house, path) for path in ("calibration", "overgating")]
    decide(27)

    assert [statements(house, path) for path in ("calibration", "overgating")] == before
    assert told(house)["decided"] == 30


def test_the_latest_are_considered_and_that_there_were_more_is_said(house, monkeypatch):
    house.decide("alice", house.ask(), "reject", reason="no")
    for _ in range(2):
        house.decide("alice", house.ask())
    for bound, more in ((3, False), (2, True)):
        monkeypatch.setattr(gates, "MOST_CONSIDERED", bound)
        for path in ("calibration", "overgating"):
            said = told(house, path)
            assert (said["considered"], said["more"]) == (bound, more)
    assert outcomes(house) == gates.Counts(decided=2, as_proposed=2)
    assert read_overgating(since_then()).rules[0].counts.refused == 0


def pages_read(window, question):
    text, named = gates.asking(window, question)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT json) {text}", named)
        (plan,) = cursor.fetchone()[0]
    return plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]


READ = [
    *("approvals_gate", "approvals_decision"),
    *("interrupts_step", "interrupts_run", "interrupts_interrupt"),
]
COPIES = """
INSERT INTO approvals_gate SELECT (jsonb_populate_record(g, jsonb_build_object(
    'id', %s || lpad(n::text, 12, '0'), 'step_id', gen_random_uuid(),
    'opened_at', %s::text) || %s)).*
FROM approvals_gate g, generate_series(1, 3000) n WHERE g.id = %s
"""


@pytest.mark.parametrize("tool", [None, "payments.refund"])
@pytest.mark.parametrize("analyzed", [False, True])
def test_what_is_older_or_anothers_is_not_read(house, tool, analyzed):
    gate = house.ask()
    house.decide("alice", gate)
    window, question = since_then(tool=tool), "SELECT count(*) FROM judged"
    pages_read(window, question)
    before = pages_read(window, question)
    elsewhere = Jsonb({"tenant_id": str(uuid7()), "tool_id": str(uuid7())})
    with superuser() as sql:
        sql.execute("SET session_replication_role = replica")
        old = ("01600000-0000-7000-8000-", "2018-01-01T00:00:00Z", Jsonb({}))
        new = (f"{str(gate.pk)[:18]}-8000-", gate.opened_at.isoformat(), elsewhere)
        for copied in (old, new):
            sql.execute(COPIES, [*copied, gate.pk])
        forget_statistics(sql, READ)
        if analyzed:
            sql.execute("ANALYZE approvals_gate")
    assert pages_read(window, question) < before + 30
