"""What mails say of outcomes: failed, unknown, to be settled, and found out after all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from django.urls import reverse

from approvals.services.notices.words import Told, plain, risk_of, undo_of, url, when
from approvals.snapshots import Asked
from interrupts import catalogue, content
from interrupts.models import Content, Interrupt, InterruptStatus, Run, Step, StepStatus
from tenants.scope import current_tenant_id

_FAILED: Final = (
    "A call that you approved was refused, or it failed, and did not happen. Its agent was told."
)
_UNKNOWN: Final = (
    "A call that you approved was made, and nobody knows what became of it. Its run is suspended,"
    " and nothing is sent again before that is found out."
)
_TO_SETTLE: Final = (
    "A call was made, and nobody knows what became of it. Its run is suspended, and nothing is sent"
    " again before that is found out. Look at the far end, and say what you found."
)
_FOUND: Final = {
    StepStatus.SUCCEEDED: ("It happened", "it happened, once."),
    StepStatus.COMPENSATING: ("It happened", "it happened, and is being undone."),
    StepStatus.COMPENSATED: ("It happened", "it happened, and was undone."),
    StepStatus.FAILED: ("It did not happen", "it did not happen, and is not sent again."),
    StepStatus.CANCELLED: ("It did not happen", "it did not happen, and is not sent again."),
}
_SENT_AGAIN: Final = (
    "It did not happen",
    "it did not happen, and is sent again under the same key where that is still wanted.",
)


def failed(_recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    rows = Step.objects.filter(pk__in=named, status=StepStatus.FAILED).order_by("pk")
    return [_told(step, "Failed", _FAILED) for step in rows]


def unknown(_recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    return [_told(step, "Unknown outcome", _UNKNOWN) for step in _still_unknown(named)]


def to_settle(_recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    return [
        _told(step, "Unknown outcome, to be settled", _TO_SETTLE) for step in _still_unknown(named)
    ]


def found(_recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    """Return the recoveries that are closed, with what their steps are now."""
    closed = Interrupt.objects.filter(pk__in=named).exclude(status=InterruptStatus.OPEN)
    told = []
    for step in _steps_of(closed.values_list("step", flat=True)):
        if step.status == StepStatus.UNKNOWN:
            continue  # unknown anew, or for good: another mail says so
        start, said = _FOUND.get(StepStatus(step.status), _SENT_AGAIN)
        told.append(_told(step, start, f"The outcome of a call was unknown. Found out: {said}"))
    return told


def _still_unknown(named: Sequence[UUID]) -> list[Step]:
    waiting = Interrupt.objects.filter(pk__in=named, status=InterruptStatus.OPEN)
    steps = _steps_of(waiting.values_list("step", flat=True))
    return [step for step in steps if step.status == StepStatus.UNKNOWN]


def _steps_of(ids: Iterable[UUID | None]) -> list[Step]:
    return list(Step.objects.filter(pk__in=[str(one) for one in ids if one]).order_by("pk"))


def _told(step: Step, start: str, said: str) -> Told:
    run = Run.objects.select_related("agent").get(pk=step.run_id)
    headline = plain(headline_of(step))
    facts = [
        f"Risk: {risk_of(step)}",
        f"Agent: {plain(run.agent.name)}",
        f"Tool: {plain(step.tool_name)}",
        f"Undo: {undo_of(step)}",
    ]
    if step.unknown_at is not None:
        facts.append(f"Unknown since: {when(step.unknown_at)}")
    return Told(
        subject=f"{start}: {headline}",
        said=said,
        headline=headline,
        facts=facts,
        link=url(reverse("run", args=[run.pk])),
        link_says="Open the run",
        foot=[f"Run {run.pk}, step {step.position}."],
    )


def headline_of(step: Step) -> str:
    """Return what the tool's own template says of the stored arguments."""
    version = catalogue.version(current_tenant_id(), step.tool_version_id)
    try:
        arguments = json.loads(content.get(step.arguments))
    except Content.DoesNotExist:  # erased
        return step.tool_name
    return Asked(step.tool_name, version, arguments).headline
