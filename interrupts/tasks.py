"""The engine's Celery tasks: ids in, the tenant's scope, one use of the engine."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from celery import bootsteps, current_app, shared_task
from celery.signals import worker_ready, worker_shutting_down

from interrupts import queue, sweep, worker
from interrupts.models import Run
from interrupts.services import compensating, finding, judging
from tenants.scope import tenant_scope

sweeper = sweep.Sweeper()


@shared_task(name=queue.WORK_RUN)
def work_run(*, tenant_id: str, run_id: str, epoch: int, **_newer: object) -> None:
    with tenant_scope(UUID(tenant_id)):
        try:
            worker.work_run(UUID(run_id), epoch)
        except Run.DoesNotExist:
            return  # a hint about a run that is not there (a restored database) is no work


@shared_task(name=queue.FIND_OUT)
def find_out(*, tenant_id: str, step_id: str, **_newer: object) -> None:
    with tenant_scope(UUID(tenant_id)):
        finding.find_out(UUID(step_id), worker.worker_name())


@shared_task(name=queue.COMPENSATE)
def compensate(*, tenant_id: str, step_id: str, **_newer: object) -> None:
    with tenant_scope(UUID(tenant_id)):
        compensating.compensate(UUID(step_id), worker.worker_name())


@shared_task(name=queue.JUDGE)
def judge(*, tenant_id: str, step_id: str, **_newer: object) -> None:
    with tenant_scope(UUID(tenant_id)):
        judging.judge(UUID(step_id), worker.worker_name())


@shared_task(name=queue.SWEEP)
def sweep_all(**_newer: object) -> None:
    sweep.sweep_once()


class Sweeping(bootsteps.StartStopStep):
    """Sweeps from the worker's main process once its pool is there.

    A worker is only called ready once it has reached the broker, and leases end without one too.
    """

    requires = ("celery.worker.components:Pool",)

    def start(self, _worker: Any) -> None:
        sweeper.start()

    def stop(self, _worker: Any) -> None:
        sweeper.stop()

    def terminate(self, _worker: Any) -> None:
        sweeper.stop()


current_app.steps["worker"].add(Sweeping)


@worker_ready.connect
def take_part(sender: Any, **_: object) -> None:
    """Have a drained worker take no messages; ready is one that has a consumer of them."""
    sweeper.tell(partial(take_messages, sender))


def take_messages(consumer: Any, drained: bool) -> None:  # noqa: FBT001 - said by the sweep
    """Leave the queue to other workers, or come back to it; the consumer's own thread does it."""
    change = consumer.cancel_task_queue if drained else consumer.add_task_queue
    consumer.call_soon(change, consumer.app.conf.task_default_queue)


@worker_shutting_down.connect
def stop_sweeping(**_: object) -> None:
    sweeper.stop()
