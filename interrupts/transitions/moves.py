"""The one writer of a run's and of a step's status."""

from interrupts.errors import IllegalMove
from interrupts.models import RUN_MOVES, STEP_MOVES, Run, RunStatus, Step, StepStatus


def move_run(run: Run, to: RunStatus) -> None:
    if to not in RUN_MOVES[RunStatus(run.status)]:
        raise IllegalMove(f"A run that is {run.status} does not become {to}.")
    run.status = to


def move_step(step: Step, to: StepStatus) -> None:
    if to not in STEP_MOVES[StepStatus(step.status)]:
        raise IllegalMove(f"A step that is {step.status} does not become {to}.")
    step.status = to
