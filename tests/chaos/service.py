"""The service under fire: started as anybody starts it, its processes found and killed by pid."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.farend import kill

ROOT = Path(__file__).parents[2]
KINDS = ("worker", "pool", "beat", "web", "broker", "database")


@dataclass
class Service:
    """A running `manage.py up` with a data folder of its own."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    environment: dict[str, str]

    @classmethod
    def start(cls, folder: Path) -> Service:
        port = free_port()
        environment = {
            **os.environ,
            "ABEYANCE_PORT": str(port),
            "ABEYANCE_DATA_DIR": str(folder),
            "ABEYANCE_DEMO": "0",
        }
        log = (folder / "up.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
        made = cls(folder, port, process, environment)
        made.wait_until_ready(120)
        return made

    def wait_until_ready(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError((self.folder / "up.log").read_text())
            if self.get("/healthz/ready")[0] == 200:
                return
            time.sleep(0.2)
        raise RuntimeError("the service does not get ready")

    def get(self, path: str) -> tuple[int, Any]:
        return request(self.port, "GET", path)

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def pids(self) -> dict[str, list[int]]:
        """The service's processes by kind, found below the supervisor."""
        found: dict[str, list[int]] = {kind: [] for kind in KINDS}
        parents = _parents()
        mine = _below(self.process.pid, parents)
        for pid in mine:
            kind = _kind(pid, parents.get(pid), mine)
            if kind:
                found[kind].append(pid)
        return found

    def kill_one(self, kind: str, choose: Any) -> bool:
        pids = self.pids()[kind]
        return bool(pids) and kill(choose(pids))


def _parents() -> dict[int, int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rsplit(")", 1)[1].split()[1])
    return parents


def _below(root: int, parents: dict[int, int]) -> set[int]:
    found = {root}
    grew = True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        grew = bool(more)
        found |= more
    return found - {root}


def _kind(pid: int, parent: int | None, mine: set[int]) -> str | None:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return None
    inner = parent in mine
    kinds = {
        "celery": "beat" if " beat" in line else "pool" if inner else "worker",
        "granian": "web",
        "multiprocessing": "web",
        "valkey": "broker",
        "postgres": None if inner else "database",
    }
    return next((kind for word, kind in kinds.items() if word in line), None)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def request(
    port: int,
    method: str,
    path: str,
    body: Any = None,
    *,
    token: str | None = None,
    key: str | None = None,
    timeout: float = 20,
) -> tuple[int, Any]:
    """One request; status 0 where no answer came."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if key:
        headers["Idempotency-Key"] = key
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        raw = answer.read()
        return answer.status, json.loads(raw) if raw else None
    except (OSError, http.client.HTTPException, ValueError):
        return 0, None
    finally:
        connection.close()


def insist(port: int, method: str, path: str, body: Any = None, *, token: str) -> tuple[int, Any]:
    """Send a request under one key until a real answer comes, as an agent on the SDK does."""
    key = secrets.token_hex(12) if method == "POST" else None
    while True:
        status, answer = request(port, method, path, body, token=token, key=key)
        code = answer.get("code") if isinstance(answer, dict) else None
        if status not in (0, 500, 502, 503, 504) and code != "request-in-progress":
            return status, answer
        time.sleep(0.2)
