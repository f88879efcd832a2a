"""Tampering as whoever owns the database: told by `verify`, and nothing goes on from it."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, transaction

from interrupts import anchors, verification, worker
from interrupts.errors import Damaged
from interrupts.models import Receipt
from interrupts.services import damage
from interrupts.verification import chains, live
from interrupts.work import locked
from tenants.journal import SYSTEM, Entry, append_to_tenant
from tenants.models import JournalEntry
from tenants.statements import prepared_rows
from tests.database import as_owner as owner
from tests.database import superuser
from tests.interrupts.house import fresh, kinds, open_of, refused


@pytest.fixture
def as_owner():
    """Run SQL as the role that owns the tables, with its guards taken away first."""

    def execute(statement, parameters=(), table="tenants_journalentry"):
        with owner() as connection:
            connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            connection.execute(statement, parameters)
            connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")

    return execute


@pytest.fixture
def history(house):
    """A run with an effect, a read, a stop and its answer, an unknown and what was found out."""
    house.tool("t")
    house.tool("crm.get", effect="read")
    run = house.run()
    house.propose(run, ("t", {"n": 1}), ("crm.get", {"n": 2}))
    house.work(run)
    house.respond(house.stop(run))
    _, step = house.lost(run=run, n=3)
    house.recover(step, "performed")
    house.stop(run)
    return fresh(run)


def told(run):
    return [str(fault) for fault in verification.of_run(fresh(run))]


def test_what_happened_verifies(house, history):
    assert told(history) == []
    assert list(verification.of_tenant()) == []
    out = io.StringIO()
    call_command("verify", "--no-anchor", stdout=out)
    assert out.getvalue() == "1 tenants, 1 runs, 0 faults\n"


# What is written of a run that is found damaged: that it is, and when it is looked at again.
SHOWN = frozenset({"damage", "damaged_at", "state_version", "due_at"})
TAMPERING = {
    "an entry rewritten": (
        (
            "UPDATE tenants_journalentry SET text = replace(text, 'succeeded', 'failed')"
            " WHERE stream = %s AND kind = 'receipt.recorded'"
        ),
        "tenants_journalentry",
    ),
    "an entry rewritten with its hash": (
        (
            "UPDATE tenants_journalentry SET text = replace(text, 'succeeded', 'failed'),"
            " hash = sha256(text::bytea) WHERE stream = %s AND kind = 'receipt.recorded'"
        ),
        "tenants_journalentry",
    ),
    "the last entry removed": (
        (
            "DELETE FROM tenants_journalentry WHERE stream = %s AND seq ="
            " (SELECT max(seq) FROM tenants_journalentry WHERE stream = %s)"
        ),
        "tenants_journalentry",
    ),
    "another key named": (
        "UPDATE tenants_journalentry SET key_id = 'mine' WHERE stream = %s AND seq = 2",
        "tenants_journalentry",
    ),
    "a kind relabelled": (
        "UPDATE tenants_journalentry SET kind = 'step.denied' WHERE stream = %s AND seq = 2",
        "tenants_journalentry",
    ),
    "the head put back": (
        "UPDATE interrupts_run SET journal_seq = journal_seq - 1 WHERE id = %s",
        "interrupts_run",
    ),
}
ROWS = {
    "a status changed": ("UPDATE interrupts_step SET status = 'failed' WHERE run_id = %s",
                         "interrupts_step"),
    "a receipt removed": ("DELETE FROM interrupts_receipt WHERE run_id = %s", "interrupts_receipt"),
    "a receipt changed": ("UPDATE interrupts_receipt SET outcome = 'failed' WHERE run_id = %s",
                          "interrupts_receipt"),
    "an epoch changed": ("UPDATE interrupts_run SET epoch = 9 WHERE id = %s", "interrupts_run"),
    "a checkpoint changed": (("UPDATE interrupts_checkpoint SET next_step = 1, status = 'running'"
                             " WHERE run_id = %s"), "interrupts_checkpoint"),
    "arguments replaced": (
        ("UPDATE interrupts_content SET body = '{\"n\":999}'::bytea WHERE digest IN"
        " (SELECT arguments FROM interrupts_step WHERE run_id = %s)"), "interrupts_content"),
}  # fmt: skip


@pytest.mark.parametrize("how", [*TAMPERING, *ROWS])
def test_tampering_is_told(house, history, as_owner, how):
    statement, table = (TAMPERING | ROWS)[how]
    as_owner(statement, [history.pk] * statement.count("%s"), table)
    assert told(history) != []
    with pytest.raises(CommandError):
        call_command("verify", "--no-anchor", run=str(history.pk), stdout=io.StringIO())


@pytest.mark.parametrize("how", TAMPERING)
def test_a_run_whose_history_does_not_verify_is_not_resumed(house, history, as_owner, how):
    statement, table = TAMPERING[how]
    as_owner(statement, [history.pk] * statement.count("%s"), table)
    with refused(Damaged, but=SHOWN):
        house.respond(open_of(history))
    assert fresh(history).damage is not None
    assert house.work(history) == 0


def test_a_run_that_is_found_damaged_during_a_call_starts_nothing_more(house):
    house.tool("t")
    run = house.run()
    first, second = house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}))
    house.behaviour["t"] = lambda *_: damage.show(run.pk, "entry 1 is gone")

    assert house.work(run) == 1

    assert house.ran == [1]
    assert (fresh(first).status, fresh(second).status) == ("succeeded", "ready")
    assert fresh(second).fence == 0


def test_a_receipt_taken_out_of_a_chain_linked_again_with_a_wrong_key_is_told(
    house, history, as_owner
):
    receipt = Receipt.objects.filter(run=history).earliest("id")
    as_owner("DELETE FROM interrupts_receipt WHERE id = %s", [receipt.pk], "interrupts_receipt")
    as_owner(
        "UPDATE tenants_journalentry SET kind = 'note',"
        " text = replace(text, '\"receipt.recorded\"', '\"note\"')"
        " WHERE stream = %s AND position(%s IN text) > 0",
        [history.pk, f'"receipt":"{receipt.pk}"'],
    )
    as_owner(
        "WITH RECURSIVE chain AS ("
        " SELECT seq, sha256('wrong'::bytea || text::bytea) AS hash"
        "   FROM tenants_journalentry WHERE stream = %s AND seq = 1"
        " UNION ALL SELECT e.seq, sha256('wrong'::bytea || c.hash || e.text::bytea)"
        "   FROM chain c JOIN tenants_journalentry e ON e.stream = %s AND e.seq = c.seq + 1)"
        " UPDATE tenants_journalentry e SET hash = chain.hash FROM chain"
        " WHERE e.stream = %s AND e.seq = chain.seq",
        [history.pk] * 3,
    )
    last = JournalEntry.objects.filter(stream=history.pk).order_by("-seq").first()
    as_owner(
        "UPDATE interrupts_run SET journal_hash = %s WHERE id = %s",
        [last.hash, history.pk],
        "interrupts_run",
    )
    assert "its hash is not its text's" in told(history)[0]
    with refused(Damaged, but=SHOWN):
        house.respond(open_of(history))
    assert house.work(history) == 0


@pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
def test_a_database_put_back_is_told_by_the_anchor(house, history, as_owner, settings, tmp_path):
    settings.ABEYANCE_ANCHOR = str(tmp_path / "anchor.jsonl")
    anchors.forget()
    before = fresh(history)
    entries = JournalEntry.objects.filter(stream=history.pk).count()
    house.respond(open_of(history))
    anchors.write()
    assert list(anchors.faults(anchors.read())) == []

    # As a restored backup has it: the chain is whole, only shorter.
    as_owner(
        "DELETE FROM tenants_journalentry WHERE stream = %s AND seq > %s", [history.pk, entries]
    )
    as_owner(
        "UPDATE interrupts_run SET journal_seq = %s, journal_hash = %s WHERE id = %s",
        [before.journal_seq, before.journal_hash, history.pk],
        "interrupts_run",
    )
    assert verification.run_chain_fault(fresh(history)) is None
    (fault,) = anchors.faults(anchors.read())
    assert fault.stream == history.pk
    for asked in ({}, {"run": str(history.pk)}):
        with pytest.raises(CommandError):
            call_command("verify", **asked, stdout=io.StringIO())
    assert fresh(history).damage is not None


def test_what_may_start_is_read_once_however_much_a_run_has_behind_it(house):
    house.tool("t")
    run = house.run()
    for n in range(5):
        house.propose(run, ("t", {"n": n}))
    rows = prepared_rows(live._SINCE, [run.pk, 0, 0])
    assert len(rows) > 5
    assert [row[3] is None for row in rows] == [False] + [True] * (len(rows) - 1)
    (_, first), (_, again) = live.read_on(run.pk), live.read_on(run.pk)
    assert [step.status for step in first] == ["ready"] * 5
    assert again == first  # where no entry is new they are told all the same


# What goes on meanwhile is no damage


class Undone(Exception):
    pass


def read_and_undone(run):
    """Read what a transaction wrote in the journal, which is rolled back then."""
    with transaction.atomic():
        work = locked(run.pk, SYSTEM)
        work.note("run.looked_at")
        work.finish()
        live.read_on(run.pk)
        raise Undone


def while_read(monkeypatch, stream, goes_on):
    """Have something happen of a stream between its head, which is read first, and its entries."""
    said, left = chains.said, [goes_on]

    def reading(of, seq, head):
        if of == stream and left:
            left.pop()()
        return said(of, seq, head)

    monkeypatch.setattr(chains, "said", reading)


def test_a_run_that_goes_on_while_it_is_verified_is_not_damaged(house, history, monkeypatch):
    while_read(monkeypatch, history.pk, lambda: house.respond(open_of(history)))
    out = io.StringIO()
    call_command("verify", "--no-anchor", stdout=out)
    assert out.getvalue() == "1 tenants, 1 runs, 0 faults\n"
    assert fresh(history).damage is None


def test_a_tenant_that_goes_on_while_it_is_verified_is_told_of_no_fault(
    house, history, monkeypatch
):
    while_read(
        monkeypatch, house.tenant.pk, lambda: append_to_tenant(SYSTEM, Entry("tenant.renamed"))
    )
    assert list(verification.of_tenant()) == []


def test_what_was_read_of_a_transaction_that_was_rolled_back_is_no_damage(house):
    house.tool("t", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    with pytest.raises(Undone):
        read_and_undone(run)
    with transaction.atomic():
        locked(run.pk, SYSTEM)
        live.check_one(run.pk, fresh(step))


def test_a_connection_lost_between_an_intent_and_its_call_loses_nothing(house, monkeypatch):
    house.tool("t")
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    read_on, lost = live.read_on, []

    def losing(run_id):
        if not lost:
            lost.append(run_id)
            raise OperationalError("the connection was lost")
        return read_on(run_id)

    def propose_more(given, _):
        house.propose(run, ("u", {"n": 2}))
        monkeypatch.setattr(live, "read_on", losing)
        return given

    house.tool("u")
    house.behaviour["t"] = propose_more
    monkeypatch.setattr(worker, "RECORD_PAUSE_SECONDS", 0.0)

    assert house.work(run) == 2

    assert lost == [run.pk]
    assert house.ran == [1, 2]
    assert told(run) == []


def test_a_read_that_succeeded_is_not_made_again_since_its_row_was_put_back(house):
    house.tool("t", effect="read")
    run = house.run()
    first, _ = house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}))

    def put_back(given, _):
        if given["n"] == 2:
            with superuser() as sql:
                sql.execute("SET session_replication_role = replica")
                sql.execute(
                    "UPDATE interrupts_step SET status = 'ready', settled_at = NULL,"
                    " outcome = NULL, result = NULL WHERE id = %s",
                    [first.pk],
                )
                sql.execute("UPDATE interrupts_run SET next_step = 1 WHERE id = %s", [run.pk])
        return given

    house.behaviour["t"] = put_back
    house.work(run)

    assert house.ran == [1, 2]
    assert fresh(run).damage is not None
    assert kinds(run).count("step.settled") == 2  # nothing more is said of it
