"""Who decides for a person while they are away, and for whom they do."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone

from approvals import substitutes
from approvals.services import substitutions
from approvals.views.answers import refuse_unstorable
from approvals.views.decision import wrong_fields
from config.errors import InvalidBody, NotFound, Problem
from tenants.views.page import PageView, see_other
from tenants.views.visits import Visit


class SubstitutionsView(PageView):
    """A person's own substitutes, in the tenant they work in."""

    nav: ClassVar[str] = "profile"

    def get(self, visit: Visit) -> HttpResponse:
        return _page(self, visit)

    def post(self, visit: Visit) -> HttpResponse:
        sent = visit.request.POST.dict()
        refuse_unstorable(sent)
        ends_at = _moment(sent, "ends_at")
        if ends_at is None:
            raise InvalidBody.at("/ends_at", "Say until when.")
        substitutions.set_as(
            visit.principal,
            substitute=sent.get("substitute", ""),
            starts_at=_moment(sent, "starts_at"),
            ends_at=ends_at,
        )
        return see_other(f"{reverse('substitutions')}?kept=1")

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        return _page(self, visit, problem)


class EndSubstitutionView(PageView):
    """Ends one at once."""

    nav: ClassVar[str] = "profile"

    def get(self, _visit: Visit, pk: UUID) -> HttpResponse:  # noqa: ARG002
        return see_other(reverse("substitutions"))

    def post(self, visit: Visit, pk: UUID) -> HttpResponse:
        substitutions.end_as(visit.principal, pk)
        return see_other(f"{reverse('substitutions')}?kept=1")

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if isinstance(problem, NotFound) or visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        return _page(self, visit, problem)


def _page(view: PageView, visit: Visit, refusal: Problem | None = None) -> HttpResponse:
    found = list(substitutes.not_over(visit.principal.id))
    context = {
        "of_me": [one for one in found if one.person_id == visit.principal.id],
        "by_me": [one for one in found if one.substitute_id == visit.principal.id],
        "others": substitutions.candidates(visit.principal),
        "kept": "kept" in visit.request.GET,
        "refusal": refusal,
        "wrong": wrong_fields(refusal),
        "sent": visit.request.POST if refusal is not None else {},
    }
    status = refusal.status if refusal is not None else 200
    return view.page(visit, "approvals/substitutions.html", context, status=status)


def _moment(sent: dict[str, str], name: str) -> datetime | None:
    """Return the time of a field, in the person's zone; None where it is empty. Raises InvalidBody."""
    text = sent.get(name, "").strip()
    if not text:
        return None
    try:
        read = datetime.fromisoformat(text)
        return read if timezone.is_aware(read) else timezone.make_aware(read)
    except (ValueError, OverflowError):
        raise InvalidBody.at(f"/{name}", "Must be a day and a time.") from None
