"""What a person gives a run, or its agent's day, beyond the limits in force."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from config.errors import InvalidBody
from interrupts.days import day_of
from interrupts.transitions import reservations, runs
from interrupts.work import Work
from tenants.journal import Entry

Limits = Mapping[str, Any]


def extend_run(work: Work, limits: Limits) -> None:
    """Put these limits in force for the run; InvalidBody below what it has used."""
    _check_not_used(limits, runs.usage(work.run))
    work.run.budget = {**work.run.budget, **limits}
    work.note("budget.extended", limits=_plain(limits))


def extend_day(work: Work, limits: Limits) -> None:
    """Put these in force for the agent's day in which it is answered, for all its runs.

    InvalidBody below what is used. The next day has the limits that are declared.
    """
    row = work.days.today(work.now)
    _check_not_used(limits, {**reservations.used(row), "cost": row.cost})
    row.extended = {**row.extended, **limits}
    work.days.changed.add(row.day)
    work.note("day.extended", day=row.day, limits=_plain(limits))


def told_of_day(work: Work, limits: Limits) -> Entry:
    """What the tenant's journal tells of it: it concerns more than the run."""
    data = {"run": work.run.pk, "agent": work.run.agent_id, "day": day_of(work.now)}
    return Entry("day.extended", {**data, "limits": _plain(limits)})


def _check_not_used(limits: Limits, used: Mapping[str, Decimal]) -> None:
    for name, limit in limits.items():
        if Decimal(str(limit)) < used[name]:
            raise InvalidBody.at(f"/value/{name}", f"{used[name].normalize():f} is used already")


def _plain(limits: Limits) -> dict[str, str]:
    return {name: str(limit) for name, limit in limits.items()}
