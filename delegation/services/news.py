"""What mails tell a person of their rules: no value of a call, since an agent may have written it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse

from approvals.services.notices.words import Told, plain, url, when
from delegation.models import Delegation, DelegationStatus, PauseReason
from interrupts.models import Tool

_SUGGESTED: Final = (
    "What you approve of this tool could run without asking you. Nothing changes until you have"
    " looked at the rule and turned it on."
)
_WHY: Final[Mapping[str, str]] = {  # "note" is the service's own, where one is in it
    PauseReason.ADMIN: "An admin paused it.",
    PauseReason.REFUSED: "You refused what it would have allowed.",
    PauseReason.INCIDENT: "Something that it or you allowed was undone.",
    PauseReason.UNPROVEN: "What was proved of your answers holds no more.",
    PauseReason.UNREADABLE: "You refused a call of this tool, or one was undone, and nobody can read"
    " any more what it was.",
    PauseReason.DENIED: "Policy denied this tool in {note}. Let it go on if it still holds.",
}


class RuleNews:
    """What of the rules named is still news: approvals asks it as settings.LEARNED_NEWS."""

    def suggested(self, recipient: UUID, named: Sequence[UUID]) -> Sequence[Told]:
        rows = _of(recipient, DelegationStatus.SUGGESTED).filter(pk__in=named)
        return [_suggested(rule, tool) for rule, tool in _with_tools(rows)]

    def paused(self, recipient: UUID, named: Sequence[UUID]) -> Sequence[Told]:
        """Tell of the pauses named, where the rule still sleeps by them."""
        rows = _of(recipient, DelegationStatus.PAUSED).filter(pause__in=named)
        return [_paused(rule, tool) for rule, tool in _with_tools(rows)]


def _of(recipient: UUID, status: DelegationStatus) -> QuerySet[Delegation]:
    return Delegation.objects.filter(user=recipient, status=status).order_by("id")


def _with_tools(rows: QuerySet[Delegation]) -> list[tuple[Delegation, str]]:
    found = list(rows)
    tools = Tool.objects.filter(pk__in={rule.tool for rule in found})
    names = dict(tools.values_list("pk", "name"))
    return [(rule, plain(names[rule.tool])) for rule in found]


def _suggested(rule: Delegation, tool: str) -> Told:
    facts = [f"Risk: {rule.risk}"]
    if rule.backtest is not None:
        facts.append(
            "Of what you decided it would have allowed {allowed} that you approved and {refused}"
            " that you refused, and left {asked} to you.".format_map(rule.backtest)
        )
    return _told(rule, f"A rule is suggested: {tool}", _SUGGESTED, facts, tool)


def _paused(rule: Delegation, tool: str) -> Told:
    why = _WHY[rule.pause_reason or ""].format(note=rule.note)
    said = f"A rule of yours sleeps: you are asked again. {why}"
    since = [] if rule.changed_at is None else [f"Paused: {when(rule.changed_at)}"]
    return _told(rule, f"Paused: your rule for {tool}", said, [f"Risk: {rule.risk}", *since], tool)


def _told(rule: Delegation, subject: str, said: str, facts: Sequence[str], tool: str) -> Told:
    return Told(
        subject=subject,
        said=said,
        headline=f"calls of {tool}",
        facts=facts,
        link=url(reverse("rule", args=[rule.pk])),
        link_says="Look at the rule",
        foot=[f"Rule {rule.pk}, version {rule.version}."],
    )
