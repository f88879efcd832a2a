"""What a step is let in with against a budget: reserved till it settles, then what it cost.

While its outcome is unknown nothing is given back, so that steps side by side can't use more than
there is; an outcome that nobody can find out keeps it for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from interrupts import catalogue
from interrupts.authorizer import authorizer
from interrupts.days import day_of
from interrupts.models import AgentDay, Step
from interrupts.work import Work
from tenants.scope import current_tenant_id

LIMITS: Final = ("steps", "cost", "seconds", "tokens")
NOTHING: Final = Decimal(0)


def estimate(step: Step) -> Decimal:
    """Return what the step is expected to cost: what its tool declares, or more if its agent says."""
    declared = catalogue.version(current_tenant_id(), step.tool_version_id).cost or "0"
    return max(Decimal(declared), Decimal(str(step.proposal.get("cost", 0))))


def limits_of_day(work: Work) -> dict[str, Any]:
    """Return what the agent may use today; empty where nothing is declared for it."""
    limits = authorizer().daily_limits(work)
    return {**limits, **work.days.today(work.now).extended} if limits else {}


def used(row: AgentDay) -> dict[str, Decimal]:
    """Return what counts in the day; of the cost, with what is reserved."""
    return {
        "steps": Decimal(row.steps),
        "cost": row.cost + row.reserved_cost,
        "seconds": row.seconds,
        "tokens": Decimal(row.tokens),
    }


def exceeded(limits: Mapping[str, Any], usage: Mapping[str, Decimal]) -> dict[str, str]:
    """Return the limits that this is beyond."""
    return {
        name: str(limits[name])
        for name in LIMITS
        if limits.get(name) is not None and usage[name] > Decimal(str(limits[name]))
    }


def over_today(work: Work, *, more_steps: int = 0, more_cost: Decimal = NOTHING) -> dict[str, str]:
    """Return the limits of the agent's day that are exceeded, with so much more counted."""
    limits = limits_of_day(work)
    if not limits:
        return {}
    usage = used(work.days.today(work.now))
    usage["steps"] += more_steps
    usage["cost"] += more_cost
    return exceeded(limits, usage)


def take(work: Work, step: Step, cost: Decimal) -> None:
    """Reserve the cost of a step that is let in, and count the step in its agent's day."""
    is_daily = bool(authorizer().daily_limits(work))
    reserves = is_daily or work.run.budget.get("cost") is not None
    if not is_daily and not (reserves and cost):
        return
    step.reserved_cost = cost
    work.run.reserved_cost += cost
    if is_daily:
        step.counted_on = day_of(work.now)
        more = {"steps": Decimal(1), "reserved_cost": cost}
        work.days.add(work.now, step.counted_on, more)
    step.save(update_fields=["reserved_cost", "counted_on"])
    work.note("budget.reserved", step=step.pk, cost=str(cost), day=step.counted_on)


def give_back(work: Work, step: Step) -> None:
    """Reserve nothing more for a step that is settled; a repeat gives back nothing."""
    cost = step.reserved_cost
    if cost is None:
        return
    step.reserved_cost = None
    step.save(update_fields=["reserved_cost"])
    work.run.reserved_cost -= cost
    if step.counted_on is not None:
        work.days.add(work.now, step.counted_on, {"reserved_cost": -cost})


def spend(work: Work, step: Step, cost: Decimal | None) -> None:
    """Count what a receipt says that the step cost, in the day in which the step was let in."""
    if not cost:
        return
    work.run.usage_cost += cost
    if step.counted_on is not None:
        work.days.add(work.now, step.counted_on, {"cost": cost})


def report(work: Work, *, tokens: int, cost: Decimal, seconds: Decimal) -> None:
    """Count in the agent's day what it says that it used, where a day's budget is declared."""
    if authorizer().daily_limits(work):
        more = {"tokens": Decimal(tokens), "cost": cost, "seconds": seconds}
        work.days.add(work.now, day_of(work.now), more)
