"""What ran under a rule, as it is listed: the latest first, in pages by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from approvals.models import Decision
from delegation.models import DelegationUse
from interrupts.models import Step

PAGE: Final = 50


@dataclass(frozen=True, slots=True)
class Used:
    """One call that a rule allowed: what it was, what became of it, and the record of it."""

    use: UUID
    version: int  # of the rule
    step: UUID
    run: UUID
    gate: UUID | None
    headline: str
    status: str
    at: datetime


def of_rule(delegation_id: UUID) -> QuerySet[DelegationUse]:
    """Return what ran under a rule."""
    return DelegationUse.objects.filter(delegation=delegation_id)


def latest(delegation_id: UUID, before: UUID | None = None) -> tuple[Sequence[Used], UUID | None]:
    """Return a page, the latest first, and where the next begins."""
    rows = of_rule(delegation_id)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: PAGE + 1])
    shown = told(found[:PAGE])
    return shown, found[PAGE - 1].pk if len(found) > PAGE else None


def told(rows: Sequence[DelegationUse]) -> list[Used]:
    """Return the uses with their calls."""
    steps = Step.objects.defer("arguments").in_bulk([one.step for one in rows])
    decided = [one.decision for one in rows if one.decision is not None]
    decisions = Decision.objects.filter(pk__in=decided).select_related("gate")
    gates = {one.pk: one.gate for one in decisions}
    return [
        Used(
            use=one.pk,
            version=one.version,
            step=one.step,
            run=steps[one.step].run_id,
            gate=gates[one.decision].pk if one.decision in gates else None,
            headline=gates[one.decision].headline
            if one.decision in gates
            else steps[one.step].tool_name,
            status=steps[one.step].status,
            at=one.at,
        )
        for one in rows
    ]
