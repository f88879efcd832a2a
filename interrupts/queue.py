"""Names of the engine's tasks, and the wake that is sent once a transaction has committed.

A wake is a hint: the run's ``due_at`` is set before it, and the sweep finds what a lost one left.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from celery import current_app
from django.db import transaction
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from interrupts.models import Run
from tenants.scope import current_tenant_id

WORK_RUN = "interrupts.work_run"
SWEEP = "interrupts.sweep"
FIND_OUT = "interrupts.find_out"
COMPENSATE = "interrupts.compensate"
JUDGE = "interrupts.judge"
LEARN = "delegation.collect"
GRACE = timedelta(seconds=2)  # how long a wake may take before the sweep looks itself


def wake(run: Run) -> None:
    """Have a worker work the run, after the commit."""
    send_after_commit(current_tenant_id(), run.pk, run.epoch)


def send_after_commit(tenant_id: UUID, run_id: UUID, epoch: int) -> None:
    """Send the hint with the commit, or at once where no transaction is open."""
    names = str(tenant_id), str(run_id), epoch
    transaction.on_commit(lambda: send(*names))


def find_out(step_id: UUID) -> None:
    """Have a worker ask what became of a step, after the commit."""
    names = {"tenant_id": str(current_tenant_id()), "step_id": str(step_id)}
    transaction.on_commit(lambda: _publish(FIND_OUT, names))


def compensate(step_id: UUID) -> None:
    """Have a worker undo a step's effect, after the commit."""
    names = {"tenant_id": str(current_tenant_id()), "step_id": str(step_id)}
    transaction.on_commit(lambda: _publish(COMPENSATE, names))


def judge(step_id: UUID) -> None:
    """Have a worker ask a tool's verifier about a step's receipt, after the commit."""
    names = {"tenant_id": str(current_tenant_id()), "step_id": str(step_id)}
    transaction.on_commit(lambda: _publish(JUDGE, names))


def learn_soon() -> None:
    """Have learned from what somebody refused, or what was undone, after the commit.

    The sweep would come to it by itself, as to what was approved.
    """
    names = {"tenant_id": str(current_tenant_id())}
    transaction.on_commit(lambda: _publish(LEARN, names))


def look_soon(run_ids: Sequence[UUID]) -> None:
    """Have the sweep look at these runs now, after the commit and outside its transaction."""

    def mark() -> None:
        Run.objects.filter(pk__in=run_ids).update(due_at=Now())

    transaction.on_commit(mark)


def send(tenant_id: str, run_id: str, epoch: int) -> None:
    """Send the hint now; a broker that is gone costs the hint and nothing else."""
    _publish(WORK_RUN, {"tenant_id": tenant_id, "run_id": run_id, "epoch": epoch})


def _publish(task: str, names: Mapping[str, str | int]) -> None:
    try:
        current_app.send_task(task, kwargs=dict(names))
    except (OperationalError, OSError):
        return
