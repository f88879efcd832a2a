"""Processes that do one thing and are killed at a commit, by SIGKILL and with no last word.

Run as a program it imports the service once and forks a process for each line it reads. It holds
no connection itself, so each process makes its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connections


@dataclass
class Children:
    """Has a case done by a process of its own."""

    zygote: subprocess.Popen[str]

    def do(
        self, case: str, tenant: UUID, names: dict[str, str], ledger: Path, *die: str | int
    ) -> int | None:
        """Do it; return how many commits it made, or None where it was killed as it should be."""
        order = [case, str(tenant), names, str(ledger), *(die or ("never", 0))]
        assert self.zygote.stdin is not None
        assert self.zygote.stdout is not None
        self.zygote.stdin.write(json.dumps(order) + "\n")
        self.zygote.stdin.flush()
        said: dict[str, Any] = json.loads(self.zygote.stdout.readline())
        assert "fault" not in said, said
        assert said.get("killed") in (None, signal.SIGKILL), said
        return None if "killed" in said else int(said["commits"])


@contextmanager
def running() -> Iterator[Children]:
    names = {alias: connections[alias].settings_dict["NAME"] for alias in connections}
    zygote = subprocess.Popen(
        [sys.executable, "-m", "tests.crashes.children", json.dumps(names)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Children(zygote)
    finally:
        assert zygote.stdin is not None
        assert zygote.stdout is not None
        zygote.stdin.close()
        zygote.wait(20)
        zygote.stdout.close()


def main(names: dict[str, str]) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    import django
    from django.conf import settings

    for alias, name in names.items():
        settings.DATABASES[alias]["NAME"] = name
    settings.SWEEPERS = ["approvals.sweep.sweep_gates"]
    settings.LOGGING_CONFIG = None  # what a dying process says is nobody's business
    django.setup()
    import tests.crashes.cases  # noqa: F401 - once, for every process that is forked

    for line in sys.stdin:
        tell(*json.loads(line))


def tell(*order: Any) -> None:
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            said = {"commits": do(*order)}
        except Exception as fault:  # noqa: BLE001 - told to the test, which fails by it
            said = {"fault": repr(fault)}
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as answer:
        told = answer.read() or json.dumps({"killed": -os.waitstatus_to_exitcode(status)})
    sys.stdout.write(told + "\n")
    sys.stdout.flush()


def do(case: str, tenant: str, names: dict[str, str], ledger: str, when: str, at: int) -> int:
    """Do a case and count its commits; at the ``at``-th the process is no more."""
    from tenants.scope import tenant_scope
    from tests.crashes.cases import CASES
    from tests.crashes.scene import Scene
    from tests.property.commits import commits

    made = {"before": 0, "after": 0}

    def place(name: str) -> None:
        made[name] += 1
        if (name, made[name]) == (when, at):
            os.kill(os.getpid(), signal.SIGKILL)

    with tenant_scope(UUID(tenant)), Scene.entered(Path(ledger), new=False) as scene:
        with commits(place):
            CASES[case].act(scene, names)
        return made["after"]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
