"""Why a step was allowed, asked about or denied: every rule, and what it says of the call."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.http import HttpResponse

from approvals.services.simulation import why
from tenants.views.page import PageView
from tenants.views.visits import Visit


class WhyView(PageView):
    """The verdict on a step, rule by rule."""

    nav: ClassVar[str] = "runs"

    def get(self, visit: Visit, pk: UUID) -> HttpResponse:
        found = why(pk)
        rules = found.rules or []
        context = {
            "found": found,
            "step": found.step,
            "run": found.step.run,
            "counting": [one for one in rules if one.counts],
            "others": [one for one in rules if not one.counts],
            "differs": found.now is not None and found.now.verdict != found.decided,
        }
        return self.page(visit, "approvals/why.html", context)
