"""Each column of the tables that hold a run's state, changed as whoever owns the database may."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from approvals.models import Gate
from approvals.services import decisions, questions
from interrupts import hot, verification
from interrupts.errors import Damaged
from interrupts.models import Attempt, Interrupt, Outcome, Run, Source
from interrupts.services import compensating, damage, holds, judging, responses, runs, starting
from interrupts.services.holds import Asked
from interrupts.transitions import attempts
from interrupts.transitions.receipts import Seen
from interrupts.verification import Told, live
from interrupts.work import Work, working
from tenants.ids import uuid7
from tenants.journal import SYSTEM
from tenants.models import JournalEntry
from tests.approvals.house import fresh
from tests.database import superuser
from tests.interrupts.tampering import UNVOUCHED

TABLES = sorted(UNVOUCHED)
NOBODY = {
    "kind": "python",
    "function": "nobody",
    "timeout": 1,
    "attempts": 1,
    "backoff": 1,
    "before_next": True,
}


@pytest.fixture
def history(house):
    """A run with two decided gates, one edited and one rejected, a stop revised, usage, questions,
    and a read that a verifier was asked about in vain.
    """
    house.tool("crm.get", effect="read", verifier=NOBODY)
    house.policy({"name": "reads", "trigger": "action", "tools": ["crm.get"], "then": "allow"},
                 budgets={"steps": 50, "cost": "9.50"})  # fmt: skip
    run = house.run(inputs={"order": "o-1"}, labels={"team": "a"}, idle_after=600.0)
    runs.report_usage(house.agent, run.pk, tokens=5)
    first = house.ask(run=run, reasoning="Bob asked for it", confidence=0.5, key="k-1")
    house.look(first, "alice", "carol")
    house.decide("alice", first, arguments={"payment": "p-1", "amount": "19.00"})
    house.work(run)
    read = house.propose("crm.get", run=run)
    house.work(run)
    judging.judge(read.pk, "w")
    answer(house, Interrupt.objects.get(run=run, reason="verifier_rejected"), "resume")
    second = house.ask(run=run)
    house.decide("alice", second, "reject", reason="not this one")
    stop, _ = holds.open_interrupt(
        house.people["olga"], run.pk, asked=Asked(reason="operator_stop", note="look")
    )
    value = {"guidance": "ask Bob first", "withdraw": []}
    answer(house, stop, "revise", value=value)
    runs.acknowledge(house.agent, run.pk, guidance=[one.pk for one in run.guidance.all()])
    third = house.ask("payments.refund", {"payment": "p-2", "amount": "5.00"}, run=run)
    for text in ("Which order?", "Who wants it?"):
        asked = questions.ask_agent(house.people["alice"], third.pk, text=text).question
    questions.answer_question(house.agent, third.pk, asked.pk, text="Bob does.")
    return fresh(run)


def answer(house, interrupt, resolution, **more):
    given = {"checkpoint": interrupt.checkpoint, "resolution": resolution, **more}
    return responses.respond(house.people["olga"], interrupt.pk, **given)[0]


def told(run):
    """What `verify` tells of the tenant and of the run, if there is one."""
    found = [str(fault) for fault in verification.of_tenant()]
    for row in Run.objects.filter(pk=run.pk):
        found += [str(fault) for fault in verification.of_run(row)]
    return found


def columns(table: str) -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, udt_name FROM information_schema.columns"
            " WHERE table_schema = 'public' AND table_name = %s AND is_generated = 'NEVER'"
            " ORDER BY ordinal_position",
            [table],
        )
        return cursor.fetchall()


def rows_of(owner: Any, table: str, run: Run) -> list[Any]:
    of = {
        "interrupts_run": "id = %s",
        "approvals_decision": "gate_id IN (SELECT id FROM approvals_gate WHERE run_id = %s)",
        "approvals_view": "gate_id IN (SELECT id FROM approvals_gate WHERE run_id = %s)",
    }
    where = of.get(table, "run_id = %s")
    return [
        row[0]
        for row in owner.execute(
            f"SELECT id FROM {table} WHERE {where} ORDER BY id", [run.pk]
        ).fetchall()
    ]


OTHERWISE = {
    "uuid": "'0191e4d0-0000-7000-8000-000000000000'::uuid",
    "text": "coalesce({c}, '') || 'x'",
    "varchar": "left('x' || coalesce({c}, ''), 6)",
    "int2": "coalesce({c}, 0) + 1000",
    "int4": "coalesce({c}, 0) + 1000",
    "int8": "coalesce({c}, 0) + 1000",
    "numeric": "coalesce({c}, 0) + 1000",
    "float8": "coalesce({c}, 0) + 1000",
    "bool": "NOT {c}",
    "date": "coalesce({c}, current_date) - 1",
    "timestamptz": "coalesce({c}, now()) - interval '1 day'",
    "jsonb": "'{{\"forged\": true}}'::jsonb",
    "bytea": "sha256(coalesce({c}, ''))",
    "_uuid": "ARRAY['0191e4d0-0000-7000-8000-000000000000'::uuid]",
    "_varchar": "ARRAY['forged']::varchar[]",
}


@pytest.fixture
def unguarded():
    """The cluster's superuser, whom no trigger and no reference holds back, nor any check."""
    with superuser() as sql:
        sql.execute("SET session_replication_role = replica")
        checks = sql.execute(
            "SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid)"
            " FROM pg_constraint WHERE contype = 'c' AND conrelid::regclass::text = ANY (%s)",
            [TABLES],
        ).fetchall()
        for table, name, _ in checks:
            sql.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        try:
            yield sql
        finally:
            for table, name, definition in checks:
                sql.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")


def test_what_happened_verifies(history):
    assert told(history) == []


@pytest.mark.parametrize("table", TABLES)
def test_each_column_is_vouched_for_or_named_with_a_reason(history, unguarded, table):
    untold = []
    rows = rows_of(unguarded, table, history)
    for pk in dict.fromkeys([rows[0], rows[-1]]):
        for column, kind in columns(table):
            name = f'"{column}"'
            (before,) = unguarded.execute(
                f"SELECT {name}::text FROM {table} WHERE id = %s", [pk]
            ).fetchone()
            otherwise = OTHERWISE[kind].format(c=name)
            changed = unguarded.execute(
                f"UPDATE {table} SET {name} = {otherwise} WHERE id = %s RETURNING id, {name}::text",
                [pk],
            ).fetchone()
            assert changed[1] != before, f"{column} was not changed"
            if not told(history) and column not in UNVOUCHED[table]:
                untold.append(column)
            unguarded.execute(
                f"UPDATE {table} SET {name} = %s::{kind} WHERE id = %s", [before, changed[0]]
            )
    assert untold == []
    assert told(history) == []


@pytest.mark.parametrize("table", TABLES)
def test_each_row_that_is_gone_is_told(history, unguarded, table):
    pk = rows_of(unguarded, table, history)[-1]
    unguarded.execute(f"DELETE FROM {table} WHERE id = %s", [pk])
    if table == "approvals_view":  # nobody has seen it then, which lets nothing through
        return
    assert told(history) != []


def test_what_is_named_as_not_vouched_for_is_there(transactional_db):
    for table, named in UNVOUCHED.items():
        assert named.keys() <= {column for column, _ in columns(table)}
        assert all(len(reason) > 10 for reason in named.values())


# What nobody decided

NOT_BEGUN = Seen(outcome=Outcome.NOT_PERFORMED, source=Source.EXECUTOR, by="worker:w")


def advance(house, run, attempt):
    return hot.advance(
        house.agent.tenant_id,
        run,
        worker="w",
        done=(),
        attempt=attempt,
        epoch=Run.objects.get(pk=run).epoch,
        seconds_left=60,
    )


def forged(sql: Any, gate: Gate) -> None:
    """Everything that an approval writes, but what takes the key."""
    step, run = gate.step_id, gate.run_id
    decision = uuid7()
    sql.execute("SET session_replication_role = replica")
    sql.execute(
        "INSERT INTO approvals_decision (id, tenant_id, gate_id, user_id, verdict, digest,"
        "   approves, policy_version, counts, at)"
        " SELECT %s, g.tenant_id, g.id, u.id, 'approve', g.digest, g.arguments_digest,"
        "   g.policy_version, true, now() FROM approvals_gate g, tenants_user u"
        " WHERE g.id = %s AND u.username = 'alice'",
        [decision, gate.pk],
    )
    sql.execute(
        "UPDATE approvals_gate SET state = 'approved', settled_at = now(), due_at = NULL"
        " WHERE id = %s",
        [gate.pk],
    )
    sql.execute(
        "UPDATE interrupts_step SET status = 'ready', held_by = NULL, authorized_by = 'decision',"
        "   authorized_rule = 'default', authorized_gate = gate, authorized_digest = digest,"
        "   authorized_under = (SELECT t.authority_version FROM tenants_tenant t"
        "     WHERE t.id = tenant_id), authorized_tool_version = tool_version_id,"
        "   authorized_policy_version = 0 WHERE id = %s",
        [step],
    )
    sql.execute(
        "UPDATE interrupts_interrupt SET status = 'resolved', resolution = 'resume',"
        "   resolved_at = now() WHERE id = %s",
        [gate.interrupt_id],
    )
    sql.execute(
        "UPDATE interrupts_run SET status = 'running', suspension = NULL, open_interrupts = 0"
        " WHERE id = %s",
        [run],
    )


def test_a_decision_that_was_forged_starts_nothing_and_is_shown(house, unguarded):
    gate = house.ask()
    forged(unguarded, gate)

    assert house.work(gate.run_id) == 0

    assert house.calls == []
    run = Run.objects.get(pk=gate.run_id)
    assert run.damage is not None
    assert fresh(gate.step).status == "ready"
    status, shown, _ = house.request("olga", "GET", f"/runs/{run.pk}")
    assert (status, shown["damaged"]["what"]) == (200, run.damage)
    assert told(run) != []


def test_a_claim_of_what_was_forged_is_refused(house, unguarded):
    house.tool(executor={"kind": "agent", "lease": 60}, executor_kind="agent")
    gate = house.ask()
    forged(unguarded, gate)
    before = house.trace(gate)

    with pytest.raises(Damaged):
        starting.claim_step(house.agent, gate.step_id)

    assert house.trace(gate) == before


def test_an_approval_of_a_gate_that_was_lightened_starts_nothing(house, unguarded):
    house.policy({"name": "two", "trigger": "action", "tools": ["payments.*"], "then": "approve",
                  "quorum": 2})  # fmt: skip
    gate = house.ask()
    unguarded.execute("UPDATE approvals_gate SET quorum = 1 WHERE id = %s", [gate.pk])
    house.look(gate, "alice")

    with suppress(Damaged):
        house.decide("alice", gate)
    house.work(gate.run_id)

    assert house.calls == []


def test_what_has_run_is_not_run_again_whatever_its_row_says(house, unguarded):
    gate = house.ask()
    house.look(gate, "alice")
    house.decide("alice", gate)
    assert house.work(gate.run_id) == 1
    unguarded.execute(
        "UPDATE interrupts_step SET status = 'ready', settled_at = NULL, outcome = NULL"
        " WHERE id = %s",
        [gate.step_id],
    )
    unguarded.execute("UPDATE interrupts_run SET next_step = 1 WHERE id = %s", [gate.run_id])

    assert house.work(gate.run_id) == 0

    assert len(house.calls) == 1
    assert Run.objects.get(pk=gate.run_id).damage is not None


def test_an_effect_whose_row_calls_it_a_read_is_not_made(house, unguarded):
    gate = house.ask()
    house.look(gate, "alice")
    house.decide("alice", gate)
    unguarded.execute("UPDATE interrupts_step SET effect = 'read' WHERE id = %s", [gate.step_id])

    house.work(gate.run_id)

    assert house.calls == []
    assert Run.objects.get(pk=gate.run_id).damage is not None
    assert "step.settled" not in house.kinds(gate.run_id)


def test_a_read_whose_approval_is_taken_back_before_it_is_made_is_left_and_no_damage(
    house, monkeypatch
):
    house.tool("crm.get", effect="read")
    house.policy({"name": "ask", "trigger": "action", "tools": ["crm.get"], "then": "approve"})
    gate = house.ask("crm.get")
    house.look(gate, "alice")
    house.decide("alice", gate)
    advance, check_ready, turns = hot.advance, live.check_ready, []

    def taken_back(*args, **more):
        at = advance(*args, **more)
        if at.verdict == "read":
            decision = fresh(gate).decisions.get()
            decisions.withdraw_decision(house.people["alice"], gate.pk, decision.pk)
        return at

    def of_before(run):
        """What the journal said before the step was authorised, which a turn may have read."""
        turns.append(check_ready(run))
        return Told() if len(turns) == 1 else turns[-1]

    monkeypatch.setattr(hot, "advance", taken_back)
    monkeypatch.setattr(live, "check_ready", of_before)

    house.work(gate.run_id)

    assert house.calls == []
    assert fresh(gate).state == "pending"
    assert Run.objects.get(pk=gate.run_id).damage is None
    assert told(fresh(gate).run) == []
    assert len(turns) == 2


def test_what_was_intended_stays_so_when_another_call_is_authorised_in_its_place(house):
    gate = house.ask()
    house.look(gate, "alice")
    house.decide("alice", gate)
    step = fresh(gate.step)
    attempt = uuid7()
    advance(house, gate.run_id, attempt)
    with working(gate.run_id, SYSTEM) as work:
        attempts.record(work, fresh(step), Attempt.objects.get(), NOT_BEGUN)
    house.tool()  # a newer version
    assert not starting.renew(gate.run_id, step.pk, SYSTEM)
    newer = Gate.objects.get(pk=fresh(step).gate)
    house.look(newer, "alice")
    house.decide("alice", newer)

    read, _ = live.read_on(gate.run_id)

    assert fresh(step).authorized_digest != step.digest
    assert live.intended(read, step.pk, attempt, step.digest)
    assert not live.intended(read, step.pk, uuid7(), step.digest)
    assert not live.intended(read, uuid7(), attempt, step.digest)
    assert not live.intended(read, step.pk, attempt, "sha256:another")


def test_an_undoing_that_nobody_asked_for_is_not_done(house, unguarded):
    gate = house.ask()
    house.look(gate, "alice")
    house.decide("alice", gate)
    house.work(gate.run_id)
    unguarded.execute("UPDATE interrupts_step SET undo_wanted = true WHERE id = %s", [gate.step_id])

    compensating.compensate(gate.step_id, "a worker")

    assert fresh(gate.step).status == "succeeded"
    assert Run.objects.get(pk=gate.run_id).damage is not None


def test_a_damaged_run_goes_on_once_all_of_it_verifies_again(house, unguarded):
    gate = house.ask()
    house.look(gate, "alice")
    house.decide("alice", gate)
    unguarded.execute(
        "UPDATE interrupts_step SET authorized_under = 0 WHERE id = %s", [gate.step_id]
    )
    assert house.work(gate.run_id) == 0
    unguarded.execute(
        "UPDATE interrupts_step SET authorized_under = (SELECT authority_version"
        "   FROM tenants_tenant LIMIT 1) WHERE id = %s",
        [gate.step_id],
    )
    assert house.work(gate.run_id) == 0  # till somebody has verified it

    call_command("verify", "--no-anchor", run=str(gate.run_id), stdout=io.StringIO())

    assert house.work(gate.run_id) == 1
    assert Run.objects.get(pk=gate.run_id).damage is None


def test_a_gate_of_a_damaged_run_is_not_decided(house):
    gate = house.ask()
    house.look(gate, "alice")
    damage.show(gate.run_id, "entry 1 is gone")
    before = house.trace(gate)

    with pytest.raises(Damaged):
        house.decide("alice", gate)

    assert house.trace(gate) == before


# Journals that say less

NEWER = {"imprint", "asked", "state", "budget"}


def test_a_run_of_a_release_whose_journals_said_less_is_held_to_what_they_say(
    house, unguarded, monkeypatch
):
    note = Work.note

    def note_less(work, kind, **data):
        note(work, kind, **{name: said for name, said in data.items() if name not in NEWER})

    monkeypatch.setattr(Work, "note", note_less)
    gate = house.ask()
    house.look(gate, "alice")
    house.decide("alice", gate)
    assert house.work(gate.run_id) == 1
    run = Run.objects.get(pk=gate.run_id)
    assert told(run) == []
    for table, column in (
        ("interrupts_run", "epoch"),
        ("interrupts_step", "status"),
        ("interrupts_receipt", "external_id"),
        ("interrupts_checkpoint", "digest"),
    ):
        pk = rows_of(unguarded, table, run)[0]
        (before,) = unguarded.execute(
            f"SELECT {column}::text FROM {table} WHERE id = %s", [pk]
        ).fetchone()
        unguarded.execute(f"UPDATE {table} SET {column} = '7' WHERE id = %s", [pk])
        assert told(run) != [], table
        unguarded.execute(f"UPDATE {table} SET {column} = %s WHERE id = %s", [before, pk])
    assert told(run) == []


# Keys


def test_a_key_is_rotated_without_a_rewrite(house, settings):
    gate = house.ask()
    house.look(gate, "alice")
    before = list(JournalEntry.objects.filter(stream=gate.run_id).order_by("seq").values())

    old = settings.ABEYANCE_CURRENT_KEY
    settings.ABEYANCE_MASTER_KEYS = {"new": b"n" * 32, **settings.ABEYANCE_MASTER_KEYS}
    settings.ABEYANCE_CURRENT_KEY = "new"
    house.decide("alice", gate)
    assert house.work(gate.run_id) == 1

    run = Run.objects.get(pk=gate.run_id)
    entries = list(JournalEntry.objects.filter(stream=run.pk).order_by("seq").values())
    assert entries[: len(before)] == before
    assert {entry["key_id"] for entry in entries} == {old, "new"}
    assert told(run) == []

    settings.ABEYANCE_MASTER_KEYS = {"new": b"n" * 32}
    assert "which nobody has" in told(run)[0]
