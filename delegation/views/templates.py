"""Rules that admins offer to everybody: what is offered, and what is no more."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse

from config.errors import NotFound, Problem
from delegation import beside
from delegation.models import DelegationTemplate
from delegation.services import rules
from tenants.models import Role
from tenants.views.page import PageView, see_other
from tenants.views.visits import Visit

MOST_SHOWN: Final = 200


class TemplatesView(PageView):
    """What is offered to everybody who decides a tool, the newest first."""

    nav: ClassVar[str] = "delegation"

    def get(self, visit: Visit) -> HttpResponse:
        return _page(self, visit)


class WithdrawTemplateView(PageView):
    """Offers one no more."""

    nav: ClassVar[str] = "delegation"

    def get(self, _visit: Visit, pk: UUID) -> HttpResponse:  # noqa: ARG002
        return see_other(reverse("rule-templates"))

    def post(self, visit: Visit, pk: UUID) -> HttpResponse:
        rules.withdraw_template(visit.principal, pk)
        return see_other(f"{reverse('rule-templates')}?done=1")

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if isinstance(problem, NotFound) or visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        return _page(self, visit, problem)


def _page(view: PageView, visit: Visit, refusal: Problem | None = None) -> HttpResponse:
    rows = DelegationTemplate.objects.select_related("published_by").order_by("-id")
    context = {
        "templates": beside.templates_shown(list(rows[:MOST_SHOWN])),
        "is_admin": visit.role == Role.ADMIN,
        "done": "done" in visit.request.GET,
        "refusal": refusal,
    }
    status = refusal.status if refusal is not None else 200
    return view.page(visit, "delegation/templates.html", context, status=status)
