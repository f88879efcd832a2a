"""The service before a third party's checker: `agent-memory-integrity` (agmi), its edits T1 to T9.

    PYTHONPATH=. .venv/bin/agmi-check --adapter tests.conformance.agmi:Journals

What is genuine is written by the engine's own services. What is edited is edited by SQL, as the
role that owns the tables, with its guards switched off first, and what else would give it away is
put right as far as it can be without the key: the head of a journal, the step's copy of a result.
Only a whole database that is put back (T9) takes the superuser that restores a dump. The key and
the anchor are outside the database, where such an attacker is not.

`Journals` and `Receipts` are audited by `manage.py verify`; `Resumed` asks the engine to go on.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import io
import os
import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

import psycopg
from agmi.adapters.base import MemoryAdapter, Record
from django.conf import settings
from psycopg.rows import dict_row

from tests import plugin_postgres
from tests.database import as_owner, superuser

if TYPE_CHECKING:
    from interrupts.models import Run
    from tenants.principal import Principal

Rows = list[dict[str, Any]]
TENANT = """
tenant: {slug}
name: Checked
members: [{{username: "{slug}-olga", email: "{slug}@example.test", role: admin}}]
agents: [{{name: bot, owner: "{slug}-olga"}}]
tools:
  - name: notes.add
    description: Add a note
    effect: idempotent
    risk: low
    arguments: {{type: object}}
    executor: {{kind: agent, lease: 60}}
policy:
  rules: [{{name: notes, trigger: action, tools: ["notes.*"], then: allow}}]
"""


def begin() -> None:
    """Make a server and a database, where the checker runs by itself and not in a test."""
    if settings.configured:
        return
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    stack.enter_context(plugin_postgres.prepared_server())
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    import django

    django.setup()
    from django.db import connections

    owner = connections["owner"]
    owner.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    for alias in ("default", "sweep"):
        connections[alias].close()
        connections[alias].creation.set_as_test_mirror(owner.settings_dict)
    stack.callback(connections.close_all)


class Adapter(MemoryAdapter):  # type: ignore[misc]  # untyped
    """A tenant of its own, an agent's run with records in it, and an anchor."""

    detection_point: ClassVar = "audit"
    supports_replay = supports_metadata = supports_snapshot = True

    def __init__(self) -> None:
        begin()
        self.stack = contextlib.ExitStack()
        self.run: Run | None = None
        self.other: Run | None = None
        self.token = ""

    # A store, and what is genuine in it

    def setup(self) -> None:
        from django.core.management import call_command

        from interrupts import anchors
        from interrupts.models import Tool
        from tenants.ids import uuid7
        from tenants.models import Agent, Tenant, User
        from tenants.principal import Principal
        from tenants.scope import tenant_scope

        self.slug = f"checked-{uuid7().hex[-12:]}"
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.anchor, settings.ABEYANCE_ANCHOR = settings.ABEYANCE_ANCHOR, str(folder / "anchor")
        anchors.forget()
        file = folder / "tenant.yaml"
        file.write_text(TENANT.format(slug=self.slug))
        call_command("apply", str(file), stdout=io.StringIO())
        tenant = Tenant.objects.get(slug=self.slug)
        self.stack.enter_context(tenant_scope(tenant.pk))
        assert Tool.objects.exists()
        self.tenant: UUID = tenant.pk
        agent = Agent.objects.get()
        self.bot: Principal = Principal("agent", agent.pk, tenant.pk, agent.name, None)
        olga = User.objects.get(username=f"{self.slug}-olga")
        self.olga: Principal = Principal("user", olga.pk, tenant.pk, olga.username, None, "admin")

    def teardown(self) -> None:
        self.stack.close()
        settings.ABEYANCE_ANCHOR = self.anchor

    def seed(self, n: int) -> None:
        self.run = self._seeded("mine", n)

    def seed_other(self, n: int) -> None:
        self.other = self._seeded("theirs", n)

    def append_genuine(self) -> None:
        self._add(self.run, "late", 0)
        self._write_anchor()

    @abstractmethod
    def _seeded(self, token: str, n: int) -> Run:
        """Start a run that has ``n`` records."""

    @abstractmethod
    def _add(self, run: Run | None, token: str, n: int) -> None:
        """Add the record ``n`` to the run."""

    def _write_anchor(self) -> None:
        """As the sweep does every ten seconds."""
        from interrupts import anchors

        anchors.write()

    # What the checker sees

    def read_all_raw(self) -> list[Record]:
        return self._records(self.run)

    def read_other_raw(self) -> list[Record]:
        return self._records(self.other)

    def _records(self, run: Run | None) -> list[Record]:
        return [Record(seq, row) for seq, row in enumerate(self._rows(run))]

    @abstractmethod
    def _rows(self, run: Run | None) -> Rows:
        """Return the run's records as they are stored."""

    # Whether it was noticed

    def reload(self) -> None:
        """Begin anew, as a process does that has just started."""
        from django.db import connections

        from interrupts import anchors
        from interrupts.verification import live
        from tenants.scope import tenant_scope

        anchors.forget()
        live._known.clear()
        for alias in ("default", "sweep"):
            connections[alias].close()
        self.stack.enter_context(tenant_scope(self.tenant))

    def verify(self) -> bool:
        from django.core.management import CommandError, call_command

        self._write_anchor()  # the sweep goes on after an edit too, and does not make up for it
        out = io.StringIO()
        try:
            call_command("verify", tenant=self.slug, stdout=out)
        except CommandError:
            self.verify_detail = out.getvalue().splitlines()[0]
            return False
        return True

    # The attacker: the role that owns the tables

    @contextlib.contextmanager
    def _owner(self, *tables: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
        with as_owner() as connection:
            connection.row_factory = dict_row
            for table in tables:
                connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            try:
                yield connection
            finally:
                for table in tables:
                    connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")

    # A dump and its restoration

    def snapshot_store(self) -> object:
        with superuser() as connection:
            return {
                table: self._dump(connection, table, columns)
                for table, columns in self._tables(connection)
            }

    def restore_store(self, token: object) -> None:
        assert isinstance(token, dict)
        with superuser() as connection, connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")
            for table, columns in self._tables(connection):
                connection.execute(f"DELETE FROM {table}")
                with connection.cursor().copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                    copy.write(token[table])

    def _dump(self, connection: psycopg.Connection[Any], table: str, columns: str) -> bytes:
        with connection.cursor().copy(f"COPY {table} ({columns}) TO STDOUT") as copy:
            return b"".join(bytes(part) for part in copy)

    def _tables(self, connection: psycopg.Connection[Any]) -> list[tuple[str, str]]:
        """Every table with the columns that are stored and not computed."""
        return connection.execute(
            "SELECT quote_ident(table_name), string_agg(quote_ident(column_name), ', ')"
            " FROM information_schema.columns JOIN information_schema.tables"
            "   USING (table_schema, table_name)"
            " WHERE table_schema = 'public' AND is_generated = 'NEVER'"
            "   AND table_type = 'BASE TABLE' AND table_name <> 'django_migrations'"
            " GROUP BY table_name"
        ).fetchall()


class Journals(Adapter):
    """A record is an entry of a run's journal."""

    name = "abeyance: a run's journal, audited by verify"

    def _seeded(self, token: str, n: int) -> Run:
        from interrupts.services import runs

        run = runs.start_run(self.bot, workflow="notes", goal=token)
        for number in range(n - 1):
            self._add(run, token, number)
        self._write_anchor()
        return run

    def _add(self, run: Run | None, token: str, n: int) -> None:
        from interrupts.services import runs

        assert run is not None
        runs.report_usage(self.bot, run.pk, tokens=1000 * len(token) + n)

    def _rows(self, run: Run | None) -> Rows:
        assert run is not None
        with self._owner() as owner:
            return owner.execute(
                "SELECT stream, seq, tenant_id, kind, at, text, key_id, hash"
                " FROM tenants_journalentry WHERE stream = %s ORDER BY seq",
                [run.pk],
            ).fetchall()

    def write_raw(self, record: Record) -> None:
        self._put(record.seq + 1, record.fields)

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        self._put(victim_seq + 1, donor.fields)

    def _put(self, seq: int, fields: dict[str, Any]) -> None:
        """Put an entry's words and hash into a place of the run's journal, made where it is new."""
        assert self.run is not None
        given = {**fields, "stream": self.run.pk, "seq": seq}
        with self._owner("tenants_journalentry", "interrupts_run") as owner:
            owner.execute(
                "INSERT INTO tenants_journalentry"
                " (stream, seq, tenant_id, kind, at, text, key_id, hash) VALUES (%(stream)s,"
                "   %(seq)s, %(tenant_id)s, %(kind)s, %(at)s, %(text)s, %(key_id)s, %(hash)s)"
                " ON CONFLICT (stream, seq) DO UPDATE SET kind = %(kind)s, at = %(at)s,"
                "   text = %(text)s, key_id = %(key_id)s, hash = %(hash)s",
                given,
            )
            self._put_head_right(owner)

    def delete_raw(self, seq: int) -> None:
        assert self.run is not None
        with self._owner("tenants_journalentry", "interrupts_run") as owner:
            name = "journal_follows_its_predecessor"
            owner.execute(f"ALTER TABLE tenants_journalentry DROP CONSTRAINT {name}")
            owner.execute(
                "DELETE FROM tenants_journalentry WHERE stream = %s AND seq = %s",
                [self.run.pk, seq + 1],
            )
            owner.execute(
                f"ALTER TABLE tenants_journalentry ADD CONSTRAINT {name} FOREIGN KEY"
                " (stream, previous) REFERENCES tenants_journalentry (stream, seq) NOT VALID"
            )
            self._put_head_right(owner)

    def _put_head_right(self, owner: psycopg.Connection[Any]) -> None:
        assert self.run is not None
        owner.execute(
            "UPDATE interrupts_run r SET journal_seq = e.seq, journal_hash = e.hash"
            " FROM (SELECT seq, hash FROM tenants_journalentry WHERE stream = %s"
            "   ORDER BY seq DESC LIMIT 1) e WHERE r.id = %s",
            [self.run.pk, self.run.pk],
        )

    def mutate_payload(self, record: Record) -> Record:
        record.fields["text"] = record.fields["text"].replace('"data":{', '"data":{"more":1,', 1)
        return record

    def forge_record(self, template: Record) -> Record:
        text = template.fields["text"].replace('"tokens":', '"tokens":9', 1)
        text = text.replace(f'"seq":{template.seq + 1}', f'"seq":{template.seq + 2}')
        # Linked as the genuine ones are, under a key of the attacker's.
        link = hashlib.sha256(b"mine" + bytes(template.fields["hash"]) + text.encode()).digest()
        return Record(template.seq + 1, {**template.fields, "text": text, "hash": link})

    def read_meta(self, seq: int) -> dict[str, Any]:
        row = self._rows(self.run)[seq]
        return {"at": row["at"], "kind": row["kind"]}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        assert self.run is not None
        with self._owner("tenants_journalentry") as owner:
            owner.execute(
                "UPDATE tenants_journalentry SET at = at - interval '1 day'"
                " WHERE stream = %s AND seq = %s",
                [self.run.pk, seq + 1],
            )

    def identity_of(self, record: Record) -> str:
        return f"{record.fields['stream']}:{record.fields['seq']}"

    def payload_of(self, record: Record) -> str:
        return str(record.fields["text"])

    def owner_of(self, record: Record) -> str:
        return str(record.fields["stream"])


class Receipts(Adapter):
    """A record is a receipt of a run, with the result that it vouches for."""

    name = "abeyance: a run's receipts and results, audited by verify"
    COLUMNS: ClassVar = (
        "id, tenant_id, run_id, step_id, attempt, compensation, source, outcome, result,"
        " external_id, cost, error, evidence, by, observed_at"
    )

    def _seeded(self, token: str, n: int) -> Run:
        from interrupts.services import runs

        run = runs.start_run(self.bot, workflow="notes", goal=token)
        for number in range(n):
            self._add(run, token, number)
        self._write_anchor()
        return run

    def _add(self, run: Run | None, token: str, n: int) -> None:
        from interrupts.services import attempts, starting, steps

        assert run is not None
        said = {"note": f"{token} {n}"}
        proposals = [{"tool": "notes.add", "arguments": said}]
        (step,), _ = steps.propose(self.bot, run.pk, proposals=proposals)
        attempt, *_ = starting.claim_step(self.bot, step.pk)
        attempts.report(self.bot, attempt.pk, fence=attempt.fence, outcome="succeeded", result=said)

    def _rows(self, run: Run | None) -> Rows:
        assert run is not None
        columns = ", ".join(f"r.{column.strip()}" for column in self.COLUMNS.split(","))
        with self._owner() as owner:
            return owner.execute(
                f"SELECT {columns}, convert_from(c.body, 'UTF8') AS body FROM interrupts_receipt r"
                " JOIN interrupts_content c ON c.tenant_id = r.tenant_id AND c.digest = r.result"
                " WHERE r.run_id = %s ORDER BY r.id",
                [run.pk],
            ).fetchall()

    def write_raw(self, record: Record) -> None:
        rows = self._rows(self.run)
        if record.seq < len(rows):
            self._put(rows[record.seq], record.fields)
            return
        with self._owner("interrupts_receipt") as owner:
            digest = self._body(owner, record.fields)
            given = {**record.fields, "result": digest}
            names = [column.strip() for column in self.COLUMNS.split(",")]
            values = ", ".join(f"%({name})s" for name in names)
            owner.execute(
                f"INSERT INTO interrupts_receipt ({self.COLUMNS}) VALUES ({values})", given
            )

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        self._put(self._rows(self.run)[victim_seq], donor.fields)

    def _put(self, row: dict[str, Any], fields: dict[str, Any]) -> None:
        """Put what one receipt says in the place of another, on its step as well."""
        with self._owner("interrupts_receipt", "interrupts_step") as owner:
            given = [fields["outcome"], self._body(owner, fields), fields["external_id"]]
            owner.execute(
                "UPDATE interrupts_receipt SET outcome = %s, result = %s, external_id = %s"
                " WHERE id = %s",
                [*given, row["id"]],
            )
            owner.execute(
                "UPDATE interrupts_step SET outcome = %s, result = %s, external_id = %s"
                " WHERE id = %s",
                [*given, row["step_id"]],
            )

    def _body(self, owner: psycopg.Connection[Any], fields: dict[str, Any]) -> bytes:
        """Return the digest of the body, which is stored under one of the attacker's if new."""
        body = fields["body"].encode()
        held = owner.execute(
            "SELECT body FROM interrupts_content WHERE tenant_id = %s AND digest = %s",
            [fields["tenant_id"], fields["result"]],
        ).fetchone()
        if held is not None and bytes(held["body"]) == body:
            return bytes(fields["result"])
        digest = hashlib.sha256(body).digest()
        owner.execute(
            "INSERT INTO interrupts_content (tenant_id, digest, body, cipher)"
            " VALUES (%s, %s, %s, '')",
            [fields["tenant_id"], digest, body],
        )
        return digest

    def delete_raw(self, seq: int) -> None:
        row = self._rows(self.run)[seq]
        with self._owner("interrupts_receipt") as owner:
            owner.execute("DELETE FROM interrupts_receipt WHERE id = %s", [row["id"]])

    def mutate_payload(self, record: Record) -> Record:
        record.fields["body"] = record.fields["body"].replace('"}', ' tampered"}')
        return record

    def forge_record(self, template: Record) -> Record:
        from tenants.ids import uuid7

        forged = Record(template.seq + 1, {**template.fields, "id": uuid7()})
        return self.mutate_payload(forged)

    def read_meta(self, seq: int) -> dict[str, Any]:
        row = self._rows(self.run)[seq]
        return {"by": row["by"], "observed_at": row["observed_at"], "source": row["source"]}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        row = self._rows(self.run)[seq]
        with self._owner("interrupts_receipt") as owner:
            owner.execute(
                "UPDATE interrupts_receipt SET by = 'worker:somebody else',"
                " observed_at = observed_at - interval '1 day' WHERE id = %s",
                [row["id"]],
            )

    def identity_of(self, record: Record) -> str:
        return str(record.fields["id"])

    def payload_of(self, record: Record) -> str:
        return f"{record.fields['outcome']} {record.fields['body']}"

    def owner_of(self, record: Record) -> str:
        return str(record.fields["run_id"])


class Resumed(Receipts):
    """The same, where a person asks the engine to go on: it refuses by itself.

    It does not read the anchor, which is the audit's, so T9 is not asked of it.
    """

    name = "abeyance: a run's receipts and results, as it is resumed"
    detection_point: ClassVar = "read"
    supports_snapshot = False

    def seed(self, n: int) -> None:
        super().seed(n)
        self._stop()

    def _stop(self) -> None:
        from interrupts.services import holds
        from interrupts.services.holds import Asked

        assert self.run is not None
        asked = Asked(reason="operator_stop")
        self.interrupt, _ = holds.open_interrupt(self.olga, self.run.pk, asked=asked)

    def verify(self) -> bool:
        from interrupts.errors import Damaged
        from interrupts.services import responses

        try:
            responses.respond(
                self.olga,
                self.interrupt.pk,
                checkpoint=self.interrupt.checkpoint,
                resolution="resume",
            )
        except Damaged as refused:
            self.verify_detail = refused.detail
            return False
        self._stop()
        return True
