"""DBOS Transact: a workflow of trivial steps, and a workflow that waits for an approval.

Prints ``{"steps_per_s", "client_cpu_ms", "approve_p50_ms", "approve_p99_ms", "counters"}``. The approval is a
call in the process that holds the waiting workflow: no HTTP, no check of who decides.
"""

import argparse
import os
import time
from pathlib import Path

from dbos import DBOS, DBOSConfig, SetWorkflowID

from benchmarks.counters import counted, server_folder
from benchmarks.figures import milliseconds, pace, report
from benchmarks.wire import PORT, Wire

DATABASE = os.environ["BENCH_DATABASE"]
PARKED = 20
SECONDS_TO_PARK = 0.3

reached: dict[int, float] = {}


@DBOS.step()
def step(number: int) -> int:
    """Do one step."""
    return number + 1


@DBOS.workflow()
def steps_in_turn(steps: int) -> int:
    """Run so many steps, each recorded before the next begins."""
    for number in range(steps):
        step(number)
    return steps


@DBOS.step()
def effect(number: int) -> int:
    """Note when the effect's first line ran."""
    reached[number] = time.perf_counter()
    return number


@DBOS.workflow()
def gated(number: int) -> None:
    """Wait for the approval, then do the effect."""
    step(number)
    if DBOS.recv("approval", timeout_seconds=600) == "approved":
        effect(number)


def launch(folder: Path) -> None:
    """Start DBOS on the server behind ``folder``."""
    url = f"postgresql://{os.environ['BENCH_USER']}@/{DATABASE}?host={folder}&port={PORT}"
    settings: DBOSConfig = {
        "name": "bench",
        "system_database_url": url,
        "log_level": "ERROR",
        "run_admin_server": False,
        "application_version": "1",
        "executor_id": "bench",
    }
    DBOS(config=settings)
    DBOS.launch()


def pace_of_steps(steps: int, runs: int) -> dict[str, float]:
    """Return how fast one thread of one process makes steps durable, after a run to warm up."""
    steps_in_turn(steps)

    def all_runs() -> None:
        for _ in range(runs):
            steps_in_turn(steps)

    return pace(steps * runs, all_runs)


def approve_latency(runs: int) -> dict[str, float]:
    """Return p50 and p99 from the approving call to the effect's first line."""
    samples = []
    for first in range(0, runs, PARKED):
        numbers = range(first, min(first + PARKED, runs))
        handles = []
        for number in numbers:
            with SetWorkflowID(f"gated-{number}"):
                handles.append(DBOS.start_workflow(gated, number))
        time.sleep(SECONDS_TO_PARK)
        for number, handle in zip(numbers, handles, strict=True):
            started = time.perf_counter()
            DBOS.send(f"gated-{number}", "approved", "approval")
            handle.get_result(polling_interval_sec=0.005)
            samples.append(reached[number] - started)
    return {f"approve_{name}": value for name, value in milliseconds(samples).items()}


def cost_of_a_step(steps: int, runs: int, wire: Wire) -> dict[str, float]:
    """Return what one step costs the server and how often it is waited for."""
    with counted(DATABASE, wire, publish=lambda: steps_in_turn(steps)) as count:
        for _ in range(runs - 1):
            steps_in_turn(steps)
    return count.each(steps * runs)


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=100, help="steps of a workflow")
    arguments.add_argument("--runs", type=int, default=10)
    arguments.add_argument("--approvals", type=int, default=200)
    given = arguments.parse_args()
    launch(server_folder())
    timed = {
        **pace_of_steps(given.steps, given.runs),
        **approve_latency(given.approvals),
    }
    DBOS.destroy()
    with Wire(server_folder()) as wire:
        launch(wire.folder)
        counters = cost_of_a_step(given.steps, 2, wire)
        DBOS.destroy()
    report({**timed, "counters": counters})


if __name__ == "__main__":
    main()
