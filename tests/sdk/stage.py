"""One stage, two services: what a test scripts happens in memory, or at a real service by its people.

`Stage` is what the facts are written against. The live one has a far end in this process that counts
what it did, and a thread that plays the tenant's people over the API.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import secrets
import socket
import struct
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

import httpx
from abeyance import Abeyance, AsyncAbeyance, AsyncRun
from abeyance.testing import AsyncFakeAbeyance, FakeAbeyance
from abeyance.testing.script import ToolScript, Verdict
from abeyance.testing.service import FakeService
from django.http import HttpResponse

from demo.service import Person
from tests.interrupts.api.conftest import hold_to_schema
from tests.live import Tenant, live

RESET = struct.pack("ii", 1, 0)
AGENT_TOOLS = ("local.shell", "local.ask")


class Stage(Protocol):
    """A service, an agent's clients on it, and people who do as they are told."""

    def client(self) -> Any: ...
    def on(self, tool: str) -> ToolScript: ...
    def answer(self, question: str, value: Any) -> None: ...
    def redirect(self, question: str, guidance: str) -> None: ...
    def stop(self, run: Any, *, guidance: str | None = None, cancel: bool = False) -> None: ...
    def performed(self) -> list[tuple[str, Any]]: ...
    def answers(self, gate: str) -> list[tuple[str, str | None]]: ...


RESULTS = {
    "crm.get": lambda arguments: {"name": arguments["customer"]},
    "pay": lambda arguments: {"paid": arguments["amount"]},
    "note": lambda arguments: {"noted": arguments["text"]},
    "db.drop": lambda arguments: None,
    "local.shell": lambda arguments: None,
}


class HeldService(FakeService):
    """The service in memory, held to what the real one publishes."""

    def handle(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle(request)
        kind = "application/json" if answer.is_success else "application/problem+json"
        as_sent = HttpResponse(answer.content, status=answer.status_code, content_type=kind)
        hold_to_schema(request.method, request.url.path.removeprefix("/api/v1/"), as_sent)
        return answer


class FakeStage:
    """The service in memory."""

    def __init__(self, wrap: Callable[[FakeService], Any]) -> None:
        self.service = HeldService(RESULTS, AGENT_TOOLS)
        self._wrap = wrap
        self.scripted = FakeAbeyance(service=self.service)
        self.answer, self.redirect = self.scripted.answer, self.scripted.redirect

    def client(self) -> Any:
        return self._wrap(self.service)

    def on(self, tool: str) -> ToolScript:
        return self.scripted.on(tool)

    def stop(self, run: Any, *, guidance: str | None = None, cancel: bool = False) -> None:
        self.scripted.stop(guidance=guidance, cancel=cancel)

    def answers(self, gate: str) -> list[tuple[str, str | None]]:
        """What the agent was asked about a gate, and what it answered."""
        asked = [one for one in self.scripted.questions if one["gate"] == gate]
        return [(one["text"], one["answer"]) for one in asked]

    def performed(self) -> list[tuple[str, Any]]:
        return [(one.tool, one.arguments) for one in self.service.made if one.tool in RESULTS]


class FarEnd:
    """Does what it is asked each time it is asked, and counts; the next calls can be ordered to fail."""

    def __init__(self) -> None:
        self.performed: list[tuple[str, Any]] = []
        self.next: dict[str, deque[str]] = defaultdict(deque)
        far_end = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_args: Any) -> None: ...

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                tool = body["tool"]
                how = far_end.next[tool].popleft() if far_end.next[tool] else "ok"
                if how == "refuse":
                    self._send(422, {"error": "refused"})
                    return
                far_end.performed.append((tool, body["arguments"]))
                if how == "lose":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    self.connection.close()
                    return
                number = len(far_end.performed)
                result = RESULTS[tool](body["arguments"])
                self._send(200, {"result": result, "external_id": f"far-{number}"})

            def _send(self, status: int, document: Any) -> None:
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def forget(self) -> None:
        self.performed = []
        self.next.clear()


def members(*names: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(names),
        "properties": {name: {"type": "string", "maxLength": 100} for name in names},
        "additionalProperties": False,
    }


def document(tenant: str, far_end: str) -> dict[str, Any]:
    """The tenant on the live stage."""

    def tool(name: str, effect: str, risk: str, *arguments: str, lease: int = 0) -> dict[str, Any]:
        executor = {"kind": "http", "url": f"http://{far_end}/", "timeout": 5}
        return {
            "name": name,
            "effect": effect,
            "risk": risk,
            "arguments": members(*arguments),
            "executor": {"kind": "agent", "lease": lease} if lease else executor,
        }

    def rule(name: str, then: str, *tools: str) -> dict[str, Any]:
        reason = {"reason": "never"} if then == "deny" else {}
        return {"name": name, "trigger": "action", "tools": list(tools), "then": then, **reason}

    def member(name: str, role: str, *decides: str) -> dict[str, Any]:
        return {
            "username": f"{name}-{tenant}",
            "email": f"{name}@{tenant}.test",
            "role": role,
            "may_decide": list(decides),
        }

    return {
        "tenant": tenant,
        "name": tenant,
        "members": [member("olga", "operator"), member("alice", "approver", "*")],
        "agents": [{"name": "agent"}],
        "tools": [
            tool("crm.get", "read", "low", "customer"),
            tool("note", "irreversible", "low", "text"),
            tool("pay", "irreversible", "low", "amount") | {"confirmation": "pay"},
            tool("db.drop", "irreversible", "high", "table"),
            tool("local.shell", "irreversible", "low", "command", lease=2),
            tool("local.ask", "idempotent", "low", "command", lease=2),
        ],
        "policy": {
            "allowed_hosts": [far_end],
            "rules": [
                rule("allowed", "allow", "crm.get", "note", "local.shell"),
                rule("asked", "approve", "pay", "local.ask"),
                rule("never", "deny", "db.*"),
            ],
        },
    }


@dataclass(frozen=True)
class Ground:
    """What live stages share: a tenant, and the far end of its tools."""

    far_end: FarEnd
    tenant: Tenant
    name: str


@cache
def ground() -> Ground:
    far_end, name = FarEnd(), f"sdk{secrets.token_hex(4)}"
    return Ground(far_end, live().tenant(document(name, far_end.authority)), name)


class LiveStage:
    """A tenant of the live service; a thread plays its people."""

    def __init__(self, wrap: Callable[[str, str], Any]) -> None:
        self.wrap = wrap
        self.url = live().url
        self.far_end, self.tenant = ground().far_end, ground().tenant
        self.far_end.forget()
        self.alice: Person = self.tenant.person(f"alice-{ground().name}")
        self.olga: Person = self.tenant.person(f"olga-{ground().name}")
        self.scripts: dict[str, LiveScript] = {}
        self.replies: dict[str, dict[str, Any]] = {}
        self.found: deque[str] = deque()
        self.faults: list[BaseException] = []
        self.over = threading.Event()
        self._people = threading.Thread(target=self._play, daemon=True)
        self._people.start()

    @property
    def key(self) -> str:
        return self.tenant.key("agent")

    def client(self) -> Any:
        return self.wrap(self.url, self.key)

    def on(self, tool: str) -> LiveScript:
        return self.scripts.setdefault(tool, LiveScript(self, tool))

    def answer(self, question: str, value: Any) -> None:
        self.replies[question] = {"resolution": "resume", "value": value}

    def redirect(self, question: str, guidance: str) -> None:
        self.replies[question] = {"resolution": "revise", "value": {"guidance": guidance}}

    def stop(self, run: Any, *, guidance: str | None = None, cancel: bool = False) -> None:
        asked = {"reason": "operator_stop", "question": f"stop {run.id}"}
        how: dict[str, Any] = {"resolution": "cancel" if cancel else "resume"}
        if guidance is not None:
            how = {"resolution": "revise", "value": {"guidance": guidance}}
        opened = self.olga.post(f"runs/{run.id}/interrupts", asked)
        threading.Timer(0.7, lambda: self._respond(opened, how)).start()

    def answers(self, gate: str) -> list[tuple[str, str | None]]:
        asked = self.alice.get(f"gates/{gate}")["questions"]
        return [(one["text"], one["answer"]) for one in asked]

    def performed(self) -> list[tuple[str, Any]]:
        return self.far_end.performed

    def close(self) -> None:
        """End what the test left, so that the next one's people have only their own to decide."""
        self.over.set()
        self._people.join(10)
        for status in ("running", "suspended"):
            for run in self.olga.get("runs", status=status)["results"]:
                self.olga.post(f"runs/{run['id']}/cancel", {})
        assert not self.faults, self.faults

    # What the people do

    def _play(self) -> None:
        try:
            while not self.over.wait(0.05):
                with suppress(httpx.TransportError):  # a test may have taken the service away
                    self._look()
        except BaseException as fault:
            self.faults.append(fault)
            raise

    def _look(self) -> None:
        for gate in self.alice.get("gates", state="pending", mine="true")["results"]:
            script = self.scripts.get(gate["what"]["tool"])
            if script and script.verdicts and self._asks(gate, script.verdicts[0]):
                continue
            if script and script.verdicts and script.verdicts[0].kind != "wait":
                self._decide(gate, script.verdicts[0])
                script.verdicts.popleft()
        for interrupt in self.olga.get("interrupts", status="open")["results"]:
            question = interrupt["required_response"]["question"]
            if question in self.replies:
                self._respond(interrupt, self.replies[question])
            elif interrupt["reason"] == "outcome_unknown" and self.found:
                self._settle(interrupt, self.found[0])
                self.found.popleft()

    def _asks(self, gate: Any, verdict: Verdict) -> bool:
        """Say whether the agent is asked first, and has not answered all of it."""
        asked = gate["questions"]
        if any(one["answer"] is None for one in asked):
            return True
        if len(asked) == len(verdict.questions):
            return False
        text = verdict.questions[len(asked)]
        self.alice.post(f"gates/{gate['id']}/questions", {"text": text})
        return True

    def _decide(self, gate: Any, verdict: Verdict) -> None:
        body: dict[str, Any] = {"verdict": verdict.kind, "digest": gate["what"]["digest"]}
        if verdict.kind == "approve":
            body |= {} if verdict.arguments is None else {"arguments": dict(verdict.arguments)}
            body |= {"confirmation": "pay"} if gate["ceremony"] == "typed" else {}
        elif verdict.kind == "respond":
            body["value"] = verdict.value
        else:
            body["reason"] = verdict.reason
        self.alice.get(f"gates/{gate['id']}")
        self.alice.post(f"gates/{gate['id']}/decisions", body)

    def _settle(self, interrupt: Any, found: str) -> None:
        outcome = {"performed": "performed", "failed": "skip", "never": "unresolvable"}[found]
        value: dict[str, Any] = {"outcome": outcome, "evidence": "looked"}
        if found == "performed":
            step = self.olga.get(f"steps/{interrupt['step']}")
            value["result"] = RESULTS[step["tool"]](step["arguments"])
        self._respond(interrupt, {"resolution": "resume", "value": value})

    def _respond(self, interrupt: Any, how: dict[str, Any]) -> None:
        body = {"checkpoint": interrupt["checkpoint"], **how}
        self.olga.post(f"interrupts/{interrupt['id']}/response", body)


class LiveScript(ToolScript):
    """Verdicts for people; what is the far end's to do is ordered there."""

    def __init__(self, stage: LiveStage, tool: str) -> None:
        super().__init__()
        self._stage, self._tool = stage, tool

    def _then(self, verdict: Verdict) -> LiveScript:
        far_end = self._stage.far_end.next[self._tool]
        match verdict.kind:
            case "fail":
                far_end.append("refuse")
            case "lose":
                far_end.append("lose")
                self._stage.found.append(verdict.found)
            case "allow" | "deny" | "misfit":
                pass  # the tenant's policy and schemas do so by themselves
            case _:
                super()._then(verdict)
        return self


# The client for asyncio, used without it


class Blocking:
    """Wraps what is awaited so that the same facts can be tested of both clients."""

    def __init__(self, wrapped: Any, loop: Loop) -> None:
        self._wrapped, self._loop = wrapped, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._wrapped, name)
        if not inspect.iscoroutinefunction(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            args = tuple(map(awaited, args))
            kwargs = {key: awaited(value) for key, value in kwargs.items()}
            came = self._loop.run(found(*args, **kwargs))
            return Blocking(came, self._loop) if isinstance(came, AsyncRun) else came

        return call


def awaited(value: Any) -> Any:
    """A function that makes a call, as a coroutine function that does so without blocking."""
    if not inspect.isfunction(value):
        return value

    async def make(call: Any) -> Any:
        return await asyncio.to_thread(value, call)

    return make


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(120)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        while self._loop.is_running():
            time.sleep(0.01)
        self._loop.close()


@contextmanager
def sync_clients() -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    """Makers of clients in memory and of clients of a service; all are closed at the end."""
    made: list[Any] = []

    def keep(client: Any) -> Any:
        made.append(client)
        return client

    yield (
        lambda service: keep(FakeAbeyance(service=service)),
        lambda url, key: keep(Abeyance(url, key)),
    )
    for client in made:
        client.close()


@contextmanager
def async_clients() -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    loop = Loop()
    made: list[Any] = []

    def keep(client: Any) -> Any:
        made.append(Blocking(client, loop))
        return made[-1]

    yield (
        lambda service: keep(AsyncFakeAbeyance(service=service)),
        lambda url, key: keep(AsyncAbeyance(url, key)),
    )
    for client in made:
        client.close()
    loop.close()
