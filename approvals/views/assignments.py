"""Handing a decision to somebody else, from its page."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse

from approvals.services import assignments
from approvals.views.answers import refuse_unstorable
from approvals.views.decision import refused_page
from config.errors import NotFound, Problem
from tenants.views.page import PageView, see_other
from tenants.views.visits import Visit


class AssignmentView(PageView):
    """Gives a decision that waits to another who may take it."""

    nav: ClassVar[str] = "inbox"

    def get(self, _visit: Visit, pk: UUID) -> HttpResponse:
        return see_other(reverse("decision", args=[pk]))

    def post(self, visit: Visit, pk: UUID) -> HttpResponse:
        sent = visit.request.POST.dict()
        refuse_unstorable(sent)
        note = sent.get("note", "").replace("\r\n", "\n").strip()
        assignments.reassign_gate(visit.principal, pk, to=sent.get("to", ""), note=note or None)
        return see_other(reverse("decision", args=[pk]))

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if isinstance(problem, NotFound) or visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        return refused_page(self, visit, kwargs["pk"], "assign", problem)
