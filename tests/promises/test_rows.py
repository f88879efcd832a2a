"""Runs, steps, attempts, receipts and journals: what no statement can make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction

from approvals.models import GATE_MOVES
from interrupts.models import Attempt, Checkpoint, Receipt, Run, Step, Tool, ToolVersion
from interrupts.models.states import RUN_MOVES, STEP_MOVES, VERDICT_MOVES
from tenants.ids import uuid7
from tenants.models import IdempotentAnswer, JournalEntry, Tenant
from tests.database import as_owner
from tests.interrupts.history import assert_history_holds, broken_link
from tests.interrupts.house import fresh
from tests.threads import crew_of


@contextmanager
def broken(promise: str) -> Iterator[None]:
    """Hold the block to breaking this promise, by the database's own word."""
    with pytest.raises(IntegrityError, match=promise), transaction.atomic():
        yield


@pytest.fixture
def begun(house):
    """A run with a step of the agent's own that is claimed."""
    house.tool("t", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}), parallel=True)[:1]
    return run, step, house.claim(step)


def as_another_tenant(work: Callable[[], None]) -> None:
    """Do it as a tenant that has just been made, on a connection of its own."""
    other = uuid7()

    def run() -> None:
        Tenant.objects.create(id=other, slug="umbrella", name="Umbrella")
        work()

    with crew_of(other) as crew:
        crew.start(run).result()


# One of each


def test_a_step_has_one_live_attempt(begun):
    run, step, attempt = begun
    with broken("one_live_attempt_per_step"):
        Attempt.objects.create(step=step, run=run, fence=2, epoch=1, started_at=attempt.started_at)


def test_a_fence_is_given_once(begun):
    run, step, attempt = begun
    now = attempt.started_at
    with broken("attempt_fence_once"):
        Attempt.objects.create(step=step, run=run, fence=1, epoch=1, started_at=now, settled_at=now)


def test_a_key_names_one_step_of_a_run(house):
    house.tool("t")
    run = house.run()
    step, _ = house.keyed(run, "k", "t", {"n": 1})
    (other,) = house.propose(run, ("t", {"n": 2}))
    with broken("step_key_once_in_run"):
        Step.objects.filter(pk=other.pk).update(key=step.key)


def test_an_idempotency_key_names_one_answer(house):
    def keep():
        IdempotentAnswer.objects.create(
            caller="user:x", key="k", fingerprint=b"f", status=201, body=b""
        )

    keep()
    with broken("idempotency_key_names_one_answer"):
        keep()


# Moves


@pytest.mark.parametrize(
    ("start", "to"),
    [("completed", "running"), ("cancelled", "completed"), ("failed", "suspended")],
)
def test_a_run_moves_as_the_table_of_moves_says(house, start, to):
    run = house.run()
    with as_owner() as owner:
        owner.execute("ALTER TABLE interrupts_run DISABLE TRIGGER USER")
        try:
            Run.objects.filter(pk=run.pk).update(status=start, ended_at=run.created_at)
        finally:
            owner.execute("ALTER TABLE interrupts_run ENABLE TRIGGER USER")
    with broken("interrupts_run_status_moves"):
        Run.objects.filter(pk=run.pk).update(
            status=to,
            ended_at=None if to in ("running", "suspended") else run.created_at,
            open_interrupts=int(to == "suspended"),
            suspension="safely_suspended" if to == "suspended" else None,
        )


@pytest.mark.parametrize("to", ["waiting", "revised", "rejected", "proposed"])
def test_a_step_moves_as_the_table_of_moves_says(begun, to):
    _, step, _ = begun
    with broken("interrupts_step_status_moves"):
        Step.objects.filter(pk=step.pk).update(status=to)


def test_an_interrupt_is_not_opened_again(house):
    run = house.run()
    stop = house.respond(house.stop(run))
    with broken("interrupts_interrupt_status_moves"):
        type(stop).objects.filter(pk=stop.pk).update(
            status="open", resolution=None, resolved_at=None
        )


MOVED = {
    "approvals_gate.state": GATE_MOVES,
    "interrupts_run.status": RUN_MOVES,
    "interrupts_step.status": STEP_MOVES,
    "interrupts_interrupt.status": {"open": ["resolved"], "resolved": []},
    "interrupts_verdict.status": VERDICT_MOVES,
}


@pytest.mark.django_db
@pytest.mark.parametrize("moved", MOVED)
def test_every_move_that_the_table_of_moves_does_not_have_is_refused_and_no_other(moved):
    """The trigger that the table has, with its condition, is tried on a column of its own."""
    table, column = moved.split(".")
    moves = {str(start): {str(end) for end in ends} for start, ends in MOVED[moved].items()}
    states = sorted({*moves, "", "unheard of"})
    with as_owner() as owner:
        row = owner.execute(
            "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = %s::regclass"
            " AND tgname = %s",
            [table, f"{table}_{column}_moves"],
        ).fetchone()
        owner.execute(f"CREATE TEMP TABLE moved ({column} varchar)")
        owner.execute(row[0].replace(f" ON public.{table} ", " ON moved "))
        done = set()
        for start in states:
            owner.execute("TRUNCATE moved")
            owner.execute("INSERT INTO moved VALUES (%s)", [start])
            for end in states:
                with suppress(psycopg.errors.CheckViolation), owner.transaction():
                    owner.execute(f"UPDATE moved SET {column} = %s", [end])
                    done.add((start, end))
                    raise psycopg.Rollback
    legal = {(start, end) for start, ends in moves.items() for end in ends}
    assert done == legal | {(state, state) for state in states}


# What goes together


@pytest.mark.parametrize("left_out", ["resolution", "resolved_at"])
def test_a_resolved_interrupt_says_how_and_when(house, left_out):
    stop = house.respond(house.stop(house.run()))
    with broken("interrupt_resolution_is_all_or_nothing"):
        type(stop).objects.filter(pk=stop.pk).update(**{left_out: None})


def test_an_open_interrupt_is_not_resolved(house):
    stop = house.stop(house.run())
    with broken("interrupt_resolution_is_all_or_nothing"):
        type(stop).objects.filter(pk=stop.pk).update(resolved_at=stop.opened_at)


def test_a_suspended_run_has_an_open_interrupt(house):
    run = house.run()
    with broken("a_suspended_run_has_an_open_interrupt"):
        Run.objects.filter(pk=run.pk).update(status="suspended", suspension="safely_suspended")


@pytest.mark.parametrize("number", [1, -1])
def test_an_open_interrupt_suspends_its_run(house, number):
    run = house.run()
    with broken("an_open_interrupt_suspends_its_run"):
        Run.objects.filter(pk=run.pk).update(open_interrupts=number)


def test_a_suspension_says_how(house):
    run = house.run()
    house.stop(run)
    with broken("suspension_says_how_a_run_is_suspended"):
        Run.objects.filter(pk=run.pk).update(suspension=None)


def test_an_ended_run_says_when(house):
    run = house.run()
    with broken("an_ended_run_says_when"):
        Run.objects.filter(pk=run.pk).update(status="completed")


def test_nothing_executes_unauthorised(house):
    house.tool("t")
    (step,) = house.propose(house.run(), ("t", {"n": 1}))
    with broken("nothing_executes_unauthorized"):
        Step.objects.filter(pk=step.pk).update(status="executing", authorized_by=None)


@pytest.mark.parametrize("changed", ["digest", "version"])
def test_what_runs_is_what_was_authorised(house, changed):
    version = house.tool("t")
    (step,) = house.propose(house.run(), ("t", {"n": 1}))
    newer = house.new_version(version.tool)
    change = {"digest": "sha256:" + "1" * 64} if changed == "digest" else {"tool_version": newer}
    Step.objects.filter(pk=step.pk).update(**change)
    with broken("what_runs_is_what_was_authorized"):
        Step.objects.filter(pk=step.pk).update(status="executing")


# Tenants


def test_no_row_of_another_tenant_is_seen_or_changed_whatever_the_code_forgets(begun):
    run, step, _ = begun

    def look() -> None:
        with connection.cursor() as cursor:
            for table in ("interrupts_run", "interrupts_step", "interrupts_attempt"):
                cursor.execute(f"SELECT count(*) FROM {table}")
                assert cursor.fetchone() == (0,)
            cursor.execute("UPDATE interrupts_run SET goal = 'mine now'")
            assert cursor.rowcount == 0
        assert Run.unscoped.count() == 0

    as_another_tenant(look)
    assert fresh(run).goal == "g"
    assert fresh(step).status == "executing"


def test_no_row_is_written_into_another_tenant(house):
    run = house.run()

    def write() -> None:
        stranger = Run(agent_id=run.agent_id, tenant_id=house.tenant.pk, workflow="w", goal="g")
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            stranger.save(force_insert=True)

    as_another_tenant(write)


def test_no_row_refers_to_one_of_another_tenant(house, begun):
    _, step, _ = begun
    names = [field.attname for field in Step._meta.concrete_fields]
    values = {name: getattr(step, name) for name in names}

    def steal() -> None:
        tool = Tool.objects.create(name="t")
        own = house.new_version(tool, kind="agent")  # only the run is another's
        values.update(id=uuid7(), tenant_id=own.tenant_id, tool_id=tool.pk, tool_version_id=own.pk)
        values["position"] = 99
        with broken("interrupts_step_run_id_same_tenant"):
            Step(**values).save(force_insert=True)

    as_another_tenant(steal)


# History


def owners_word(statement: str, *values: object) -> None:
    """What the app role has no right to is refused to the owner too."""
    with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"), as_owner() as owner:
        owner.execute(statement, values)


@pytest.mark.parametrize("act", ["UPDATE {} SET {}", "DELETE FROM {}"])
def test_a_journal_is_only_appended_to(house, act):
    run = house.run()
    owners_word(act.format("tenants_journalentry", "text = ''") + " WHERE stream = %s", run.pk)
    assert broken_link(run.pk) is None


@pytest.mark.parametrize("act", ["UPDATE {} SET {}", "DELETE FROM {}"])
def test_receipts_are_only_appended_to(house, begun, act):
    run, _, attempt = begun
    house.report(attempt)
    owners_word(
        act.format("interrupts_receipt", "outcome = 'failed'") + " WHERE run_id = %s", run.pk
    )


@pytest.mark.parametrize("model", [ToolVersion, Checkpoint])
def test_versions_and_checkpoints_stay_what_they_are(house, model):
    house.tool("t")
    house.stop(house.run())
    table = model._meta.db_table
    owners_word(f"UPDATE {table} SET digest = 'sha256:1'")


@pytest.mark.parametrize(
    "table", ["tenants_journalentry", "interrupts_receipt", "interrupts_checkpoint"]
)
@pytest.mark.parametrize("right", ["UPDATE", "DELETE", "TRUNCATE"])
def test_the_app_role_has_no_right_to_rewrite_history(house, table, right):
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege(current_user, %s, %s)", [table, right])
        assert cursor.fetchone() == (False,)


def test_a_journal_has_no_gap(house):
    run = house.run()
    last = JournalEntry.objects.filter(stream=run.pk).latest("seq")
    with broken("journal_follows_its_predecessor"):
        JournalEntry.objects.create(
            stream=run.pk,
            seq=last.seq + 2,
            kind="k",
            at=last.at,
            text="{}",
            key_id="test",
            hash=b"h",
        )


@pytest.mark.parametrize("seq", [0, -1])
def test_a_journal_starts_at_one(house, seq):
    with pytest.raises(IntegrityError), transaction.atomic():
        JournalEntry.objects.create(
            stream=uuid7(),
            seq=seq,
            kind="k",
            at=house.tenant.created_at,
            text="{}",
            key_id="test",
            hash=b"h",
        )


def test_each_entry_is_chained_to_the_one_before_it_under_a_key_outside_the_database(house):
    house.tool("t")
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    house.work(run)
    house.respond(house.stop(run))
    assert_history_holds(run)


@pytest.mark.parametrize(
    "change", ["text = replace(text, 'run', 'ran')", "hash = sha256(hash)", "kind = 'run.ran'"]
)
def test_an_entry_that_was_changed_all_the_same_breaks_the_chain(house, change):
    run = house.run()
    house.stop(run)
    with as_owner() as owner:
        owner.execute("ALTER TABLE tenants_journalentry DISABLE TRIGGER USER")
        try:
            owner.execute(
                f"UPDATE tenants_journalentry SET {change} WHERE stream = %s AND seq = 2", [run.pk]
            )
        finally:
            owner.execute("ALTER TABLE tenants_journalentry ENABLE TRIGGER USER")
    assert broken_link(run.pk) == 2


def test_receipts_carry_what_was_seen_for_good(house, begun):
    _, step, attempt = begun
    house.report(attempt, result={"a": 1})
    receipt = Receipt.objects.get(step=step)
    assert receipt.outcome == "succeeded"
    with pytest.raises(Exception, match="permission denied"), transaction.atomic():
        Receipt.objects.filter(pk=receipt.pk).update(outcome="failed")
