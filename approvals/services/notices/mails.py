"""Mails: who reads one, what is still news by then, and one for one or for many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils import timezone

from approvals import owed
from approvals.deciders import ASKED, REMINDER, SUBSTITUTE, UNDECIDABLE
from approvals.services.notices import gates, interrupts, outcomes, rules
from approvals.services.notices.wishes import reader_of
from approvals.services.notices.words import Together, Told, plain, url
from tenants.models import OutboxMessage, Tenant
from tenants.scope import current_tenant_id
from tenants.zones import zone

LONGEST_SUBJECT: Final = 160
# By kind: what of the things named is still news to the person, oldest first.
News = Callable[[UUID, Sequence[UUID]], Sequence[Told]]
_NEWS: Final[Mapping[str, News]] = {
    ASKED: gates.asked,
    REMINDER: gates.reminded,
    UNDECIDABLE: gates.undecidable,
    owed.EXPIRED: gates.expired,
    owed.VOTE: gates.voted,
    owed.ANSWER: gates.answered,
    owed.HANDED: gates.handed,
    SUBSTITUTE: gates.standing_in,
    owed.FAILED: outcomes.failed,
    owed.UNKNOWN: outcomes.unknown,
    owed.RECOVERY: outcomes.to_settle,
    owed.FOUND: outcomes.found,
    owed.HELD: interrupts.held,
    owed.SUGGESTED: rules.suggested,
    owed.PAUSED: rules.paused,
}
_TOGETHER: Final[Mapping[str, Together]] = {
    ASKED: Together("decisions wait for you", "inbox"),
    REMINDER: Together("decisions still wait for you", "inbox"),
    UNDECIDABLE: Together("decisions can be decided by nobody", "undecidable"),
    owed.EXPIRED: Together("decisions that waited for you have expired", "decided"),
    owed.VOTE: Together("decisions you had approved were decided further", "decided"),
    owed.ANSWER: Together("questions of yours were answered by agents", "inbox"),
    owed.HANDED: Together("decisions were handed to you", "inbox"),
    SUBSTITUTE: Together("decisions wait for somebody you stand in for", "inbox"),
    owed.FAILED: Together("calls you approved have failed", "decided"),
    owed.UNKNOWN: Together("calls you approved have an unknown outcome", "decided"),
    owed.RECOVERY: Together("calls have an unknown outcome, and are to be settled", "runs"),
    owed.FOUND: Together("unknown outcomes have been found out", "runs"),
    owed.HELD: Together("runs are interrupted and wait for an answer", "runs"),
    owed.SUGGESTED: Together("rules are suggested to you", "delegation"),
    owed.PAUSED: Together("rules of yours were paused", "delegation"),
}


def compose(kind: str, recipient: UUID, messages: Sequence[OutboxMessage]) -> EmailMessage | None:
    """Write the mail that tells a person of these things; None where none of them is news any more."""
    user = reader_of(kind, recipient)
    named = [one.about for one in messages if one.about is not None]
    if user is None or kind not in _NEWS:
        return None
    with timezone.override(zone(user.time_zone)):
        news = _NEWS[kind](recipient, named)
        if not news:
            return None
        tenant = Tenant.objects.get(pk=current_tenant_id())
        subject, lines = (
            _one(news[0], tenant) if len(news) == 1 else _many(_TOGETHER[kind], news, tenant)
        )
    foot = news[0].foot if len(news) == 1 else ()
    lines += ["", "-- ", *foot, *_foot(), f"Times are in {user.time_zone}."]
    cut = subject if len(subject) <= LONGEST_SUBJECT else f"{subject[: LONGEST_SUBJECT - 1]}…"
    return EmailMessage(cut, "\n".join(lines), settings.DEFAULT_FROM_EMAIL, [user.email])


def _one(told: Told, tenant: Tenant) -> tuple[str, list[str]]:
    facts = [*told.facts, f"Tenant: {plain(tenant.name)}"]
    lines = [told.said, "", f"What: {told.headline}", *facts, ""]
    return told.subject, [*lines, f"{told.link_says}: {told.link}"]


def _many(together: Together, news: Sequence[Told], tenant: Tenant) -> tuple[str, list[str]]:
    lines = [f"{len(news)} {together.what}.", ""]
    for told in news:
        lines += [told.line or told.subject, f"  {told.link}"]
    subject = f"{len(news)} {together.what}: {plain(tenant.name)}"
    return subject, [*lines, "", f"All of them: {together.url}"]


def _foot() -> list[str]:
    return [
        "A link here signs nobody in and approves nothing.",
        f"What you are told by e-mail: {url(reverse('notices'))}",
    ]
