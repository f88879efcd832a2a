"""What delegation saves, by day and by person, and how wrong it is estimated to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from statistics import quantiles
from typing import Final
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import TruncDate

from approvals.hindsight.proportions import wilson
from delegation import backtests
from delegation.learner import is_attentive
from delegation.models import DecisionEvent, EventKind, SpotCheck
from delegation.presets import CAUTIOUS
from tenants.clock import database_now
from tenants.models import User

DAYS: Final = 30
LATEST: Final = 15  # approvals, of which is told how many taught nothing
AT_ONCE: Final = 100  # people that one statement looks at
ASKED: Final = (EventKind.APPROVE, EventKind.EDIT, EventKind.REJECT)


@dataclass(frozen=True, slots=True)
class DayCount:
    """How many calls a person was asked about on a day, and how many ran without."""

    day: date
    asked: int
    ran: int


@dataclass(frozen=True, slots=True)
class Removed:
    """How much of what a person may be asked about ran without asking."""

    user: UUID
    name: str
    asked: int
    ran: int
    share: float  # 0..1
    careless: int  # of the last approvals that taught nothing
    approvals: int  # of how many


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """What delegation saves in a tenant, and how wrong it is estimated to be."""

    p10: float | None
    p90: float | None
    wrong_rate: float | None  # of what ran, by the spot checks; None: none was answered
    wrong_rate_bound: float | None  # at most, with 95 %
    checks: int
    people: list[Removed] = field(default_factory=list)


def chart(user_id: UUID, days: int = DAYS) -> list[DayCount]:
    """Return by UTC day what the person was asked about and what ran without, the oldest first."""
    today = database_now().astimezone(UTC).date()
    first = today - timedelta(days=days - 1)
    since = datetime.combine(first, time(), UTC)
    rows = DecisionEvent.objects.filter(user=user_id, at__gte=since)
    by_day = rows.annotate(day=TruncDate("at", tzinfo=UTC)).values("day")
    counted = by_day.annotate(asked=_ASKED, ran=_RAN)
    found = {row["day"]: (row["asked"], row["ran"]) for row in counted}
    each = (first + timedelta(days=at) for at in range(days))
    return [DayCount(day, *found.get(day, (0, 0))) for day in each]


_ASKED: Final = Count("id", filter=Q(kind__in=ASKED))
_RAN: Final = Count("id", filter=Q(kind=EventKind.RAN))


def removed(user_id: UUID, days: int = DAYS) -> Removed:
    """Return how much of what the person may be asked about ran without asking."""
    found = _removed(database_now() - timedelta(days=days), [user_id])
    if found:
        return found[0]
    name = User.objects.values_list("username", flat=True).get(pk=user_id)
    return Removed(user_id, name, 0, 0, 0.0, *_careless([user_id])[user_id])


def _removed(since: datetime, users: Sequence[UUID] | None = None) -> list[Removed]:
    rows = DecisionEvent.objects.filter(at__gte=since)
    if users is not None:
        rows = rows.filter(user__in=users)
    by_person = rows.values("user", "user__username")
    counted = list(by_person.annotate(asked=_ASKED, ran=_RAN).order_by("user"))
    careless_of = _careless([row["user"] for row in counted])
    return [
        Removed(
            user=row["user"],
            name=row["user__username"],
            asked=row["asked"],
            ran=row["ran"],
            share=row["ran"] / max(row["asked"] + row["ran"], 1),
            careless=careless,
            approvals=approvals,
        )
        for row in counted
        for careless, approvals in (careless_of[row["user"]],)
    ]


def _careless(users: Sequence[UUID]) -> Mapping[UUID, tuple[int, int]]:
    """Return by person how many of their latest approvals taught nothing, and how many these were."""
    taught: dict[UUID, list[bool]] = {one: [] for one in users}
    for first in range(0, len(users), AT_ONCE):
        parts = [_latest(one) for one in users[first : first + AT_ONCE]]
        for event in parts[0].union(*parts[1:], all=True):
            answer = backtests.answer_of(event)
            taught[event.user_id].append(is_attentive(answer, event.data["risk"], CAUTIOUS))
    return {one: (len(found) - sum(found), len(found)) for one, found in taught.items()}


def _latest(user_id: UUID) -> QuerySet[DecisionEvent]:
    rows = DecisionEvent.objects.filter(
        user=user_id, kind=EventKind.APPROVE, data__has_key="arguments"
    )
    return rows.order_by("-at", "-source")[:LATEST]


def tenant_figures() -> TenantFigures:
    """Return what is saved and how wrong it may be, over the last 30 days."""
    since = database_now() - timedelta(days=DAYS)
    people = _removed(since)
    # Who teaches nothing is told apart: what is saved is of those who look.
    attentive = [one.share for one in people if one.approvals and 2 * one.careless <= one.approvals]
    p10, p90 = _spread(attentive)
    checks = SpotCheck.objects.filter(at__gte=since, verdict__isnull=False)
    rate, bound = wrong_rate([(one.share, one.verdict != "approve") for one in checks])
    return TenantFigures(p10, p90, rate, bound, len(checks), people)


def _spread(shares: Sequence[float]) -> tuple[float | None, float | None]:
    if len(shares) < 2:
        return (shares[0], shares[0]) if shares else (None, None)
    cuts = quantiles(shares, n=10, method="inclusive")
    return cuts[0], cuts[-1]


def wrong_rate(checks: Sequence[tuple[float, bool]]) -> tuple[float | None, float | None]:
    """Return the estimated share of what rules cover that is refused, and its bound with 97.5 %.

    Each check is (the probability with which it was made, whether it was refused), and weighs by
    the inverse of that probability (Horvitz & Thompson, JASA 47, 1952); the bound is Wilson's, of
    as many checks as the weights are worth (Kish, Survey Sampling, 1965).
    """
    weights = [1 / share for share, _ in checks if share > 0]
    if not weights:
        return None, None
    refused = sum(1 / share for share, wrong in checks if share > 0 and wrong)
    rate = refused / sum(weights)
    worth = max(1, int(sum(weights) ** 2 / sum(one * one for one in weights)))
    found = wilson(min(worth, -int(-rate * worth // 1)), worth)
    return rate, None if found is None else found.upper
