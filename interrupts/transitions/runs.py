"""Runs: ended, cancelled with their descendants, and held by their budget."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from interrupts import imprints
from interrupts.days import whole_at as whole
from interrupts.models import (
    OPEN_STEPS,
    Attempt,
    Reason,
    Resolution,
    ResponseKind,
    Run,
    RunStatus,
    Step,
    StepStatus,
)
from interrupts.transitions import (
    checkpoints,
    compensation,
    holds,
    reservations,
    steps,
    wording,
)
from interrupts.transitions.moves import move_run
from interrupts.transitions.wording import plain
from interrupts.work import Work, descendants
from tenants.journal import SYSTEM

# What a cancel leaves open: facts that people still have to find out.
RECOVERIES = (Reason.OUTCOME_UNKNOWN, Reason.EFFECT_FAILED)


def end(work: Work, status: RunStatus) -> None:
    """End the run for good; what it leaves is in its last checkpoint."""
    move_run(work.run, status)
    work.run.ended_at = work.now
    is_awaited = work.run.verdicts_awaited or compensation.pending(work)
    work.run.due_at = work.now if is_awaited else None
    work.note(f"run.{status}", imprint=work.imprint(work.run, imprints.ENDING))
    checkpoints.take(work)


def unsettled(run: Run) -> str | None:
    """Say what of the run itself keeps it from ending: an open step, or a verdict that holds it."""
    if Step.objects.filter(run=run, status__in=sorted(OPEN_STEPS)).exists():
        return "A step is not settled."
    return "What was done is being judged." if run.verdicts_holding else None


def outstanding(run: Run) -> str | None:
    """Say what keeps the run from completing: what is not settled, or a run that it started."""
    if why := unsettled(run):
        return why
    if Run.objects.filter(parent=run, ended_at=None).exists():
        return "A run that it started has not ended."
    return None


def cancel(work: Work, *, note: str | None, compensate: bool = False) -> None:
    """Cancel the run and every descendant: nothing starts, what is in flight is finished."""
    cancel_children(work, note="its parent was cancelled", compensate=compensate)
    work.run.compensating = compensate
    _cancel_one(work, note=note)


def cancel_children(work: Work, *, note: str, compensate: bool = False) -> None:
    """Cancel every descendant, the youngest first, so that those above can end at once."""
    for child in reversed(descendants(work, SYSTEM)):
        if child.run.status != RunStatus.CANCELLING:
            child.run.compensating = compensate
            _cancel_one(child, note=note)
            child.finish()


def _cancel_one(work: Work, *, note: str | None) -> None:
    move_run(work.run, RunStatus.CANCELLING)
    work.run.epoch += 1
    work.note("run.cancelling", note=note, epoch=work.run.epoch, compensate=work.run.compensating)
    not_begun = [StepStatus.PROPOSED, StepStatus.WAITING, StepStatus.READY]
    for step in Step.objects.filter(run=work.run, status__in=not_begun).order_by("position"):
        steps.withdraw(work, step, StepStatus.CANCELLED, "the run was cancelled")
    for interrupt in holds.open_of(work).exclude(reason__in=RECOVERIES):
        holds.resolve(work, interrupt, Resolution.CANCEL, by=work.actor)
    if work.run.compensating:
        compensation.want_all(work)
    finish_cancel(work)


def finish_cancel(work: Work) -> None:
    """End a cancelling run in which nothing is in flight, unknown or still to end."""
    run = work.run
    if run.status != RunStatus.CANCELLING:
        return
    busy = Step.objects.filter(
        run=run, status__in=[StepStatus.EXECUTING, StepStatus.UNKNOWN, StepStatus.COMPENSATING]
    )
    if (
        busy.exists()
        or compensation.pending(work)
        or Run.objects.filter(parent=run, ended_at=None).exists()
    ):
        return
    for interrupt in holds.open_of(work):
        holds.resolve(work, interrupt, Resolution.CANCEL, by=SYSTEM)
    end(work, RunStatus.CANCELLED)


def fail_for_good(work: Work, *, note: str) -> None:
    """End a run of which an outcome cannot be found out: failed, or cancelled where it was being."""
    run = work.run
    work.ending = True
    unknown = Step.objects.filter(run=run, status=StepStatus.UNKNOWN)
    cancel_children(work, note="its parent ended")
    not_begun = [StepStatus.PROPOSED, StepStatus.WAITING, StepStatus.READY]
    for step in Step.objects.filter(run=run, status__in=not_begun).order_by("position"):
        steps.withdraw(work, step, StepStatus.CANCELLED, note)
    for interrupt in holds.open_of(work):
        holds.resolve(work, interrupt, Resolution.CANCEL, by=work.actor)
    cancelling = run.status == RunStatus.CANCELLING
    run.error = {"detail": note}
    end(work, RunStatus.CANCELLED if cancelling else RunStatus.FAILED)
    watch_leases(work)
    for step in unknown:
        steps.release_twins(work, step)


def watch_leases(work: Work) -> None:
    """Have the run looked at when the lease of something in flight is over, also once it ended."""
    live = Attempt.objects.filter(run=work.run, settled_at=None, lapsed_at=None)
    for at in live.values_list("lease_expires_at", flat=True):
        work.due(at)


def usage(run: Run) -> dict[str, Decimal]:
    return {
        "steps": Decimal(run.usage_steps),
        "cost": run.usage_cost,
        "seconds": run.usage_seconds,
        "tokens": Decimal(run.usage_tokens),
    }


def over_budget(
    run: Run, *, more_steps: int = 0, more_cost: Decimal = reservations.NOTHING
) -> dict[str, str]:
    """Return the limits that are exceeded, with so much more counted as used.

    What is reserved counts as used.
    """
    used = usage(run)
    used["steps"] += more_steps
    used["cost"] += run.reserved_cost + more_cost
    return reservations.exceeded(run.budget, used)


def over_any(
    work: Work, *, more_steps: int = 0, more_cost: Decimal = reservations.NOTHING
) -> holds.Hold | None:
    """Return what is to hold a run that is over its own budget, or over its agent's of today."""
    exceeded = over_budget(work.run, more_steps=more_steps, more_cost=more_cost)
    if exceeded:
        return budget_hold(work.run, exceeded, more_cost)
    exceeded = reservations.over_today(
        # Of the steps that are let in, today's row has counted all but this one.
        work,
        more_steps=min(more_steps, 1),
        more_cost=more_cost,
    )
    return _day_hold(work, exceeded, more_cost) if exceeded else None


def check_budget(work: Work) -> None:
    """Suspend the run once it is over a limit.

    One that is suspended already is then held by its budget too; one that ends starts nothing.
    """
    if work.run.status in (RunStatus.RUNNING, RunStatus.SUSPENDED):
        hold_for_budget(work, over_any(work))


def hold_for_budget(work: Work, hold: holds.Hold | None) -> None:
    """Hold the run by a budget, once: what else is used up is told when it is judged again."""
    if hold is not None and not is_over_budget(work):
        holds.open_holds(work, hold)


def is_over_budget(work: Work) -> bool:
    return bool(holds.open_of(work).filter(reason=Reason.BUDGET_EXHAUSTED).exists())


def budget_hold(
    run: Run, exceeded: dict[str, str], needed: Decimal = reservations.NOTHING
) -> holds.Hold:
    return holds.Hold(
        reason=Reason.BUDGET_EXHAUSTED,
        kind=ResponseKind.EXTENSION,
        question=wording.BUDGET_EXHAUSTED,
        schema=EXTENSION_SCHEMA,
        evidence={
            "budget": "run",
            "exceeded": exceeded,
            "used": _plain(usage(run)),
            "reserved": plain(run.reserved_cost),
            "needed": plain(needed),
            "whole_at": None,
        },
    )


def _day_hold(work: Work, exceeded: dict[str, str], needed: Decimal) -> holds.Hold:
    """What the agent's day has used up holds this run till a person answers, whatever the day."""
    row = work.days.today(work.now)
    used = {**reservations.used(row), "cost": row.cost}
    whole_at = whole(row.day)
    names = ", ".join(f"{name} ({limit} a day)" for name, limit in exceeded.items())
    return holds.Hold(
        reason=Reason.BUDGET_EXHAUSTED,
        kind=ResponseKind.EXTENSION,
        question=wording.DAY_EXHAUSTED.format(
            names=names, whole_at=whole_at.strftime("%Y-%m-%d %H:%M UTC")
        ),
        schema={**EXTENSION_SCHEMA, "minProperties": 0},
        evidence={
            "budget": "day",
            "day": row.day.isoformat(),
            "exceeded": exceeded,
            "limits": {name: str(one) for name, one in reservations.limits_of_day(work).items()},
            "used": _plain(used),
            "reserved": plain(row.reserved_cost),
            "needed": plain(needed),
            "whole_at": whole_at.isoformat(),
        },
    )


def _plain(used: dict[str, Decimal]) -> dict[str, str]:
    return {name: plain(amount) for name, amount in used.items()}


_NUMBER: dict[str, Any] = {"type": "integer", "minimum": 0}
_DECIMAL: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": r"^[0-9]{1,15}(\.[0-9]{1,10})?$"},
        {"type": "integer", "minimum": 0},
    ]
}
EXTENSION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {
        "steps": _NUMBER,
        "tokens": _NUMBER,
        "seconds": {"type": "number", "minimum": 0},
        "cost": _DECIMAL,
    },
}
