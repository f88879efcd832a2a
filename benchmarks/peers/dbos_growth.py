"""DBOS Transact: what a long workflow keeps of each step, and how long it takes to go on after them.

Prints ``{"bytes_per_step_100", "bytes_per_step_1000", "slope", "load_ms_10",
"load_ms_1000", "load_over"}``. Each step returns 1 KB. To load is what DBOS does of a workflow whose
process ended: its function runs again from the top and each recorded step answers from its record.
It is timed from the function's first line to the first step that is not on record.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict

from dbos import DBOS, SetWorkflowID

from benchmarks.counters import server_folder
from benchmarks.figures import percentile, report
from benchmarks.growing import LONG, RUNS, SHORT, Growth, bytes_per_step, piece, slope
from benchmarks.peers.dbos_peer import DATABASE, launch

FEW, SAMPLES = 10, 1
PREPARING = "--prepare"
SECONDS = 600.0

turn = threading.Lock()  # they go on one at a time, or each would wait for the others
loaded: dict[int, list[float]] = defaultdict(list)
all_there = threading.Semaphore(0)


@DBOS.step()
def talk() -> str:
    """Do one step, whose record is 1 KB."""
    return piece()


@DBOS.workflow()
def talking(steps: int) -> int:
    """Run so many steps."""
    for _ in range(steps):
        talk()
    return steps


@DBOS.workflow()
def broken_off(steps: int) -> int:
    """Run so many steps, and wait for what never comes."""
    with turn:
        started = time.perf_counter()
        for _ in range(steps):
            talk()
        loaded[steps].append(time.perf_counter() - started)
    all_there.release()
    DBOS.recv("never", timeout_seconds=3600)
    return steps


def wait_for_all() -> None:
    """Wait until every workflow has done its steps, or has them again."""
    for _ in range(2 * SAMPLES):
        if not all_there.acquire(timeout=SECONDS):
            raise RuntimeError("a workflow did not come to its end")


def prepare() -> None:
    """Leave workflows behind whose process ended in the middle of them."""
    launch(server_folder())
    for steps in (FEW, LONG):
        for number in range(SAMPLES):
            with SetWorkflowID(f"broken-{steps}-{number}"):
                DBOS.start_workflow(broken_off, steps)
    wait_for_all()
    os._exit(0)


def load_ms() -> dict[str, float]:
    """Return how long workflows took that this process found when it was launched."""
    wait_for_all()
    few, many = (percentile(loaded[steps], 0.5) * 1e3 for steps in (FEW, LONG))
    return {f"load_ms_{FEW}": few, f"load_ms_{LONG}": many, "load_over": many / few}


def main() -> None:
    """Measure and print; the process ends with workflows that wait for ever."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(PREPARING, action="store_true")
    if arguments.parse_args().prepare:
        prepare()
    command = [sys.executable, "-m", "benchmarks.peers.dbos_growth", PREPARING]
    subprocess.run(command, check=True, timeout=SECONDS)
    launch(server_folder())
    loads = load_ms()
    talking(FEW)
    growth = Growth(DATABASE)
    sizes = {
        SHORT: bytes_per_step(growth, SHORT, RUNS, talking),
        LONG: bytes_per_step(growth, LONG, 1, talking),
    }
    report(slope(sizes) | loads)
    os._exit(0)


if __name__ == "__main__":
    main()
