"""A worker in a process of its own, that ends by SIGKILL where it is told to.

Run as a program it imports the service once and forks a worker for each line it reads: the ids of
what to work, and where to die. It holds no connection itself, so each worker makes its own.
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

from django.db import connections

PLACES = ("nowhere", "before the call", "during the call", "before the record", "after the record")


@dataclass
class Workers:
    """Starts workers; ``ledger`` is the far end's: a line for each call that was performed."""

    zygote: subprocess.Popen[str]
    ledger: Path

    def work(self, run: Any, *, die: str = "nowhere", at: int = 1) -> int | None:
        """Have a process work the run and die at the ``at``-th time it comes to a place.

        Returns the number of calls it made, or None where it was killed.
        """
        run.refresh_from_db()
        order = {
            "tenant": str(run.tenant_id),
            "run": str(run.pk),
            "epoch": run.epoch,
            "die": die,
            "at": at,
            "ledger": str(self.ledger),
        }
        self.zygote.stdin.write(json.dumps(order) + "\n")
        self.zygote.stdin.flush()
        said = json.loads(self.zygote.stdout.readline())
        if "killed" in said:
            assert said["killed"] == signal.SIGKILL
            return None
        return said["calls"]

    @property
    def performed(self) -> list[Any]:
        if not self.ledger.exists():
            return []
        return [json.loads(line) for line in self.ledger.read_text().splitlines()]


@contextmanager
def running(folder: Path) -> Iterator[Workers]:
    names = {alias: connections[alias].settings_dict["NAME"] for alias in connections}
    zygote = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.workers", json.dumps(names)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Workers(zygote, folder / "ledger")
    finally:
        zygote.stdin.close()
        zygote.wait(20)
        zygote.stdout.close()


def main(names: dict[str, str]) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    import django
    from django.conf import settings

    for alias, name in names.items():
        settings.DATABASES[alias]["NAME"] = name
    settings.AUTHORIZER = "tests.interrupts.house.FakeAuthorizer"
    django.setup()
    import interrupts.worker  # noqa: F401 - once, for every worker that is forked

    for line in sys.stdin:
        tell(json.loads(line))


def tell(order: dict[str, Any]) -> None:
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        calls = work(**order)
        os.write(writing, json.dumps({"calls": calls}).encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        answer = said.read() or json.dumps({"killed": os.waitstatus_to_exitcode(status) * -1})
    sys.stdout.write(answer + "\n")
    sys.stdout.flush()


def work(*, tenant: str, run: str, epoch: int, die: str, at: int, ledger: str) -> int:
    from uuid import UUID

    from interrupts import hot, worker
    from interrupts.effects import python as effects
    from tenants.scope import tenant_scope

    place = Place(die, at)

    def execute(arguments: Any, call: Any) -> Any:
        place("before the call")
        with Path(ledger).open("a") as file:
            file.write(json.dumps({"n": arguments["n"], "key": call.idempotency_key}) + "\n")
        place("during the call")
        return {"done": arguments["n"]}

    advance = hot.advance

    def advanced(*args: Any, **more: Any) -> Any:
        if more["done"]:
            place("before the record")
        made = advance(*args, **more)
        if more["done"]:
            place("after the record")
        return made

    effects.tool_named = lambda _: effects.PythonTool(execute)
    hot.advance = advanced
    with tenant_scope(UUID(tenant)):
        return worker.work_run(UUID(run), epoch)


class Place:
    """Kills the process where it is to die, as the kernel does it: with no last word."""

    def __init__(self, die: str, at: int) -> None:
        self.die, self.left = die, at

    def __call__(self, name: str) -> None:
        if name == self.die:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
