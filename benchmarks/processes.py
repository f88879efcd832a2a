"""Child processes that end with the benchmark, however it ends, and are stopped by their own id."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from config.supervisor.processes import Program, die_with_parent

PATIENCE = 3600.0  # seconds; most parts take half a minute where nobody else is at work


class ChildFailed(Exception):
    """A process of the benchmark ended otherwise than it should; its last lines say why."""


def tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


@contextmanager
def running(
    program: Program,
    log: Path,
    *,
    ready: Callable[[], bool],
    stop: signal.Signals = signal.SIGTERM,
) -> Iterator[None]:
    """Run a program for the length of the block, which begins once it is ready."""
    with log.open("ab") as sink:
        child = program.start(sink)
    try:
        _wait_until(ready, child, log)
        yield
    finally:
        _stop(child, stop)


def _wait_until(
    ready: Callable[[], bool], child: subprocess.Popen[bytes], log: Path, seconds: float = 60
) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if child.poll() is not None:
            raise ChildFailed(f"{child.args!r} ended with {child.returncode}:\n{tail(log)}")
        if time.monotonic() > deadline:
            raise ChildFailed(f"{child.args!r} is not ready after {seconds} s:\n{tail(log)}")
        time.sleep(0.02)


def _stop(child: subprocess.Popen[bytes], stop: signal.Signals, seconds: float = 20) -> None:
    if child.poll() is None:
        child.send_signal(stop)
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def run(
    *command: str | Path, environment: Mapping[str, str], seconds: float = 180
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return what it printed; ChildFailed where it failed."""
    done = subprocess.run(
        [os.fspath(part) for part in command],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        preexec_fn=partial(die_with_parent, os.getpid()),
        check=False,
    )
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-25:])
        raise ChildFailed(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{last}")
    return done


def figures_of(
    module: str,
    *arguments: str,
    environment: Mapping[str, str],
    python: Path | str = sys.executable,
) -> dict[str, Any]:
    """Run a measuring module in a process of its own and return the figures that it prints."""
    command = (python, "-m", module, *arguments)
    done = run(*command, environment=environment, seconds=PATIENCE)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures
