"""`manage.py up` as a person starts it: another process, another data folder, another port."""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from config.database import NAME
from config.supervisor.paths import PROJECT, DataFolder
from config.supervisor.postgres import PORT
from config.supervisor.processes import Account

OURS = ("ABEYANCE_", "DATABASE_", "CELERY_", "DJANGO_", "PYTEST_", "PG")


class Service:
    """One `up`; whatever is left of it at the end of a test is killed."""

    def __init__(
        self,
        data: Path,
        *,
        environ: Mapping[str, str] | None = None,
        account: str | None = None,
        python: str | Path = sys.executable,
        project: Path = PROJECT,
    ) -> None:
        self.folder = DataFolder(data)
        self.port = free_port()
        self.environ = {k: v for k, v in os.environ.items() if not k.startswith(OURS)} | {
            "ABEYANCE_DATA_DIR": str(data),
            "ABEYANCE_PORT": str(self.port),
            "ABEYANCE_WORKERS": "2",
            "ABEYANCE_DEMO": "0",
            **(environ or {}),
        }
        self.account, self.python, self.project = account, python, project
        self.process: subprocess.Popen[str] | None = None
        self.said: list[str] = []

    def start(self) -> Service:
        self.launch()
        self.until_ready()
        return self

    def launch(self) -> None:
        account = Account(self.account)
        self.process = subprocess.Popen(
            [self.python, "manage.py", "up"],
            cwd=self.project,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            user=account.uid if self.account else None,
            group=account.gid if self.account else None,
            extra_groups=[] if self.account else None,
        )

    def until_ready(self) -> list[str]:
        """Read what it says until it says that it is ready."""
        said: list[str] = []
        assert self.process
        assert self.process.stdout
        for line in self.process.stdout:
            said.append(line.strip())
            if line.startswith("ready: "):
                return said
        _, fault = self.process.communicate()
        raise AssertionError(f"it ended before it was ready: {said} {fault}")

    def refused(self) -> tuple[int, str]:
        """Start it where it cannot; returns the exit code and what it says on stderr."""
        self.launch()
        assert self.process
        _, fault = self.process.communicate(timeout=30)
        return self.process.returncode, fault

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    def send(self, number: int) -> float:
        """Send it a signal and wait for its end; returns the seconds that took."""
        assert self.process
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.communicate(timeout=30)
        return time.monotonic() - began

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.send(signal.SIGTERM)

    def discard(self) -> None:
        """Stop it and remove what it keeps, also where that is not in its data folder."""
        self.stop()
        shutil.rmtree(self.folder.cluster, ignore_errors=True)

    def family(self) -> dict[int, str]:
        """Every process under it, the eldest first."""
        living = processes()
        parents = {pid: parent for pid, (parent, _) in living.items()}
        return {
            pid: command
            for pid, (_, command) in living.items()
            if self.pid in ancestors(pid, parents)
        }

    def members(self, part: str) -> list[int]:
        """Those whose command line holds this, the eldest first."""
        return [pid for pid, command in self.family().items() if part in command]

    def get(self, path: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def is_ready(self) -> bool:
        try:
            return self.get("/healthz/ready")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def sql(self, statement: str, user: str = "abeyance_owner") -> list[tuple[Any, ...]]:
        with self.connect(user) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def connect(self, user: str = "abeyance_owner") -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=str(self.folder.postgres_socket), port=PORT, user=user, dbname=NAME
        )


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """A folder that other users can reach too, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="abeyance-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def free_port() -> int:
    """A port that nobody listens on, outside of those that outgoing connections are given."""
    while True:
        port = random.randrange(20_000, 30_000)  # noqa: S311 - not a secret
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def processes() -> dict[int, tuple[int, str]]:
    """Every living process, the eldest first: its parent and its command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, parent, started = stat[0], int(stat[1]), int(stat[19])
        if state != "Z":
            found.append((started, int(folder.name), parent, command))
    return {pid: (parent, command) for _, pid, parent, command in sorted(found)}


def ancestors(pid: int, parents: Mapping[int, int]) -> set[int]:
    found: set[int] = set()
    while (pid := parents.get(pid, 0)) and pid not in found:
        found.add(pid)
    return found


def eventually(holds: Callable[[], bool], seconds: float = 40) -> bool:
    deadline = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return held


def none_left(pids: Mapping[int, str], seconds: float = 5) -> bool:
    return eventually(lambda: not pids.keys() & processes().keys(), seconds)
