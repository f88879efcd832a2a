"""The cases' verbs in the product's own terms: who is there, and what each of them may do.

The names of people and agents are those of the cases: ops and other are agents, appr1 to appr3 may
decide, req is the person for whom a run is made, opr operates, adm administers, viewer only looks.
Everything is asked over the API; the far end's ledger and the database are looked at beside it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from celery import current_app
from django.core.management import call_command
from django.db import connections
from django.test import Client
from kombu.exceptions import OperationalError as NoBroker

from interrupts import sweep
from tenants.api.auth import SESSION_TENANT
from tenants.models import Tenant, User
from tests import clock
from tests.cases.far_end import Outside
from tests.threads import PATIENCE

Body = dict[str, Any]
# What is kept of a call that was refused, and changes nothing of a run: who saw what, who called.
BESIDE = frozenset({"approvals_view", "tenants_agentkey", "tenants_usertoken"})
HEARTBEAT = ("last_seen_at", "updated_at", "due_at")


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        return str(self.body["code"])

    @property
    def pointers(self) -> list[str]:
        return [fault["pointer"] for fault in self.body["errors"]]


def tool(name: str, port: int, **more: Any) -> Body:
    """Declare a tool at the far end; whatever the case needs otherwise is given."""
    base = f"http://127.0.0.1:{port}/effects/{name}"
    declared = {
        "name": name,
        "effect": "idempotent",
        "risk": "low",
        "arguments": {"type": "object"},
        "executor": {"kind": "http", "url": base, "timeout": 10},
        "reconcile": {"url": f"{base}/{{key}}", "settle_after": 10},
    }
    if more.get("effect") == "reversible":
        declared["compensate"] = {"url": f"{base}/{{key}}/compensate"}
    made = {**declared, **more}
    if made["executor"]["kind"] == "agent":
        made.pop("reconcile", None)
    return {name: value for name, value in made.items() if value is not None}


BY_AGENT = {"kind": "agent", "lease": 60}


def document(
    slug: str,
    port: int,
    tools: list[Body],
    rules: list[Body],
    *,
    groups: Mapping[str, list[str]],
    may_decide: Mapping[str, list[str]],
    **policy: Any,
) -> Body:
    """What a tenant's file says; approvers may decide everything, but for whom it is said here."""
    suffix = "" if slug == "acme" else f"-{slug}"
    people = {
        "adm": "admin",
        "opr": "operator",
        "appr1": "approver",
        "appr2": "approver",
        "appr3": "approver",
        "req": "approver",
        "viewer": "viewer",
    }
    return {
        "tenant": slug,
        "name": slug,
        "members": [
            {
                "username": f"{name}{suffix}",
                "email": f"{name}@{slug}.test",
                "role": role,
                "may_decide": may_decide.get(name, ["*"] if name.startswith("appr") else []),
            }
            for name, role in people.items()
        ],
        "groups": {name: [f"{who}{suffix}" for who in inside] for name, inside in groups.items()},
        "agents": [{"name": "ops", "owner": f"adm{suffix}"}, {"name": "other"}],
        "tools": tools,
        "policy": {"allowed_hosts": [f"127.0.0.1:{port}"], "rules": rules, **policy},
    }


def auto(*tools: str) -> Body:
    """Let these run without anybody being asked."""
    return {"name": f"auto-{tools[0]}", "trigger": "action", "tools": list(tools), "then": "allow"}


def by_hand(tool: str, *conditions: Body, agent: str = "ops", **more: Any) -> Body:
    """A person's rule for an agent's calls of a tool, with what it says of each argument."""
    named = [{"f": "@agent", "in": [agent]}, *conditions]
    return {"tool": tool, "predicate": {"all": named, **more}}


def one_of(field: str, *values: str) -> Body:
    return {"f": field, "in": list(values)}


def any_of(field: str) -> Body:
    return {"f": field, "any": True}


@dataclass
class World:
    """Tenant acme (and globex), the far end, the queue's messages, and everybody's credentials."""

    folder: Path
    outside: Outside
    secrets: dict[str, str] = field(default_factory=dict)
    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    delivered: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    broker_is_gone: bool = False
    deliver_at_once: bool = False  # by a worker that waits for nothing

    # The world

    @property
    def port(self) -> int:
        return self.outside.server.port

    def tool(self, name: str, **more: Any) -> Body:
        return tool(name, self.port, **more)

    def read_tool(self, name: str, **roles: str) -> Body:
        """A tool whose arguments rules of people read, each by its role; it refuses none itself."""
        arguments = {"type": "object", "properties": {key: {} for key in roles}}
        return self.tool(name, arguments=arguments, roles=roles)

    def given(
        self,
        *tools: Body,
        rules: list[Body] | None = None,
        groups: Mapping[str, list[str]] | None = None,
        may_decide: Mapping[str, list[str]] | None = None,
        **policy: Any,
    ) -> World:
        """Make the tenants what the case says; again, and they are changed."""
        beside = {"groups": groups or {}, "may_decide": may_decide or {}}
        return self.apply(
            *(
                document(slug, self.port, list(tools), rules or [], **beside, **policy)
                for slug in ("acme", "globex")
            )
        )

    def apply(self, *tenants: Body) -> World:
        """Apply these tenants' files; what is refused of them is a CommandError."""
        file, out = self.folder / "tenants.yaml", self.folder / "out.json"
        file.write_text("\n---\n".join(map(json.dumps, tenants)))
        out.unlink(missing_ok=True)
        call_command("apply", file, credentials_out=out, stdout=io.StringIO())
        if out.exists():
            self._keep(json.loads(out.read_text()))
        return self

    def _keep(self, credentials: dict[str, Any]) -> None:
        for slug, given in credentials.items():
            at = "" if slug == "acme" else f"@{slug}"
            for name, key in given.get("agents", {}).items():
                self.secrets[f"{name}{at}"] = key
            for name, person in given.get("users", {}).items():
                self.secrets[f"{name.removesuffix('-globex')}{at}"] = person["token"]

    @property
    def tenant(self) -> UUID:
        return Tenant.objects.get(slug="acme").pk

    # The API

    def send(
        self,
        who: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        key: str | None = None,
        **headers: str,
    ) -> Reply:
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            sent["Idempotency-Key"] = key
        if who in self.secrets:
            sent["Authorization"] = f"Bearer {self.secrets[who]}"
        made = Client().generic(
            method, f"/api/v1{path}", data, content_type="application/json", headers=sent
        )
        text = bytes(getattr(made, "content", b""))
        is_json = made.headers.get("Content-Type", "").endswith("json") and text
        return Reply(made.status_code, json.loads(text) if is_json else None, made.headers)

    def get(self, who: str, path: str) -> Any:
        reply = self.send(who, "GET", path)
        assert reply.status == 200, reply
        return reply.body

    def post(self, who: str, path: str, body: Any = None, **more: Any) -> Any:
        reply = self.send(who, "POST", path, {} if body is None else body, **more)
        assert reply.status in (200, 201, 202), reply
        return reply.body

    def refused(
        self, who: str, method: str, path: str, body: Any = None, *, status: int, **more: Any
    ) -> Reply:
        """Send what is refused, and show that no row of any tenant is changed by it."""
        before = rows()
        reply = self.send(who, method, path, body, **more)
        assert reply.status == status, reply
        changed = {name: row for name, row in rows().items() if row != before[name]}
        if reply.code == "damaged":
            changed.pop("interrupts_run", None)  # that it is damaged is shown of it from then on
        assert changed == {}, sorted(changed)
        return reply

    # Verbs of agents

    def run(self, who: str = "ops", **more: Any) -> Any:
        return self.post(who, "/runs", {"workflow": "w", "goal": "g", **more})

    def propose(
        self, run: Any, tool: str, arguments: Any = None, who: str = "ops", **more: Any
    ) -> Any:
        body = {"tool": tool, "arguments": {} if arguments is None else arguments, **more}
        return self.post(who, f"/runs/{run['id']}/steps", body)

    def claim(self, step: Any, **more: Any) -> Any:
        return self.post("ops", f"/steps/{step['id']}/claim", **more)

    def receipt(self, claimed: Any, outcome: str = "succeeded", **more: Any) -> Any:
        body = {"fence": claimed["fence"], "outcome": outcome, **more}
        return self.post("ops", f"/attempts/{claimed['attempt']}/receipt", body)

    # Verbs of people

    def gate(self, step: Any, who: str = "appr1") -> Any:
        return self.get(who, f"/gates/{step['gate']}")

    def decision(self, gate: Any, verdict: str = "approve", **more: Any) -> Body:
        """The decision of somebody who has read what the gate shows."""
        typed = gate["required_confirmation"]
        body = {"verdict": verdict, "digest": gate["what"]["digest"], **more}
        if verdict == "approve" and gate["ceremony"] in ("explicit", "typed"):
            body.setdefault("confirmation", typed or True)
        if verdict in ("reject", "request_changes"):
            body.setdefault("reason", "no")
        return body

    def decide(self, step: Any, verdict: str = "approve", who: str = "appr1", **more: Any) -> Any:
        gate = self.gate(step, who)
        body = self.decision(gate, verdict, **more)
        return self.post(who, f"/gates/{gate['id']}/decisions", body)

    def rule(self, tool: str, *conditions: Body, who: str = "appr1", **more: Any) -> Any:
        """A rule by hand that has begun, whose every call runs: no spot check is drawn."""
        made = self.post(who, "/delegations", by_hand(tool, *conditions, **more))
        return self.begin(made, who)

    def begin(self, rule: Any, who: str = "appr1") -> Any:
        """Have a rule begin that is suggested, without spot checks."""
        path = f"/delegations/{rule['id']}"
        begun = self.post(who, f"{path}/accept", {"version": rule["version"]})
        with as_superuser() as connection:
            connection.execute(
                "UPDATE delegation_delegation SET check_share = 0 WHERE id = %s", [rule["id"]]
            )
        assert begun["status"] == "active"
        return begun

    def rules_of(self, who: str) -> list[Any]:
        return list(self.get(who, "/delegations")["results"])

    def asked(self, tool: str, arguments: Any, who: str = "ops") -> Any:
        """Propose what people are asked about: nothing has authorised it."""
        step = self.propose(self.run(who), tool, arguments, who)
        assert (step["status"], step["authorization"]) == ("waiting", None), arguments
        return step

    def unasked(self, tool: str, arguments: Any, by: str) -> Any:
        """Propose what runs without anybody being asked, by a rule of policy or of a person."""
        step = self.propose(self.run(), tool, arguments)
        assert (step["status"], step["authorization"]["by"]) == ("ready", by), arguments
        return step

    def stop(self, run: Any, who: str = "opr", **more: Any) -> Any:
        body = {"reason": "operator_stop", **more}
        return self.post(who, f"/runs/{run['id']}/interrupts", body)

    def answer(
        self, interrupt: Any, resolution: str = "resume", who: str = "opr", **more: Any
    ) -> Any:
        body = {"checkpoint": interrupt["checkpoint"], "resolution": resolution, **more}
        return self.post(who, f"/interrupts/{interrupt['id']}/response", body)

    def recover(self, step: Any, outcome: str, who: str = "opr") -> Any:
        value = {"outcome": outcome, "evidence": "seen at the far end"}
        return self.answer(self.open_of(step), who=who, value=value)

    # What there is

    def fresh(self, thing: Any, who: str = "opr") -> Any:
        """Look at a run or a step again."""
        noun = "steps" if "tool" in thing else "runs"
        return self.get(who, f"/{noun}/{thing['id']}")

    def interrupts(self, run: Any, status: str = "open") -> list[Any]:
        path = f"/interrupts?run={run['id']}&status={status}"
        return list(self.get("opr", path)["results"])

    def open_of(self, step: Any) -> Any:
        """The one open interrupt of the step."""
        (found,) = [
            one for one in self.interrupts({"id": step["run"]}) if one["step"] == step["id"]
        ]
        return found

    def journal(self, run: Any) -> list[Any]:
        return list(self.get("opr", f"/runs/{run['id']}/journal")["results"])

    def kinds(self, run: Any) -> list[str]:
        return [entry["kind"] for entry in self.journal(run)]

    def inbox(self, who: str) -> list[str]:
        """The ids of the gates that wait for the person."""
        found = self.get(who, "/gates?state=pending&mine=true")["results"]
        return [gate["id"] for gate in found]

    # Workers, broker and clock

    def enqueue(self, task: str, kwargs: dict[str, Any] | None = None, **late: Any) -> None:
        """Take what is sent to the broker; a message that is to come late is none of ours."""
        assert not {"eta", "countdown"} & late.keys()
        if self.broker_is_gone:
            raise NoBroker("the broker is gone")
        self.messages.append((task, kwargs or {}))
        if self.deliver_at_once:
            with in_background(lambda: deliver(self.messages.pop())):
                pass

    def work(self) -> None:
        """Have workers take every message, and what those send, until none is left."""
        while self.messages:
            message = self.messages.pop(0)
            self.delivered.append(message)
            deliver(message)

    def sweep(self) -> None:
        sweep.sweep_once()

    def catch_up(self) -> None:
        """Sweep and work until nothing is left to be done now."""
        self.sweep()
        self.work()

    def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        clock.move(seconds)


def deliver(message: tuple[str, dict[str, Any]]) -> None:
    """Give one message to a worker, as the broker does."""
    task, kwargs = message
    current_app.tasks[task](**kwargs)


def browser_of(_world: World, who: str, slug: str = "acme") -> Client:
    """A browser in which this person of the tenant has signed in."""
    browser = Client()
    user = User.objects.get(username=who)
    browser.force_login(user, "django.contrib.auth.backends.ModelBackend")
    kept = browser.session
    kept[SESSION_TENANT] = str(Tenant.objects.get(slug=slug).pk)
    kept.save()
    return browser


def page_of(world: World, who: str, path: str) -> str:
    """What a page shows to this person."""
    answer = browser_of(world, who).get(path)
    assert answer.status_code == 200, answer.content.decode()[:2000]
    return answer.content.decode()


@contextmanager
def as_superuser() -> Iterator[psycopg.Connection[Any]]:
    """A connection for which no trigger and no reference stands in the way."""
    parameters = connections["owner"].get_connection_params()
    login = {name: parameters[name] for name in ("host", "port", "dbname") if parameters.get(name)}
    with psycopg.connect(**login, user="postgres", autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection


def rows() -> dict[str, str]:
    """A digest of every table, whatever tenant its rows are of; without who called when."""
    with as_superuser() as connection:
        names = connection.execute(
            "SELECT quote_ident(tablename) FROM pg_tables"
            " WHERE schemaname = 'public' AND tablename <> ALL(%s)",
            [list(BESIDE)],
        ).fetchall()
        looks = " UNION ALL ".join(
            f"SELECT '{name}', md5(coalesce(string_agg(t, '|' ORDER BY t), '')) FROM"
            f" (SELECT (to_jsonb(r) - %(but)s::text[])::text AS t FROM {name} r) {name}"
            for (name,) in names
        )
        return dict(connection.execute(looks, {"but": list(HEARTBEAT)}).fetchall())


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Run these at once, each on a connection of its own; return what each returned."""
    start = Barrier(len(works))

    def behind(work: Callable[[], Any]) -> Any:
        try:
            start.wait(PATIENCE)
            return work()
        finally:
            for connection in connections.all(initialized_only=True):
                connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return [one.result(PATIENCE) for one in [pool.submit(behind, work) for work in works]]


class Pair:
    """Two threads that do something at once, time and again; each keeps its connection."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(2)
        self._barrier = Barrier(2)

    def at_once(self, one: Callable[[], Any], other: Callable[[], Any]) -> list[Any]:
        return [
            x.result(PATIENCE) for x in [self._pool.submit(self._meet, w) for w in (one, other)]
        ]

    def _meet(self, work: Callable[[], Any]) -> Any:
        self._barrier.wait(PATIENCE)
        return work()

    def close(self) -> None:
        self.at_once(connections.close_all, connections.close_all)
        self._pool.shutdown()


@contextmanager
def in_background(work: Callable[[], Any]) -> Iterator[Any]:
    """Do this in a thread of its own for as long as the block takes, and wait for its end."""

    def run() -> Any:
        try:
            return work()
        finally:
            for connection in connections.all(initialized_only=True):
                connection.close()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run)
        yield future
        future.result(PATIENCE)
