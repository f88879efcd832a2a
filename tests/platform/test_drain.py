"""A deploy as it is done: drained while a call is in flight, stopped, started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from config.supervisor.paths import PROJECT
from tests.platform.service import Service, eventually

pytestmark = pytest.mark.slow
Make = Callable[..., Service]
SWEEP_LOCK = 7342


class FarEnd:
    """Answers a call when it is let go; counts those that came."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self.go = threading.Event()
        far_end = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_args: Any) -> None: ...

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                far_end.came.append(asked["arguments"]["n"])
                assert far_end.go.wait(60)
                body = json.dumps({"result": None}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self.go.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def far_end() -> Iterator[FarEnd]:
    made = FarEnd()
    yield made
    made.close()


class Acme:
    """A tenant of a service: its agent, and what it proposes."""

    def __init__(self, up: Service, far_end: FarEnd, folder: Path) -> None:
        self.up = up
        document = {
            "tenant": "acme",
            "name": "Acme",
            "members": [
                {"username": "alice", "email": "a@acme.test", "role": "admin", "may_decide": ["*"]}
            ],
            "agents": [{"name": "bot"}],
            "tools": [
                {
                    "name": name,
                    "effect": "idempotent",
                    "risk": "low",
                    "arguments": {"type": "object"},
                    "executor": {
                        "kind": "http",
                        "url": f"http://{far_end.authority}/",
                        "timeout": 60,
                    },
                }
                for name in ("call", "asked")
            ],
            "policy": {
                "allowed_hosts": [far_end.authority],
                "rules": [
                    {"name": "go", "trigger": "action", "tools": ["call"], "then": "allow"},
                    {"name": "ask", "trigger": "action", "tools": ["asked"], "then": "approve"},
                ],
            },
        }
        file, out = folder / "acme.yaml", folder / "acme.json"
        file.write_text(yaml.safe_dump(document))
        code, said = rest(self.manage("apply", str(file), "--credentials-out", str(out)))
        assert code == 0, said
        keys = json.loads(out.read_text())["acme"]
        self.agent, self.alice = keys["agents"]["bot"], keys["users"]["alice"]["token"]

    def manage(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.Popen(
            command,
            cwd=PROJECT,
            env=self.up.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ask(self, key: str, method: str, path: str, **body: Any) -> Any:
        url = f"http://127.0.0.1:{self.up.port}/api/v1/{path}"
        headers = {"Authorization": f"Bearer {key}"}
        answer = httpx.request(method, url, headers=headers, json=body or None, timeout=30)
        assert answer.is_success, answer.text
        return answer.json()

    def run(self) -> str:
        run: str = self.ask(self.agent, "POST", "runs", workflow="w", goal="g")["id"]
        return run

    def propose(self, run: str, *numbers: int, tool: str = "call") -> list[Any]:
        steps = [{"tool": tool, "arguments": {"n": n}} for n in numbers]
        answer = self.ask(self.agent, "POST", f"runs/{run}/steps", steps=steps)
        found: list[Any] = answer["steps"]
        return found

    def statuses(self, run: str) -> list[str]:
        steps = self.ask(self.agent, "GET", f"runs/{run}/steps")["results"]
        return [step["status"] for step in steps]

    def approve(self, gate: str) -> None:
        shown = self.ask(self.alice, "GET", f"gates/{gate}")["what"]["digest"]
        self.ask(self.alice, "POST", f"gates/{gate}/decisions", verdict="approve", digest=shown)

    def begun(self) -> int:
        ((count,),) = self.up.sql("SELECT count(*) FROM interrupts_attempt")
        return int(count)


@pytest.fixture
def acme(service_again: Make, far_end: FarEnd, tmp_path: Path) -> Acme:
    return Acme(service_again().start(), far_end, tmp_path)


def drained(process: subprocess.Popen[str]) -> str:
    """Return the line that it says once nothing begins any more."""
    assert process.stdout
    line = process.stdout.readline()
    assert line.startswith("drained: "), line
    return line


def rest(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    said, _ = process.communicate(timeout=120)
    return process.returncode, said.splitlines()


def looked_at_again(acme: Acme, run: str) -> bool:
    """Whether the sweep has looked at the run since the last time that this was asked."""
    ((at,),) = acme.up.sql(f"SELECT updated_at FROM interrupts_run WHERE id = '{run}'")
    before, acme.up.seen = getattr(acme.up, "seen", None), at
    return before is not None and before != at


def metric(acme: Acme, name: str) -> list[str]:
    page = httpx.get(f"http://127.0.0.1:{acme.up.port}/metrics", timeout=10)
    assert page.status_code == 200, page.text
    return [line for line in page.text.splitlines() if line.startswith(name)]


def test_a_deploy_loses_nothing_and_begins_nothing_after_its_drain(
    acme: Acme, far_end: FarEnd
) -> None:
    run = acme.run()
    acme.propose(run, 1, 2, 3)
    assert eventually(lambda: far_end.came == [1])

    drain = acme.manage("drain", "--timeout", "50")
    drained(drain)
    other = acme.run()
    acme.propose(other, 4)
    asked = acme.run()
    (gate,) = acme.propose(asked, 5, tool="asked")
    acme.approve(gate["gate"])
    far_end.go.set()
    code, said = rest(drain)
    assert (code, said[-1]) == (0, "nothing is in flight")
    assert any(line.startswith("1 in flight") for line in said)

    # The call in flight is recorded; the sweep has been by, and nothing else has begun.
    for waiting in (run, other):
        acme.up.seen = None  # type: ignore[attr-defined]
        assert eventually(lambda waiting=waiting: looked_at_again(acme, waiting))
    assert acme.statuses(run) == ["succeeded", "ready", "ready"]
    assert (far_end.came, acme.begun()) == ([1], 1)
    _, told = acme.up.get("/healthz/ready")
    assert " since " in told["checks"]["drained"]
    assert len(metric(acme, "abeyance_drain_began_timestamp_seconds{")) == 1

    acme.up.send(signal.SIGTERM)
    acme.up.launch()
    assert any("has ended" in line for line in acme.up.until_ready())
    for which, count in ((run, 3), (other, 1), (asked, 1)):
        assert eventually(
            lambda which=which, count=count: acme.statuses(which) == ["succeeded"] * count
        )
    assert sorted(far_end.came) == [1, 2, 3, 4, 5]
    assert "drained" not in acme.up.get("/healthz/ready")[1]["checks"]


def test_a_drain_whose_time_is_up_lists_what_is_in_flight_and_can_be_taken_back(
    acme: Acme, far_end: FarEnd
) -> None:
    run = acme.run()
    (first, _) = acme.propose(run, 1, 2)
    assert eventually(lambda: far_end.came == [1])
    drain = acme.manage("drain", "--timeout", "1")
    drained(drain)
    code, said = rest(drain)
    assert code == 1
    assert [line for line in said if f"run {run} step {first['id']} by " in line]
    assert "1 still in flight" in said[-1]
    assert eventually(lambda: "this host is drained" in worker_log(acme))

    far_end.go.set()
    assert eventually(lambda: acme.statuses(run) == ["succeeded", "ready"])
    code, said = rest(acme.manage("drain", "--undo"))
    assert (code, said[0].endswith("has ended")) == (0, True)
    assert eventually(lambda: acme.statuses(run) == ["succeeded"] * 2)
    assert eventually(lambda: "the drain of this host has ended" in worker_log(acme))
    # It takes messages again: with the sweep held up, nothing else says that there is work.
    with acme.up.connect() as somebody:
        somebody.execute("SELECT pg_advisory_lock(%s)", [SWEEP_LOCK])
        done = acme.run()
        acme.propose(done, 9)
        assert eventually(lambda: acme.statuses(done) == ["succeeded"])


def worker_log(acme: Acme) -> str:
    return (acme.up.folder.logs / "worker.log").read_text()


def test_a_worker_that_is_told_to_stop_finishes_its_call_and_begins_no_other(
    acme: Acme, far_end: FarEnd
) -> None:
    run = acme.run()
    acme.propose(run, 1, 2)
    assert eventually(lambda: far_end.came == [1])
    stopping = threading.Thread(target=acme.up.send, args=[signal.SIGTERM])
    stopping.start()
    assert eventually(lambda: not httpx_answers(acme))
    far_end.go.set()
    stopping.join(30)
    assert acme.up.process
    assert acme.up.process.returncode == 0
    assert far_end.came == [1]
    acme.up.start()
    assert eventually(lambda: acme.statuses(run) == ["succeeded"] * 2)
    assert (far_end.came, acme.begun()) == ([1, 2], 2)


def httpx_answers(acme: Acme) -> bool:
    try:
        return acme.up.is_ready()
    except httpx.HTTPError:
        return False
