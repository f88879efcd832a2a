"""The front as clients meet it: through the real server, on kept connections."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from config.supervisor.paths import PROJECT
from tests.platform.kept import ran_before
from tests.platform.service import Service

pytestmark = pytest.mark.slow

TENANT = """
tenant: acme
name: Acme
members: [{username: ada, email: ada@acme.test, role: admin}]
agents: [{name: bot, owner: ada}]
tools: []
policy: {rules: []}
"""
MEBIBYTE = 1024 * 1024


@dataclass
class Acme:
    port: int
    agent: str
    ada: str

    @contextlib.contextmanager
    def connected(self) -> Iterator[http.client.HTTPConnection]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            yield connection

    def ask(self, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        with self.connected() as connection:
            return self.ask_on(connection, method, path, body, key)

    def ask_on(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Any = None,
        key: str = "",
    ) -> tuple[int, Any]:
        content = body if isinstance(body, bytes | type(None)) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key or self.agent}"}
        connection.request(
            method, f"/api/v1{path}", content, headers | {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None

    def new_run(self) -> dict[str, Any]:
        status, run = self.ask("POST", "/runs", {"workflow": "w", "goal": "g"})
        assert status == 201, run
        return dict(run)

    def stop(self, run: dict[str, Any]) -> None:
        body = {"reason": "operator_stop"}
        path = f"/runs/{run['id']}/interrupts"
        assert self.ask("POST", path, body, self.ada)[0] == 201


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acme]:
    folder = tmp_path_factory.mktemp("served")
    up = Service(folder / "data")
    ran_before(up.folder)
    up.start()
    try:
        (folder / "acme.yaml").write_text(TENANT)
        apply = ["manage.py", "apply", str(folder / "acme.yaml")]
        out = folder / "out.json"
        subprocess.run(
            [sys.executable, *apply, "--credentials-out", str(out)],
            cwd=PROJECT,
            env=up.environ,
            check=True,
            capture_output=True,
        )
        made = json.loads(out.read_text())["acme"]
        yield Acme(up.port, made["agents"]["bot"], made["users"]["ada"]["token"])
    finally:
        up.discard()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_too_large_is_refused_and_the_connection_stays_usable(
    acme: Acme, chunked: bool
) -> None:
    headers = {"Authorization": f"Bearer {acme.agent}"}
    parts = (b"x" * 65536 for _ in range(32))
    body: Any = parts if chunked else b"x" * 2 * MEBIBYTE
    with acme.connected() as connection:
        connection.request("POST", "/api/v1/runs", body, headers, encode_chunked=chunked)
        answer = connection.getresponse()
        assert answer.status == 413
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert json.loads(answer.read())["code"] == "body-too-large"
        used = connection.sock
        assert acme.ask_on(connection, "GET", "/runs")[0] == 200
        assert connection.sock is used


def test_a_checkpoint_may_be_larger_but_not_boundless(acme: Acme) -> None:
    run = acme.new_run()
    state = {"format": "f", "version": "1", "data": {"text": "x" * (8 * MEBIBYTE)}}
    path = f"/runs/{run['id']}/checkpoints"
    assert acme.ask("POST", path, {"agent_state": state})[0] == 201
    status, told = acme.ask("POST", path, b"x" * (17 * MEBIBYTE + 1))
    assert (status, told["code"]) == (413, "body-too-large")


def test_a_stranger_with_a_large_body_is_told_401(acme: Acme) -> None:
    body = b"x" * 2 * MEBIBYTE
    status, told = acme.ask("POST", "/runs", body, key="aby_agent_nobody")
    assert (status, told["code"]) == (401, "unauthenticated")


def test_a_wait_ends_when_its_time_is_up(acme: Acme) -> None:
    run = acme.new_run()
    began = time.monotonic()
    path = f"/runs/{run['id']}?wait=1&after_version={run['state_version']}"
    status, same = acme.ask("GET", path)
    assert 0.9 < time.monotonic() - began < 3
    assert (status, same["state_version"]) == (200, run["state_version"])


@pytest.mark.parametrize("query", ["wait=30", "wait=30&after_version={state_version}"])
def test_a_wait_ends_soon_after_a_change(acme: Acme, query: str) -> None:
    run = acme.new_run()
    threading.Timer(0.5, acme.stop, [run]).start()
    began = time.monotonic()
    status, changed = acme.ask("GET", f"/runs/{run['id']}?{query.format(**run)}")
    assert time.monotonic() - began < 3
    assert (status, changed["status"]) == (200, "suspended")


def test_a_wait_that_has_nothing_to_wait_for_is_answered_at_once(acme: Acme) -> None:
    run = acme.new_run()
    began = time.monotonic()
    assert acme.ask("GET", f"/runs/{run['id']}?wait=30&after_version=0")[0] == 200
    assert time.monotonic() - began < 2


def test_events_of_a_run_come_as_they_happen(acme: Acme) -> None:
    run = acme.new_run()
    headers = {"Authorization": f"Bearer {acme.agent}", "Accept": "text/event-stream"}
    with acme.connected() as connection:
        connection.request("GET", f"/api/v1/runs/{run['id']}/events", headers=headers)
        with connection.getresponse() as stream:
            assert stream.status == 200
            assert stream.headers["Content-Type"].startswith("text/event-stream")
            assert next_id(stream) == 1
            threading.Timer(0.3, acme.stop, [run]).start()
            began = time.monotonic()
            assert next_id(stream) == 2
            assert time.monotonic() - began < 3


def next_id(stream: http.client.HTTPResponse) -> int:
    while not (line := stream.readline()).startswith(b"id:"):
        assert line, "the stream has ended"
    return int(line[3:])
