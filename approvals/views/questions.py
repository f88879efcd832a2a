"""Asking the agent from the decision page: asked and led back, or the page with what stands in the way."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse

from approvals.services import questions
from approvals.views.answers import refuse_unstorable
from approvals.views.decision import refused_page
from config.errors import NotFound, Problem
from tenants.views.page import PageView, see_other
from tenants.views.visits import Visit


class QuestionsView(PageView):
    """A question to the agent. Nothing of the gate changes by it."""

    nav: ClassVar[str] = "inbox"

    def get(self, _visit: Visit, pk: UUID) -> HttpResponse:
        return see_other(f"{reverse('decision', args=[pk])}#questions")

    def post(self, visit: Visit, pk: UUID) -> HttpResponse:
        sent = visit.request.POST.dict()
        refuse_unstorable(sent)
        text = sent.get("text", "").replace("\r\n", "\n").strip()
        asked = questions.ask_agent(visit.principal, pk, text=text)
        return see_other(f"{reverse('decision', args=[pk])}#q-{asked.question.pk}")

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if isinstance(problem, NotFound) or visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        return refused_page(self, visit, kwargs["pk"], "ask", problem)
