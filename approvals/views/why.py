"""Why a step was allowed, asked about or denied: every rule, and what it says of the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse

from approvals.policy.milestones import Point
from approvals.services.simulation import why
from tenants.views.page import PageView
from tenants.views.visits import Visit


def _seen(kept: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what policy saw of the step that may be otherwise by now, in words."""
    told: list[tuple[str, str]] = []
    if points := kept.get("milestones"):
        told.append(("Milestones reached", ", ".join(str(Point(*one)) for one in points)))
    if "score" in kept:
        told.append(("Score of the service", f"{kept['score']} of 1"))
    if used := kept.get("usage"):
        told.append(("The run had used", _figures(used)))
    if "at" in kept:
        told.append(("Judged at", kept["at"]))
    if history := kept.get("history"):
        told.append(("Earlier calls of the tool by its agent", _figures(history)))
    return told


def _figures(numbers: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


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
            "seen": _seen(found.step.judged or {}),
            "differs": found.now is not None and found.now.verdict != found.decided,
        }
        return self.page(visit, "approvals/why.html", context)
