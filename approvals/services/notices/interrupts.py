"""What mails say of interrupts that a person answers on the run's page: nothing that others wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from django.urls import reverse

from approvals import owed
from approvals.services.notices.outcomes import headline_of
from approvals.services.notices.words import Told, plain, risk_of, url, when
from interrupts.models import Interrupt, InterruptStatus, Reason, Run, Step

_SUSPENDED: Final = "The run is suspended until somebody says how it goes on."
# By reason: how the subject begins, and what the mail says.
_SAID: Final[Mapping[str, tuple[str, str]]] = {
    Reason.VERIFIER_REJECTED: (
        "A check failed",
        "What a call did was checked, and was not passed.",
    ),
    Reason.EFFECT_FAILED: ("Refused", "A call was refused, or it failed, and did not happen."),
    Reason.BUDGET_EXHAUSTED: ("Budget used up", "A run has used up its budget."),
    Reason.CONTEXT_MISSING: ("Not known", "Something that is needed to go on is not known."),
    Reason.INPUT_REQUIRED: ("A value is needed", "An agent needs a value from a person."),
    Reason.AGENT_REQUESTED: ("An agent asks", "An agent asks a person to look at its run."),
    Reason.OWNER_LOST: ("Gone silent", "The agent that drives a run has gone silent."),
    Reason.MILESTONE: ("May it complete", "A run is to complete, and policy asks about it first."),
}
_UNCHECKED: Final = ("Not checked", "What a call did could not be checked.")
_NOT_UNDONE: Final = ("Not undone", "A call was to be undone, and its far end refuses to.")
_DAY_USED_UP: Final = ("Day used up", "An agent has used up what it may use in a day.")
_THEN: Final = {"cancel": "the run is cancelled", "escalate": "operators and admins are asked"}


def held(recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    """Tell of those that are still open and that the person is still to answer."""
    rows = Interrupt.objects.filter(pk__in=named, status=InterruptStatus.OPEN).order_by("pk")
    found = rows.select_related("run__agent")
    return [_told(one, one.run) for one in found if recipient in owed.answerers(one, one.run)]


def _told(interrupt: Interrupt, run: Run) -> Told:
    step = Step.objects.filter(pk=interrupt.step).first() if interrupt.step else None
    agent = plain(run.agent.name)
    headline = plain(headline_of(step)) if step else f"a run of {agent}"
    start, said = _words(interrupt)
    facts = [f"Agent: {agent}", f"Interrupted: {when(interrupt.opened_at)}"]
    if step is not None:
        facts = [f"Risk: {risk_of(step)}", f"Tool: {plain(step.tool_name)}", *facts]
    if interrupt.expires_at is not None:
        then = _THEN.get(interrupt.on_expiry or "cancel", "")
        facts.append(f"No answer by {when(interrupt.expires_at)}: {then}")
    return Told(
        subject=f"{start}: {headline}",
        said=f"{said} {_SUSPENDED}",
        headline=headline,
        facts=facts,
        link=url(reverse("run", args=[run.pk])),
        link_says="Open the run",
        foot=[f"Run {run.pk}, interrupt {interrupt.pk}."],
    )


def _words(interrupt: Interrupt) -> tuple[str, str]:
    match interrupt.reason, interrupt.evidence:
        case Reason.VERIFIER_REJECTED, {"verdict": "unknown"}:
            return _UNCHECKED
        case Reason.EFFECT_FAILED, {"compensation": True}:
            return _NOT_UNDONE
        case Reason.BUDGET_EXHAUSTED, {"budget": "day"}:
            return _DAY_USED_UP
    return _SAID[interrupt.reason]
