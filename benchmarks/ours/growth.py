"""What a long run costs: bytes kept of each step, and what it takes to go on after so many steps.

Prints ``{"growth": {"bytes_per_step_100", "bytes_per_step_1000", "slope"},
"load_to_resume": {"ms_10", "ms_1000", "over", "state_ms_10", "state_ms_1000", …}}``. Each step adds
1 KB to the agent's own state, put with the proposal as what was added. To resume is to claim the
run, look at it and propose the next step, over the API within this process; reading the whole state
stands apart.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.figures import percentile, report
from benchmarks.growing import LONG, RUNS, SHORT, Growth, bytes_per_step, piece, slope
from benchmarks.ours.api import BASE, step_body
from benchmarks.ours.inprocess import AGENT, DATABASE, as_agent
from benchmarks.ours.requests import call
from interrupts.models import Run, Step, StepStatus
from interrupts.services.runs import start_run
from interrupts.services.steps import propose
from interrupts.tasks import work_run

FORMAT = {"format": "bench", "version": "1"}
TOOL = "bench.read"
FEW, SAMPLES = 10, 25


class NotKept(Exception):
    """The state of a run does not hold what was added to it."""


def run_of(steps: int) -> str:
    """Run so many steps, each with 1 KB more of state, and return the run's id."""
    with as_agent() as agent:
        state: dict[str, Any] = {**FORMAT, "data": {"messages": []}}
        run = start_run(agent, workflow="bench", goal="be measured", agent_state=state)
        for _ in range(steps):
            base = Run.objects.values_list("checkpoint_id", flat=True).get(pk=run.pk)
            state = {**FORMAT, "base": str(base), "append": {"/messages": [piece()]}}
            proposal = {**step_body(TOOL), "agent_state": state}
            propose(agent, run.pk, proposals=[proposal], single=True)
    work_run(tenant_id=str(run.tenant_id), run_id=str(run.pk), epoch=run.epoch)
    check(run, steps)
    return str(run.pk)


def check(run: Run, steps: int) -> None:
    """Raise NotKept unless every step has succeeded and its piece is in the state."""
    with as_agent():
        done = Step.objects.filter(run=run, status=StepStatus.SUCCEEDED).count()
    kept = len(fetch_state(str(run.pk))["agent_state"]["data"]["messages"])
    if (done, kept) != (steps, steps):
        raise NotKept(f"{done} of {steps} steps of {run} succeeded, {kept} are in its state")


def look(run_id: str) -> dict[str, Any]:
    """Return the run as its agent sees it."""
    run: dict[str, Any] = call("GET", f"{BASE}/runs/{run_id}", AGENT)
    return run


def fetch_state(run_id: str) -> dict[str, Any]:
    """Return the run's newest checkpoint with the state, whole."""
    path = f"{BASE}/checkpoints/{look(run_id)['checkpoint']}"
    checkpoint: dict[str, Any] = call("GET", path, AGENT)
    return checkpoint


def resume(run_id: str) -> None:
    """Do what a process does that takes the run over: claim it, look at it, propose a step."""
    session = call("POST", f"{BASE}/runs/{run_id}/claim", AGENT, {})["session"]
    look(run_id)
    step = {**step_body(TOOL), "session": session}
    call("POST", f"{BASE}/runs/{run_id}/steps", AGENT, step)


def took(act: Callable[[], object]) -> float:
    """Return how many seconds it took."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def load_to_resume(few: str, many: str) -> dict[str, float]:
    """Return the median of resuming each of two runs, in turns, and the ratio of the two."""
    figures: dict[str, float] = {}
    for name, act in (("", resume), ("state_", fetch_state)):
        for run in (few, many):
            act(run)
        samples = [(took(partial(act, few)), took(partial(act, many))) for _ in range(SAMPLES)]
        short, long = (percentile(side, 0.5) * 1e3 for side in zip(*samples, strict=True))
        figures |= {f"{name}ms_{FEW}": short, f"{name}ms_{LONG}": long, f"{name}over": long / short}
    return figures


def main() -> None:
    """Measure and print."""
    few = run_of(FEW)
    growth = Growth(DATABASE)
    long_runs: list[str] = []
    sizes = {
        SHORT: bytes_per_step(growth, SHORT, RUNS, run_of),
        LONG: bytes_per_step(growth, LONG, 1, lambda steps: long_runs.append(run_of(steps))),
    }
    report({"growth": slope(sizes), "load_to_resume": load_to_resume(few, long_runs[0])})


if __name__ == "__main__":
    main()
