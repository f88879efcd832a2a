"""The tenant's journal: gap-free, append-only, and chained under a key outside the database."""

import hashlib
import hmac
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest
from django.db import DatabaseError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from config.keys import derive
from tenants import journal, statements
from tenants.ids import uuid7
from tenants.journal import Actor, Entry
from tenants.models import JournalEntry, Tenant
from tenants.scope import tenant_scope
from tests.tenants.conftest import World

ALICE = Actor("user", "alice")
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def entries(world: World) -> list[JournalEntry]:
    return list(JournalEntry.objects.filter(stream=world.id).order_by("seq"))


def recomputed(stream: Any, found: list[JournalEntry]) -> list[bytes]:
    """The chain, made anew outside the database from the texts and the key alone."""
    head, hashes = b"", []
    for entry in found:
        key = derive("journal", stream, key_id=entry.key_id)
        head = hmac.new(key, head + entry.text.encode(), hashlib.sha256).digest()
        hashes.append(head)
    return hashes


@pytest.mark.django_db
def test_entries_are_numbered_from_one_without_a_gap(acme: World) -> None:
    with tenant_scope(acme.id):
        journal.append_to_tenant(ALICE, Entry("a.made", {"n": 1}), Entry("b.made"))
        journal.append_to_tenant(ALICE, Entry("c.made", {"text": 'ä "quoted" \\ \n 😀'}))
        found = entries(acme)
    assert [(entry.seq, entry.kind) for entry in found] == [
        (1, "a.made"),
        (2, "b.made"),
        (3, "c.made"),
    ]
    told = json.loads(found[2].text)
    assert told["data"] == {"text": 'ä "quoted" \\ \n 😀'}
    assert told["actor"] == {"id": "alice", "kind": "user"}
    assert told["seq"] == 3


@pytest.mark.django_db
def test_the_chain_is_what_anybody_with_the_key_makes_of_the_texts(acme: World) -> None:
    with tenant_scope(acme.id):
        for number in range(5):
            journal.append_to_tenant(ALICE, Entry("made", {"n": number, "text": "ä😀"}))
        found = entries(acme)
        acme.tenant.refresh_from_db()
    assert [bytes(entry.hash) for entry in found] == recomputed(acme.id, found)
    assert (acme.tenant.journal_seq, bytes(acme.tenant.journal_hash)) == (5, bytes(found[-1].hash))


@pytest.mark.django_db
def test_two_streams_are_chained_under_two_keys(acme: World) -> None:
    with tenant_scope(acme.id):
        run = uuid7()
        journal.append_to_tenant(ALICE, Entry("made"))
        seq, head = journal.extend(
            run, seq=0, head=b"", at=NOW, actor=ALICE, entries=[Entry("made")]
        )
        (of_run,) = JournalEntry.objects.filter(stream=run)
        (of_tenant,) = entries(acme)
    assert (seq, head) == (1, bytes(of_run.hash))
    assert recomputed(run, [of_run]) == [head]
    assert recomputed(acme.id, [of_run]) != [head]
    assert bytes(of_tenant.hash) != head


@pytest.mark.django_db
def test_what_several_say_at_once_is_one_statement_in_the_order_it_was_said(
    acme: World,
) -> None:
    rule, bob = Actor("delegation", "rule-1"), Actor("user", 'bob "\n"')
    said = [
        Entry("step.proposed", {"n": 1}),
        Entry("gate.decided", {"text": 'ä "quoted" \\ \n\r\u2028 😀'}, rule),
        Entry("step.authorized", by=rule),
        Entry("run.paused", {"n": None}),
        Entry("run.resumed", {"n": 2}, bob),
    ]
    run = uuid7()
    with tenant_scope(acme.id):
        with (
            CaptureQueriesContext(connection) as plain,
            patch.object(statements, "_execute", wraps=statements._execute) as prepared,
        ):
            seq, head = journal.extend(run, seq=0, head=b"", at=NOW, actor=ALICE, entries=said)
        found = list(JournalEntry.objects.filter(stream=run).order_by("seq"))
    assert (len(plain), prepared.call_count) == (0, 1)
    assert [entry.text for entry in found] == [
        f'{{"actor":{(entry.by or ALICE).text},"at":"2026-01-02T03:04:05.678901Z",'
        f'"data":{entry.text},"kind":"{entry.kind}","seq":{at}}}'
        for at, entry in enumerate(said, 1)
    ]
    speakers = [json.loads(entry.text)["actor"] for entry in found]
    assert speakers == [one.as_json for one in (ALICE, rule, rule, ALICE, bob)]
    assert [(entry.seq, entry.kind) for entry in found] == [
        (at, entry.kind) for at, entry in enumerate(said, 1)
    ]
    assert [bytes(entry.hash) for entry in found] == recomputed(run, found)
    assert (seq, head) == (5, bytes(found[-1].hash))


@pytest.mark.django_db
def test_the_two_that_extend_a_stream_write_the_same(acme: World) -> None:
    said = [Entry("a.made", {"text": "ä😀"}), Entry("b.made", {"n": 1.5}), Entry("c.made")]
    ways: dict[str, str | list[str]] = {
        "tenants_journal_extend": ALICE.text,
        "tenants_journal_extend_by": [ALICE.text] * 3,
    }
    with tenant_scope(acme.id):
        streams = [uuid7() for _ in ways]
        # Under one key, so that what is left to differ is what each function makes of the same.
        key = journal.key_of(streams[0])
        with connection.cursor() as cursor:
            for stream, (name, speaks) in zip(streams, ways.items(), strict=True):
                cursor.execute(
                    f"SELECT {name}(%s, %s, 0, '', %s, %s, %s, %s, %s, %s, %s)",
                    [
                        acme.id,
                        stream,
                        NOW,
                        *key,
                        speaks,
                        [entry.kind for entry in said],
                        [entry.text for entry in said],
                    ],
                )
        columns = ("seq", "tenant_id", "kind", "at", "text", "key_id", "hash")
        plain, by = (
            [tuple(row) for row in rows.order_by("seq").values_list(*columns)]
            for rows in (JournalEntry.objects.filter(stream=one) for one in streams)
        )
    assert len(plain) == 3
    assert plain == by


@pytest.mark.django_db
def test_a_gap_is_refused(acme: World) -> None:
    with tenant_scope(acme.id):
        journal.append_to_tenant(ALICE, Entry("made"))
        for seq in (0, 1, 3, -1):
            with pytest.raises(DatabaseError), transaction.atomic():
                JournalEntry.objects.create(
                    stream=acme.id,
                    seq=seq,
                    kind="x",
                    at="2026-01-01T00:00:00Z",
                    text="",
                    key_id="",
                    hash=b"",
                )
        assert len(entries(acme)) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change", ["UPDATE tenants_journalentry SET text = ''", "DELETE FROM tenants_journalentry"]
)
def test_the_app_role_has_no_right_to_rewrite(acme: World, change: str) -> None:
    with tenant_scope(acme.id):
        journal.append_to_tenant(ALICE, Entry("made"))
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            run_sql(change)
        assert len(entries(acme)) == 1


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
@pytest.mark.parametrize(
    "change", ["UPDATE tenants_journalentry SET text = ''", "DELETE FROM tenants_journalentry"]
)
def test_even_the_owner_cannot_rewrite(acme: World, change: str) -> None:
    with tenant_scope(acme.id):
        journal.append_to_tenant(ALICE, Entry("made"))
    with pytest.raises(DatabaseError, match="append-only"):
        run_sql(change, "owner")
    with tenant_scope(acme.id):
        assert len(entries(acme)) == 1


@pytest.mark.django_db(transaction=True)
def test_writers_at_once_leave_no_gap_and_one_chain(acme: World) -> None:
    barrier = threading.Barrier(6)

    def write(who: int) -> None:
        barrier.wait(20)
        try:
            with tenant_scope(acme.id):
                for number in range(10):
                    journal.append_to_tenant(ALICE, Entry("made", {"who": who, "n": number}))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    with tenant_scope(acme.id):
        found = entries(acme)
    assert [entry.seq for entry in found] == list(range(1, 61))
    assert [bytes(entry.hash) for entry in found] == recomputed(acme.id, found)
    ats = [json.loads(entry.text)["at"] for entry in found]
    assert ats == sorted(ats)


@pytest.mark.django_db
def test_what_is_rolled_back_was_never_written(acme: World) -> None:
    with tenant_scope(acme.id):
        with pytest.raises(ZeroDivisionError):
            append_and_fail()
        assert entries(acme) == []
        assert Tenant.objects.get(pk=acme.id).journal_seq == 0


def append_and_fail() -> None:
    with transaction.atomic():
        journal.append_to_tenant(ALICE, Entry("made"))
        raise ZeroDivisionError


def run_sql(sql: str, alias: str = "default") -> None:
    with (connection if alias == "default" else connections[alias]).cursor() as cursor:
        cursor.execute(sql)
