"""What the sweep does with a run that is due: every wait that is over, and when to look again."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from interrupts import queue, selectors
from interrupts.authorizer import authorizer
from interrupts.models import (
    Attempt,
    Executor,
    Interrupt,
    Outcome,
    Reason,
    Resolution,
    ResponseKind,
    RunStatus,
    Source,
    Step,
    StepStatus,
)
from interrupts.services import compensating, draining, finding, judging, starting
from interrupts.services import steps as proposing
from interrupts.services.runs import owner_silent_at
from interrupts.transitions import attempts, holds, runs, steps, tallies, wording
from interrupts.transitions.receipts import Seen
from interrupts.transitions.tallies import Counted
from interrupts.work import Work, working
from tenants.journal import SYSTEM

DRAINED: Final = timedelta(seconds=3)  # till the sweep of a drained host looks at a run again


def look(run_id: UUID) -> None:
    """Do what time has made due of a run, and set when it is to be looked at again."""
    counts: Counter[Counted] = Counter()
    with working(run_id, SYSTEM) as work:
        before = len(work.entries)
        unanswered = _wake_unanswered(work)
        counts.update(lapse_leases(work))
        counts.update(lose_read(work))
        finding.ask_due(work)
        compensating.send_due(work)
        expire(work)
        find_owner_lost(work)
        if work.run.status == RunStatus.RUNNING:
            proposing.release_twins(work)
        runs.finish_cancel(work)
        if len(work.entries) == before:
            work.state_unchanged()
        work.run.due_at = None
        compensating.watch(work)
        judging.send_due(work)
        runs.watch_leases(work)
        if not work.run.ended:
            set_due(work)
        if unanswered and work.wakes:
            counts[Counted.WAKES_LOST] += 1
        tallies.add(counts)


def _wake_unanswered(work: Work) -> bool:
    """Say whether the run was woken with its last change, could be worked, and nobody came.

    It was due a wake's grace after that change, so nothing else has set the time since.
    """
    run = work.run
    if run.status != RunStatus.RUNNING or run.due_at != run.updated_at + queue.GRACE:
        return False
    return work.now >= run.due_at and selectors.is_startable(run, run.updated_at)


def lapse_leases(work: Work) -> list[Counted]:
    live = Attempt.objects.filter(run=work.run, settled_at=None, lapsed_at=None)
    lapsed = list(live.filter(lease_expires_at__lte=work.now).order_by("id"))
    for attempt in lapsed:
        attempts.lapse(work, attempt)
    return [
        Counted.TAKEOVERS_FROM_AGENT
        if attempt.worker.startswith("agent:")
        else Counted.TAKEOVERS_FROM_SERVICE
        for attempt in lapsed
    ]


def lose_read(work: Work) -> list[Counted]:
    """Record a read whose worker did not come back: one of its tries, like any that broke off."""
    run = work.run
    if run.reading is None or run.reading_until is None or run.reading_until > work.now:
        return []
    step = Step.objects.get(pk=str(run.reading))
    run.reading = run.reading_until = None
    if step.status == StepStatus.READY:
        attempts.record_read(work, step, _LOST_READ, worker="")
    return [Counted.TAKEOVERS_FROM_SERVICE]


_LOST_READ = Seen(
    outcome=Outcome.UNKNOWN,
    source=Source.EXECUTOR,
    by="system:abeyance",
    error="the worker that was reading did not come back",
)


def expire(work: Work) -> None:
    """Time out interrupts that nobody answered: none of them ends in going on."""
    expired = holds.open_of(work).filter(expires_at__lte=work.now).order_by("id")
    for interrupt in list(expired):
        interrupt.refresh_from_db()
        if interrupt.resolved_at is not None:  # cancelled with an earlier one
            continue
        if interrupt.kind == ResponseKind.DECISION:
            _expire_gate(work, interrupt)
        elif interrupt.on_expiry == "escalate":
            _escalate(work, interrupt)
        else:
            _time_out(work, interrupt)


def _time_out(work: Work, interrupt: Interrupt) -> None:
    work.ending = True
    holds.resolve(work, interrupt, Resolution.TIME_OUT, by=SYSTEM)
    if work.run.status != RunStatus.CANCELLING:
        runs.cancel(work, note="nobody answered in time")


def _escalate(work: Work, interrupt: Interrupt) -> None:
    """Nobody answered: operators and admins are asked from now on, without a limit."""
    holds.ask_otherwise(work, interrupt, who=["operator", "admin"], expires_at=None)
    work.note("interrupt.escalated", interrupt=interrupt.pk)


def _expire_gate(work: Work, interrupt: Interrupt) -> None:
    if interrupt.gate is None:
        return
    expired, then = authorizer().expire_gate(work, interrupt.gate)
    if not expired:
        return
    step = Step.objects.get(pk=str(interrupt.step))
    if then == "cancel":
        _time_out(work, interrupt)
        return
    steps.settle_without_running(work, step, StepStatus.REJECTED, "nobody decided in time")
    holds.resolve(work, interrupt, Resolution.TIME_OUT, by=SYSTEM)


def find_owner_lost(work: Work) -> None:
    silent_at = owner_silent_at(work.run)
    if silent_at is None or silent_at > work.now:
        return
    holds.open_holds(
        work,
        holds.Hold(
            reason=Reason.OWNER_LOST,
            kind=ResponseKind.RELEASE,
            question=wording.OWNER_LOST,
            evidence={"last_seen_at": work.run.last_seen_at.isoformat()},
        ),
    )


def set_due(work: Work) -> None:
    """Set the earliest moment at which something of the run is due, and wake what can go on."""
    run = work.run
    for at in holds.open_of(work).values_list("expires_at", flat=True):
        work.due(at)
    unknown = Step.objects.filter(run=run, status=StepStatus.UNKNOWN, ask_at__isnull=False)
    for at in unknown.values_list("ask_at", flat=True):
        work.due(at)
    work.due(owner_silent_at(run))
    if run.status == RunStatus.CANCELLING:
        work.due(work.now + proposing.PATROL)
    if run.reading is not None:
        work.due(run.reading_until)  # whoever reads goes on by itself
    elif run.status == RunStatus.RUNNING and not run.verdicts_holding:
        _set_due_of_steps(work)


def _set_due_of_steps(work: Work) -> None:
    rows = Step.objects.filter(run=work.run, position__gte=work.run.next_step)
    if rows.filter(status=StepStatus.WAITING, held_by="twin").exists():
        work.due(work.now + proposing.PATROL)
    ready = rows.filter(status=StepStatus.READY).exclude(executor=Executor.AGENT)
    starts: list[datetime] = []
    for step in ready.order_by("position"):
        if starting.frozen(work.run, step):
            continue  # lifting the freeze looks at the run
        starts.append(max(step.due_at or work.now, work.now))
    if not starts:
        return
    if min(starts) > work.now:
        work.due(min(starts))
    elif draining.is_drained(draining.this_host()):
        work.due(work.now + DRAINED)  # a hint would lie where nobody takes it
    else:
        work.wake()
