"""The children that `up` keeps alive, each with a log of its own."""

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from config.supervisor.processes import Program

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 8.0
STEADY_SECONDS = 10.0
LARGEST_LOG_BYTES = 16 * 1024 * 1024
REST_OF_A_LINE = 300


@dataclass
class Child:
    """One child: started, noticed when it ends, started again after a growing pause."""

    name: str
    program: Program
    log: Path
    stop_signal: int = signal.SIGTERM
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    longest_pause: float = LONGEST_PAUSE_SECONDS
    pause: float = FIRST_PAUSE_SECONDS
    restart_at: float | None = None

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.process = self.program.start(output)
        self.started_at = time.monotonic()
        self.restart_at = None

    def look_after(self) -> str | None:
        """Notice an end, or start anew once the pause is over; returns what there is to tell."""
        now = time.monotonic()
        if self.restart_at is not None:
            if now >= self.restart_at:
                self.start()
            return None
        if self.process is None or self.process.poll() is None:
            return None
        steady = now - self.started_at > STEADY_SECONDS
        self.pause = FIRST_PAUSE_SECONDS if steady else self.pause
        self.restart_at = now + self.pause
        told = f"{self.name} ended ({self._how()}), starting it again"
        self.pause = min(self.pause * 2, self.longest_pause)
        return told

    def _how(self) -> str:
        code = self.process.returncode if self.process else 0
        return f"signal {-code}" if code < 0 else f"exit {code}: {self.last_line()}"

    def last_line(self) -> str:
        """The last line of its log, which mostly says why it ended."""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
            lines = log.read().decode(errors="replace").strip().splitlines()
        return lines[-1][-REST_OF_A_LINE:] if lines else "it said nothing"

    def trim_log(self) -> None:
        """Keep the log bounded: a full one becomes `.1`, in place of the one before."""
        if self.log.exists() and self.log.stat().st_size > LARGEST_LOG_BYTES:
            shutil.copyfile(self.log, f"{self.log}.1")
            os.truncate(self.log, 0)  # children append, so they go on at the new end

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def ask_to_stop(self) -> None:
        self.restart_at = None
        if self.process is not None and self.is_running():
            self.process.send_signal(self.stop_signal)

    def kill(self) -> None:
        """End it and what it started, which shares its process group."""
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait()


def stop_all(children: list[Child], within_seconds: float) -> None:
    """Ask each to stop, wait together, and kill what has not stopped by then."""
    for child in children:
        child.ask_to_stop()
    deadline = time.monotonic() + within_seconds
    while any(child.is_running() for child in children) and time.monotonic() < deadline:
        time.sleep(0.02)
    for child in children:
        child.kill()
