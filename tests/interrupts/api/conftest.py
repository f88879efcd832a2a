"""Two tenants with the same tools, and a caller that holds every answer to the published schema."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jsonschema_rs
import pytest
from django.http import HttpResponse
from rest_framework.test import APIClient

from config.keys import secret_hash
from interrupts.authorizer import authorizer
from interrupts.models import Effect, Executor, Risk, Tool, ToolVersion
from tenants.api import openapi
from tenants.models import Agent, AgentKey, JournalEntry, Role
from tenants.scope import tenant_scope
from tests.tenants.conftest import World, make_world

NO_SUCH = "00000000-0000-7000-8000-000000000000"
CARD = "4111111111111111"


class Reply(NamedTuple):
    status: int
    body: Any
    headers: Any
    text: str

    @property
    def code(self) -> str | None:
        return self.body.get("code")

    @property
    def pointers(self) -> list[str]:
        return [fault["pointer"] for fault in self.body["errors"]]


@dataclass
class Api:
    """Calls the API as somebody of one tenant."""

    world: World

    def __call__(
        self,
        who: str | None,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        **headers: str,
    ) -> Reply:
        data = raw if raw is not None else (b"" if body is None else json.dumps(body).encode())
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = APIClient().generic(
            method,
            f"/api/v1/{path}",
            data,
            content_type="application/json",
            headers={**(self.world.bearer(who) if who else {}), **named},
        )
        if method != "HEAD":
            hold_to_schema(method, path.partition("?")[0], sent)
        text = sent.content.decode()
        is_json = bool(text) and "json" in sent.headers["Content-Type"]
        return Reply(sent.status_code, json.loads(text) if is_json else None, sent.headers, text)

    def get(self, who: str, path: str, **headers: str) -> Any:
        reply = self(who, "GET", path, **headers)
        assert reply.status == 200, reply.body
        return reply.body

    def post(
        self, who: str, path: str, body: Any = None, *, status: int = 201, **headers: str
    ) -> Any:
        reply = self(who, "POST", path, {} if body is None else body, **headers)
        assert reply.status == status, reply.body
        return reply.body

    def run(self, who: str = "agent", **members: Any) -> Any:
        return self.post(who, "runs", {"workflow": "refunds", "goal": "refund it", **members})

    def step(self, run: Any, tool: str = "crm.get", arguments: Any = None, **members: Any) -> Any:
        given = {"customer": "c-1"} if arguments is None else arguments
        body = {"tool": tool, "arguments": given, **members}
        return self.post("agent", f"runs/{run['id']}/steps", body)

    def state(self, run: Any) -> tuple[int, int]:
        """What a refusal leaves as it was: the run's state version and its journal's length."""
        with tenant_scope(self.world.id):
            entries = JournalEntry.objects.filter(stream=run["id"]).count()
        return self.get("alice", f"runs/{run['id']}")["state_version"], entries


def hold_to_schema(method: str, path: str, sent: HttpResponse) -> None:
    """Fail unless the published document allows this answer on this path."""
    declared = responses(method, path)
    if declared is None:
        assert sent.status_code in {401, 404, 405, 413}, "an answer on a path that no one publishes"
        return
    answer = declared.get(str(sent.status_code))
    if answer is None:
        assert sent.status_code >= 400, f"{method} {path} does not publish {sent.status_code}"
        answer = declared["default"]
    kind = sent.headers.get("Content-Type", "").partition(";")[0]
    if content := answer.get("content"):
        assert kind in content
        reference = json.dumps(content[kind]["schema"], sort_keys=True)
        faults = [
            f"{e.instance_path}: {e.message}"
            for e in validator(reference).iter_errors(json.loads(sent.content))
        ]
        assert not faults, f"{method} {path}: {faults}"


@cache
def validator(schema: str) -> Any:
    document = openapi.document()
    return jsonschema_rs.Draft202012Validator(
        {**json.loads(schema), "components": document["components"]}
    )


@cache
def paths() -> dict[re.Pattern[str], Any]:
    return {
        re.compile(re.sub(r"\{\w+\}", "[^/]+", path)): methods
        for path, methods in openapi.document()["paths"].items()
    }


def responses(method: str, path: str) -> Any:
    for pattern, methods in paths().items():
        if pattern.fullmatch(f"/api/v1/{path}") and method.lower() in methods:
            return methods[method.lower()]["responses"]
    return None


def make_agent(world: World, name: str) -> None:
    secret = f"aby_agent_{secrets.token_urlsafe(32)}"
    with tenant_scope(world.id):
        agent = Agent.objects.create(name=name)
        AgentKey.objects.create(agent=agent, hash=secret_hash(secret), hint=secret[:16])
    world.secrets[name] = secret


def arguments(*names: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [names[0]],
        "properties": {name: {"type": "string"} for name in names},
        "additionalProperties": False,
    }


TOOLS: dict[str, dict[str, Any]] = {
    "crm.get": {"effect": Effect.READ, "arguments": arguments("customer")},
    "note.write": {"effect": Effect.IDEMPOTENT, "arguments": arguments("text")},
    "payments.refund": {"effect": Effect.REVERSIBLE, "arguments": arguments("payment", "amount")},
    "db.drop": {"effect": Effect.IRREVERSIBLE, "arguments": arguments("table")},
    "cards.charge": {
        "effect": Effect.IDEMPOTENT,
        "arguments": arguments("card_number", "amount"),
        "sensitive": ["/card_number"],
        "executor": {"kind": "agent", "lease": 60},
    },
    "local.shell": {
        "effect": Effect.IDEMPOTENT,
        "arguments": arguments("command"),
        "executor": {"kind": "agent", "lease": 60},
    },
}


def make_tool(world: World, name: str, declared: dict[str, Any]) -> Tool:
    url = f"https://{world.tenant.slug}.test/{name}"
    executor = declared.get("executor", {"kind": "http", "url": url, "timeout": 10})
    with tenant_scope(world.id):
        tool = Tool.objects.create(name=name, description=f"Does {name}")
        tool.current = ToolVersion.objects.create(
            tool=tool,
            number=1,
            risk=Risk.LOW,
            executor_kind=Executor(executor["kind"]),
            timeout_seconds=60,
            digest="sha256:" + "0" * 64,
            **{**declared, "executor": executor},
        )
        tool.save()
    return tool


def furnish(world: World) -> World:
    make_agent(world, "other")
    for name, declared in TOOLS.items():
        make_tool(world, name, declared)
    return world


@pytest.fixture(autouse=True)
def judged_by_effect(settings: Any) -> Iterator[None]:
    settings.AUTHORIZER = "tests.interrupts.api.authorizer.ByEffect"
    authorizer.cache_clear()
    yield
    authorizer.cache_clear()


PEOPLE = {"alice": Role.ADMIN, "olga": Role.OPERATOR, "carol": Role.APPROVER, "vera": Role.VIEWER}


@pytest.fixture
def acme(db: None) -> World:
    return furnish(make_world("acme", PEOPLE))


@pytest.fixture
def umbrella(db: None) -> World:
    return furnish(make_world("umbrella", {"charlie": Role.ADMIN}))


@pytest.fixture
def api(acme: World) -> Api:
    return Api(acme)
