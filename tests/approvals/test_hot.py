"""The hot approval writes and shows what the long way does, and leaves the rest to it."""

import json
import re
from contextvars import Context
from datetime import timedelta

import pytest
from django.db import connection, transaction

from approvals import hot
from approvals.authority import refusal_sql
from approvals.models import Decision, Gate
from approvals.services import assignments
from approvals.shown import similar_sql
from interrupts.models import Interrupt, Run, Step
from interrupts.services import damage
from tenants import scope, statements
from tenants.authority import raise_authority
from tenants.idempotency import KeyName
from tenants.models import IdempotentAnswer, JournalEntry
from tenants.rls import APP
from tenants.statements import prepared
from tests.database import forget_statistics, superuser

UNLIKE = {"id", "run_id", "step_id", "interrupt_id", "gate", "interrupt", "key_scope", "root",
          "group", "checkpoint", "checkpoint_id", "step", "authorized_gate", "gate_id"}  # fmt: skip


@pytest.fixture
def ways(monkeypatch):
    """Count which way each decision went."""
    taken = []

    def watched(through, name):
        def approve(*given):
            made = through(*given)
            taken.append(name if made else "long")
            return made

        return approve

    monkeypatch.setattr(hot, "approve", watched(hot.approve, "hot"))
    monkeypatch.setattr(hot, "approve_under_key", watched(hot.approve_under_key, "keyed"))
    return taken


def rows_of(gate):
    """Everything a decision writes, without ids and times."""

    def plain(row):
        return {
            name: value
            for name, value in row.items()
            if name not in UNLIKE and not re.search("_at$|^at$|hash|_until$", name)
        }

    run = Run.objects.values().get(pk=gate.run_id)
    entries = JournalEntry.objects.filter(stream=gate.run_id).order_by("seq")
    return {
        "gate": plain(Gate.objects.values().get(pk=gate.pk)),
        "decision": plain(Decision.objects.values().get(gate=gate)),
        "step": plain(Step.objects.values().get(pk=gate.step_id)),
        "interrupt": plain(Interrupt.objects.values().get(pk=gate.interrupt_id))
        | {"response": None},
        "run": plain(run),
        "journal": [(entry.kind, sorted(json.loads(entry.text)["data"])) for entry in entries],
    }


def masked(shown):
    """An answer without ids and times."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<id>", json.dumps(shown, sort_keys=True))
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", text)


CEREMONIES = [
    ({"risk": "low"}, None),
    ({"risk": "medium"}, None),
    ({"risk": "high"}, True),
    ({"effect": "irreversible", "confirmation": "refund {amount}"}, "refund 20.00"),
]


@pytest.mark.parametrize(("declared", "confirmation"), CEREMONIES)
def test_the_hot_approval_writes_and_shows_what_the_long_way_does(
    house, ways, monkeypatch, declared, confirmation
):
    house.tool(**declared)
    body = {"verdict": "approve", "confirmation": confirmation}
    if confirmation is None:
        del body["confirmation"]

    def approved():
        gate = house.ask()
        house.look(gate, "alice")
        status, shown, _ = house.request(
            "alice", "POST", f"/gates/{gate.pk}/decisions", {**body, "digest": gate.digest}
        )
        assert status == 201, shown
        return rows_of(gate), shown

    first, shown_first = approved()
    assert ways == ["hot"]
    monkeypatch.setattr(hot, "approve", lambda *_: None)
    second, shown_second = approved()

    assert first == second
    assert masked(shown_first) == masked(shown_second)


def test_the_hot_approval_wakes_a_worker_and_its_step_runs_once(house, ways):
    gate = house.ask()
    house.wakes.clear()

    house.decide("alice", gate)

    assert ways == ["hot"]
    assert house.work(gate.run_id) == 1
    assert house.work(gate.run_id) == 0


def close_by_digest(house, gate):
    Gate.objects.filter(pk=gate.pk).update(digest="sha256:other")


def close_by_expiry(house, gate):
    Gate.objects.filter(pk=gate.pk).update(expires_at="2020-01-01T00:00:00Z", on_expiry="reject")


def close_by_staleness(house, gate):
    Gate.objects.filter(pk=gate.pk).update(fresh_until="2020-01-01T00:00:00Z")


def close_by_quorum(house, gate):
    Gate.objects.filter(pk=gate.pk).update(quorum=2)


def close_by_policy(house, gate):
    house.policy({"name": "a", "trigger": "action", "tools": ["x.*"], "then": "allow"})


def close_by_tool(house, gate):
    house.tool()


def close_by_grant(house, gate):
    house.grant("alice")


def close_by_unopened(house, gate):
    Gate.objects.filter(pk=gate.pk).update(ceremony="review")


def close_by_child(house, gate):
    child = house.run()
    Run.objects.filter(pk=child.pk).update(
        parent=gate.run_id, root=Run.objects.get(pk=gate.run_id).root, path=[gate.run_id]
    )


def close_by_damage(house, gate):
    damage.show(gate.run_id, "entry 1 is gone")


@pytest.mark.parametrize(
    "close",
    [close_by_digest, close_by_expiry, close_by_staleness, close_by_quorum, close_by_policy,
     close_by_tool, close_by_grant, close_by_unopened, close_by_child,
     close_by_damage],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_the_long_way_unwritten(house, close):
    gate = house.ask()
    seen = hot.look(gate.pk)
    close(house, gate)
    before = house.trace(gate)

    for found in (seen, hot.look(gate.pk)):
        assert hot.approve(house.people["alice"], found, gate.digest, None) is None
    assert house.trace(gate) == before


def test_what_is_approved_is_what_was_seen_a_moment_ago(house):
    gate, alice = house.ask(), house.people["alice"]
    seen = hot.look(gate.pk)
    Gate.objects.filter(pk=gate.pk).update(headline="another")
    now = hot.look(gate.pk)
    before = house.trace(gate)
    for found in (
        seen,
        now._replace(state_version=now.state_version - 1),
        now._replace(at=now.at - timedelta(seconds=3)),
        now._replace(at=now.at + timedelta(hours=1)),
    ):
        assert hot.approve(alice, found, gate.digest, None) is None
        assert house.trace(gate) == before

    approved = hot.approve(alice, now, gate.digest, None)

    row = Gate.objects.get(pk=gate.pk)
    assert approved.shown.gate.headline == row.headline == "another"
    assert approved.decision.at == row.settled_at == now.at


def look_at(house, gate):
    house.look(gate, "alice")


def change_authority(house, _):
    house.grant("bob", "*")
    with transaction.atomic():
        raise_authority()


def hand_over(house, gate):
    assignments.reassign_gate(house.people["alice"], gate.pk, to="carol")


@pytest.mark.parametrize("between", [look_at, change_authority, hand_over])
def test_an_approval_is_no_older_than_what_it_rests_on_and_what_is_told_of_its_run(house, between):
    house.tool(risk="medium")
    gate, alice = house.ask(), house.people["alice"]
    if between is not look_at:
        look_at(house, gate)
    found = hot.look(gate.pk)
    between(house, gate)
    before = house.trace(gate)

    assert hot.approve(alice, found, gate.digest, None) is None
    assert house.trace(gate) == before
    assert hot.approve(alice, hot.look(gate.pk), gate.digest, None) is not None
    told = JournalEntry.objects.filter(stream=gate.run_id).order_by("seq")
    times = list(told.values_list("at", flat=True))
    assert times == sorted(times)


# Under an idempotency key


KEY = {"Idempotency-Key": "k1"}


def post(house, gate, who="alice", verdict="approve", **more):
    body = {"verdict": verdict, "digest": gate.digest, **more}
    return house.request(who, "POST", f"/gates/{gate.pk}/decisions", body, **KEY)


def test_an_approval_under_a_key_writes_and_shows_what_one_without_does(house, ways):
    first, second = house.ask(), house.ask()
    plain = house.request(
        "alice", "POST", f"/gates/{first.pk}/decisions",
        {"verdict": "approve", "digest": first.digest},
    )  # fmt: skip

    keyed = post(house, second)

    assert ways == ["hot", "keyed"]
    assert rows_of(first) == rows_of(second)
    assert masked(plain[1]) == masked(keyed[1])
    assert plain[0] == keyed[0] == 201
    assert IdempotentAnswer.objects.count() == 1


def test_an_approval_under_a_key_wakes_a_worker_once_it_is_committed(house, ways):
    gate = house.ask()
    house.wakes.clear()

    post(house, gate)

    assert ways == ["keyed"]
    assert house.work(gate.run_id) == 1
    assert house.work(gate.run_id) == 0


def test_an_approval_under_a_key_is_answered_again(house, ways):
    gate = house.ask()
    first = post(house, gate)
    before = house.trace(gate)

    again = post(house, gate)

    assert again[:2] == first[:2]
    assert again[2]["Idempotent-Replayed"] == "true"
    assert ways == ["keyed", "long"]
    assert house.trace(gate) == before


def test_a_key_that_named_another_approval_is_refused_and_approves_nothing(house):
    first, second = house.ask(), house.ask()
    post(house, first)
    before = house.trace(second)

    status, told, _ = post(house, second)

    assert (status, told["code"]) == (422, "idempotency-key-reused")
    assert house.trace(second) == before
    assert Decision.objects.filter(gate=second).count() == 0


def test_what_is_not_plain_is_decided_under_its_key_all_the_same(house, ways):
    gate = house.ask()

    status, shown, _ = post(house, gate, verdict="reject", reason="no")

    assert (status, shown["state"]) == (201, "rejected")
    assert ways == []
    assert post(house, gate, verdict="reject", reason="no")[2]["Idempotent-Replayed"] == "true"


def test_an_approval_whose_answer_cannot_be_kept_is_not_made(house, monkeypatch):
    gate = house.ask()
    before = house.trace(gate)
    monkeypatch.setattr(KeyName, "keeping", lambda name, _: (*name, 201, "{}", None))

    status, told, _ = post(house, gate)

    assert (status, told["code"]) == (500, "internal-error")
    assert house.trace(gate) == before
    assert not Decision.objects.exists()
    monkeypatch.undo()
    assert post(house, gate)[0] == 201


def test_an_approval_that_cannot_be_shown_is_not_made(house, monkeypatch):
    gate = house.ask()
    before = house.trace(gate)

    def broken(*_):
        raise RuntimeError("no rendering")

    monkeypatch.setattr("approvals.api.rendering.gate", broken)
    with pytest.raises(RuntimeError):
        post(house, gate)
    assert house.trace(gate) == before
    assert not Decision.objects.exists()


def test_an_approval_whose_key_is_held_is_refused_at_once(house):
    gate = house.ask()
    before = house.trace(gate)
    elsewhere = connection.copy()
    name = KeyName(str(house.people["alice"].actor), "k1", b"")
    try:
        with elsewhere.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [name.lock])
        status, told, _ = post(house, gate)
    finally:
        elsewhere.close()

    assert (status, told["code"]) == (409, "request-in-progress")
    assert house.trace(gate) == before
    assert post(house, gate)[0] == 201


def test_an_approval_under_a_key_takes_the_tenant_off_its_connection_itself(house, monkeypatch):
    first, second, tenant = house.ask(), house.ask(), house.people["alice"].tenant_id
    left = []
    monkeypatch.setattr(scope, "leave", lambda: left.append(set_on_connection()))

    def set_on_connection():
        return prepared("SELECT current_setting('abeyance.tenant_id', true)", [])[0]

    assert Context().run(post, house, first)[0] == 201  # outside of the test's own scope
    assert (left, set_on_connection()) == ([], "")

    statements.command(f"SET abeyance.tenant_id = '{tenant}'")
    assert Context().run(post, house, second, verdict="reject", reason="no")[0] == 422  # the key's
    assert left == [str(tenant)]
    assert post(house, second)[0] == 422  # within a scope that goes on after it
    assert set_on_connection() == str(tenant)


def test_the_hot_path_asks_the_one_authority_function(house):
    with connection.cursor() as cursor:
        cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = 'approvals_refusal'")
        (source,) = cursor.fetchone()
    arguments = {"tool": "p_tool", "agent": "p_agent", "requester": "p_requester"}
    by_group = "approvals_by_group(p_user, p_tool)"
    assert refusal_sql(user="p_user", by_group=by_group, **arguments) in source


# What is shown beside it


def test_it_is_told_what_people_decided_of_the_like_and_not_what_rules_did(house, ways):
    def decide(gate, verdict="approve", **more):
        body = {"verdict": verdict, "digest": gate.digest, **more}
        return house.request("alice", "POST", f"/gates/{gate.pk}/decisions", body)[1]

    by_rule = house.ask()
    decide(by_rule)
    Gate.objects.filter(pk=by_rule.pk).update(pattern="allowlist")
    decide(house.ask(), "reject", reason="no")
    decided = decide(house.ask())

    shown = house.request("alice", "GET", f"/gates/{house.ask().pk}")[1]

    assert shown["similar"] == {"approved": 1, "rejected": 1, "edited": 0}
    assert decided["similar"] is None  # nothing is left to decide


def pages_read(tool):
    with connection.cursor() as cursor:
        cursor.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT {similar_sql('%s::uuid')}", [tool]
        )
        (plan,) = cursor.fetchone()[0]
    return plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]


def test_a_seldom_used_tool_reads_no_edit_of_all_that_were_made_since(house):
    gate = house.ask()
    pages_read(gate.tool_id)
    before = pages_read(gate.tool_id)
    with superuser() as sql:
        sql.execute("SET session_replication_role = replica")
        sql.execute(
            "INSERT INTO approvals_decision (id, tenant_id, gate_id, user_id, verdict, digest,"
            "   approves, policy_version, counts, at, edits)"
            " SELECT gen_random_uuid(), gen_random_uuid(), md5(n::text)::uuid, gen_random_uuid(),"
            "   'approve', 'd', 'a', 0, true, now(), 'e' FROM generate_series(1, 2000) n"
        )
    assert pages_read(gate.tool_id) < before + 10


def copy(sql, row, times, **more):
    """Write a row again under ids of its own, as nobody may."""
    table, fields = row._meta.db_table, row._meta.concrete_fields
    names = ", ".join(f'"{field.column}"' for field in fields if not field.generated)
    made = ", ".join(f"'{name}', {value}" for name, value in more.items())
    sql.execute("SET session_replication_role = replica")
    sql.execute(
        f"INSERT INTO {table} ({names}) SELECT {names} FROM (SELECT (jsonb_populate_record("
        f"    o, jsonb_build_object('id', gen_random_uuid(), {made}))).*"
        f"    FROM {table} o, generate_series(1, %s) WHERE o.id = %s) made",
        [times, row.pk],
    )
    sql.execute("SET session_replication_role = origin")


def test_what_was_planned_for_few_gates_reads_no_more_once_there_are_many(house, monkeypatch):
    gate, sent = house.ask(), []
    found = hot.look(gate.pk)
    with monkeypatch.context() as watched:
        watched.setattr(hot, "prepared", lambda *given: sent.append(given) or (None,))
        hot.approve(house.people["alice"], found, gate.digest, None)
    (written,) = sent

    with superuser() as sql:
        forget_statistics(sql, ["approvals_gate", "approvals_decision", "interrupts_interrupt"])
        sql.execute("SET plan_cache_mode = force_generic_plan")
        read = []
        for times in (150, 1500):
            copy(sql, gate, times, step_id="gen_random_uuid()")
            copy(sql, gate.interrupt, times, step="gen_random_uuid()")
            read.append(pages_of(sql, gate, written))

    few, many = read
    assert many["see"] < few["see"] + 5
    assert many["like"] < few["like"] + 20
    assert many["approve"] < few["approve"] + 20


def pages_of(sql, gate, written):
    """Count the pages that seeing a gate, its like, and writing its approval take; nothing is kept."""
    read = {}
    like = f"SELECT {similar_sql('%b::uuid')}", [gate.tool_id]
    for name, (text, given) in {
        "see": (hot.SEE, [gate.pk]),
        "like": like,
        "approve": written,
    }.items():
        with sql.transaction(force_rollback=True):
            sql.execute(f"SET LOCAL ROLE {APP}")
            sql.execute("SELECT set_config('abeyance.tenant_id', %s, true)", [str(gate.tenant_id)])
            asked = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT json) {text.replace('%b', '%s')}"
            for _ in range(2):  # what is read to plan it comes first
                with sql.transaction(force_rollback=True):
                    (plan,) = sql.execute(asked, given).fetchone()[0]
        read[name] = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
    return read
