"""Pure and effect steps: proposed through the service, worked by the Celery task's body.

Prints for each kind, and for its proposals apart, ``{"steps_per_s", "client_cpu_ms", "counters"}``. All of it runs
in this one process, in runs that go on, and every step is seen as succeeded afterwards.
"""

from collections.abc import Callable
from unittest.mock import patch
from uuid import UUID

from benchmarks.figures import pace, report
from benchmarks.ours.api import step_body
from benchmarks.ours.inprocess import AGENT, as_agent, counting
from interrupts import worker
from interrupts.models import Run, Step, StepStatus
from interrupts.services.runs import start_run
from interrupts.services.steps import propose
from interrupts.tasks import work_run

STEPS, RUNS, COUNTED_RUNS = 100, 5, 1
KINDS = {"pure_step": "bench.read", "effect_step": "bench.note"}
ALONE = "pure_step_alone"  # the same with a commit for each, as where reads are slow or paid


class NotDone(Exception):
    """A step that was worked is not succeeded."""


def new_run(key: str = AGENT) -> Run:
    """Start a run."""
    with as_agent(key) as agent:
        return start_run(agent, workflow="bench", goal="be measured")


def propose_steps(run: Run, tool: str) -> None:
    """Propose the steps of a run one by one, as an agent does."""
    with as_agent() as agent:
        for _ in range(STEPS):
            propose(agent, run.pk, proposals=[step_body(tool)], single=True)


def work(run: Run) -> None:
    """Do what a worker does that takes the run's message."""
    work_run(tenant_id=str(run.tenant_id), run_id=str(run.pk), epoch=run.epoch)


def check(run_id: UUID, key: str = AGENT) -> None:
    """Raise NotDone unless every step of the run has succeeded."""
    with as_agent(key):
        done = Step.objects.filter(run=run_id, status=StepStatus.SUCCEEDED).count()
    if done != STEPS:
        raise NotDone(f"{done} of {STEPS} steps of run {run_id} have succeeded")


def timed(runs: list[Run], act: Callable[[Run], None]) -> dict[str, float]:
    """Return how fast steps come of doing this to each run."""

    def all_runs() -> None:
        for run in runs:
            act(run)

    return pace(STEPS * len(runs), all_runs)


def cost(runs: list[Run], act: Callable[[Run], None]) -> dict[str, float]:
    """Return what one step costs the server when this is done to each run."""
    with counting() as count:
        for run in runs:
            act(run)
    return count.each(STEPS * len(runs))


def measure(kind: str, tool: str) -> dict[str, dict[str, object]]:
    """Return the figures of one kind of step."""

    def proposing(run: Run) -> None:
        propose_steps(run, tool)

    warm, *runs = [new_run() for _ in range(1 + RUNS)]
    counted = [new_run() for _ in range(COUNTED_RUNS)]
    timed([warm], proposing)
    timed([warm], work)
    proposed, executed = timed(runs, proposing), timed(runs, work)
    proposing_cost, executing_cost = cost(counted, proposing), cost(counted, work)
    for run in (warm, *runs, *counted):
        check(run.pk)
    return {
        kind: {**executed, "counters": executing_cost},
        f"{kind}_proposal": {**proposed, "counters": proposing_cost},
    }


def main() -> None:
    """Measure each kind and print."""
    figures: dict[str, dict[str, object]] = {}
    for kind, tool in KINDS.items():
        figures |= measure(kind, tool)
    with patch.object(worker, "READS_TOGETHER", 1):
        figures[ALONE] = measure(ALONE, KINDS["pure_step"])[ALONE]
    report(figures)


if __name__ == "__main__":
    main()
