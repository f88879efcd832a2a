"""Giving a decision more time, from its page."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse

from approvals.services import extensions
from approvals.views.answers import refuse_unstorable
from approvals.views.decision import refused_page
from config.errors import InvalidBody, NotFound, Problem
from tenants.views.page import PageView, see_other
from tenants.views.visits import Visit


class ExtensionView(PageView):
    """Has a decision that waits expire later."""

    nav: ClassVar[str] = "inbox"

    def get(self, _visit: Visit, pk: UUID) -> HttpResponse:
        return see_other(reverse("decision", args=[pk]))

    def post(self, visit: Visit, pk: UUID) -> HttpResponse:
        sent = visit.request.POST.dict()
        refuse_unstorable(sent)
        note = sent.get("note", "").replace("\r\n", "\n").strip()
        until = _moment(sent.get("expires_at", ""))
        extensions.extend_gate(visit.principal, pk, expires_at=until, note=note)
        return see_other(reverse("decision", args=[pk]))

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if isinstance(problem, NotFound) or visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        return refused_page(self, visit, kwargs["pk"], "extend", problem)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidBody.at("/expires_at", "Choose until when.")
    return moment
