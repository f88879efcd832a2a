"""The whole service, as `manage.py up` runs it: one a session, started when it is first needed.

A tenant of a test's own comes from `Live.tenant`; the demo's is there as a stranger finds it.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import IO, Any

import yaml

from config.supervisor.paths import PROJECT, DataFolder
from config.supervisor.processes import Program
from demo.service import Person, Service
from tests.platform.kept import ran_before
from tests.platform.service import OURS, free_port
from tests.plugin_postgres import claimed_folder

READY_WITHIN_SECONDS = 120  # on a machine that has much else to do


class Live:
    """A service with its demo, on ports and a data folder of its own; it ends with this process."""

    def __init__(self) -> None:
        # What a session that was killed leaves of it, the next session removes.
        self._folder = claimed_folder(reuse=False)
        self.data = self._folder.__enter__() / "data"
        ran_before(DataFolder(self.data))
        self.port = free_port()
        self.environ = {k: v for k, v in os.environ.items() if not k.startswith(OURS)} | {
            "ABEYANCE_DATA_DIR": str(self.data),
            "ABEYANCE_PORT": str(self.port),
            "ABEYANCE_DEMO": "1",
            "ABEYANCE_WORKERS": "2",
        }
        command = [sys.executable, "manage.py", "up"]
        self._up = Program(command, self.environ, PROJECT, death_signal=signal.SIGINT).start(
            subprocess.PIPE
        )
        atexit.register(self.stop)
        self.said = self._until_ready()

    def _until_ready(self) -> list[str]:
        """Read what it says until it is ready; what it says later is read and dropped."""
        output = self._up.stdout
        assert output
        killer = threading.Timer(READY_WITHIN_SECONDS, self._up.kill)
        killer.start()
        said = []
        for line in output:
            said.append(line.decode().rstrip())
            if said[-1].startswith("ready: "):
                killer.cancel()
                threading.Thread(target=drain, args=[output], daemon=True).start()
                return said
        raise AssertionError(f"the service did not become ready: {said}")

    def stop(self) -> None:
        if self._up.poll() is None:
            self._up.send_signal(signal.SIGINT)
            self._up.wait(30)
        self._folder.__exit__(None, None, None)

    @property
    def pid(self) -> int:
        return self._up.pid

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def demo(self) -> Service:
        """The demo in it, as the demo's programs see it."""
        return Service.here(self.environ)

    def run(self, *command: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run one of the project's commands beside the service."""
        return subprocess.run(
            command,
            cwd=PROJECT,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
            **more,
        )

    def apply(self, *documents: dict[str, Any]) -> dict[str, Any]:
        """Apply tenants; return the credentials of whoever is new, by tenant."""
        name = secrets.token_hex(8)
        file, out = self.data / f"{name}.yaml", self.data / f"{name}.json"
        file.write_text(yaml.safe_dump_all(documents))
        done = self.run(
            sys.executable, "manage.py", "apply", str(file), "--credentials-out", str(out)
        )
        assert done.returncode == 0, done.stderr
        given: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        return given

    def tenant(self, document: dict[str, Any]) -> Tenant:
        """Apply a tenant, and return its keys and people."""
        return Tenant(self, self.apply(document)[document["tenant"]])


class Tenant:
    """A tenant of the live service, with the credentials of whoever is in it."""

    def __init__(self, live: Live, credentials: dict[str, Any]) -> None:
        self.live = live
        self.credentials = credentials

    def key(self, agent: str) -> str:
        key: str = self.credentials["agents"][agent]
        return key

    def person(self, username: str) -> Person:
        return Person(self.live.url, self.credentials["users"][username]["token"])


@cache
def live() -> Live:
    """The session's service."""
    return Live()


def drain(output: IO[bytes]) -> None:
    for _ in output:
        pass


def eventually(look: Callable[[], Any], seconds: float = 30) -> Any:
    """Return what the look gives as soon as it gives something."""
    deadline = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found, "it did not come about in time"
    return found
