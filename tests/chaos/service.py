"""The service under fire: started as anybody starts it, its processes found and killed by pid."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from config.database import NAME, OWNER
from config.supervisor.paths import PROJECT, DataFolder
from config.supervisor.postgres import PORT
from config.supervisor.processes import Program
from tests.chaos.farend import kill
from tests.platform.service import OURS, ancestors, free_port, processes

# The main processes of two workers, those of their pools, and so on; "database" is its postmaster
# or, now and then, one of its backends.
KINDS = ("worker", "pool", "beat", "web", "broker", "database")
BACKENDS_SHARE = 0.25
READY_WITHIN_SECONDS = 300.0  # on a machine that has much else to do
ANSWERS_WITHIN_SECONDS = 600.0

Choose = Callable[[Sequence[int]], int]
Pids = dict[str, list[int]]


class NoAnswer(Exception):
    """The service gave no real answer for much longer than any restart takes."""


@dataclass
class Service:
    """A `manage.py up` with a data folder of its own, and a second worker beside it."""

    folder: DataFolder
    port: int
    environ: dict[str, str]
    up: subprocess.Popen[bytes]
    beside: subprocess.Popen[bytes]
    started_in: float  # seconds

    @classmethod
    def start(cls, root: Path) -> Service:
        port = free_port()
        environ = {k: v for k, v in os.environ.items() if not k.startswith(OURS)} | {
            "ABEYANCE_PORT": str(port),
            "ABEYANCE_DATA_DIR": str(root / "data"),
            "ABEYANCE_DEMO": "0",
            "ABEYANCE_WORKERS": "2",
            "ABEYANCE_LONGEST_PAUSE": "1",
        }
        began = time.monotonic()
        up = _started("manage.py", "up", environ=environ, log=root / "up.log")
        try:
            _wait_until_ready(up, port)
            beside = _started("-m", "tests.chaos.beside", environ=environ, log=root / "beside.log")
        except BaseException:
            _stop(up)
            raise
        return cls(DataFolder(root / "data"), port, environ, up, beside, time.monotonic() - began)

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def connect(self) -> psycopg.Connection[Any]:
        """A look at the tables as their owner, who sees every tenant."""
        return psycopg.connect(
            host=str(self.folder.postgres_socket),
            port=PORT,
            user=OWNER,
            dbname=NAME,
            autocommit=True,
            connect_timeout=2,
        )

    def stop(self) -> list[str]:
        """End all of it; returns the command lines of what was left, which is killed."""
        _stop(self.beside)
        _stop(self.up)
        mark = f"ABEYANCE_DATA_DIR={self.folder.root}".encode()
        end = time.monotonic() + 5
        while (left := _marked(mark)) and time.monotonic() < end:
            time.sleep(0.1)
        for pid in left:
            kill(pid)
        return [*left.values()]

    def pids(self) -> Pids:
        """The service's processes by kind, found below what was started."""
        return self._look()[0]

    def sweeping(self) -> list[int]:
        """The workers that sweep: those that have forked their pools."""
        found, parents = self._look()
        return sorted({parents[pid] for pid in found["pool"]})

    def _look(self) -> tuple[Pids, dict[int, int]]:
        living = processes()
        parents = {pid: parent for pid, (parent, _) in living.items()}
        roots = {self.up.pid, self.beside.pid}
        mine = {pid: line for pid, (_, line) in living.items() if roots & ancestors(pid, parents)}
        found: Pids = {kind: [] for kind in (*KINDS, "backend")}
        for pid, line in mine.items():
            if kind := _kind(line, inner=parents[pid] in mine):
                found[kind].append(pid)
        return found, parents


def _started(*command: str, environ: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    program = Program([sys.executable, *command], environ, PROJECT, death_signal=signal.SIGINT)
    with log.open("wb") as output:
        return program.start(output)


def _wait_until_ready(up: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + READY_WITHIN_SECONDS
    while request(port, "GET", "/healthz/ready")[0] != 200:
        if up.poll() is not None or time.monotonic() > end:
            raise RuntimeError("the service does not get ready")
        time.sleep(0.2)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _marked(mark: bytes) -> dict[int, str]:
    """The living processes that have this in their environment."""
    found = {}
    for pid, (_, line) in processes().items():
        with suppress(OSError):
            if pid != os.getpid() and mark in Path(f"/proc/{pid}/environ").read_bytes():
                found[pid] = line
    return found


def _kind(line: str, *, inner: bool) -> str | None:
    words = {
        "postgres": "backend" if inner else "database",
        "valkey-server": "broker",
        " beat ": "beat",
        " worker ": "pool" if inner else "worker",
        "granian": "web",
        "multiprocessing": "web",
    }
    return next((kind for word, kind in words.items() if word in line), None)


def choose_victim(found: Pids, kind: str, dice: Any) -> int | None:
    """Choose one of a kind; None where none of it lives now."""
    pids = found[kind]
    if kind == "database" and found["backend"] and dice.random() < BACKENDS_SHARE:
        pids = found["backend"]
    return dice.choice(pids) if pids else None


# Requests


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


def insist(
    port: int, method: str, path: str, body: Any = None, *, token: str, key: str | None = None
) -> tuple[int, Any]:
    """Send a request under one key until a real answer comes, as an agent on the SDK does.

    Raises NoAnswer.
    """
    if method == "POST" and key is None:
        key = secrets.token_hex(12)
    end = time.monotonic() + ANSWERS_WITHIN_SECONDS
    while True:
        status, answer = request(port, method, path, body, token=token, key=key)
        code = answer.get("code") if isinstance(answer, dict) else None
        if status not in (0, 500, 502, 503, 504) and code != "request-in-progress":
            return status, answer
        if time.monotonic() > end:
            raise NoAnswer(f"{method} {path}: {status} {code}")
        time.sleep(0.2)
