"""Rules and what was done under them: read here; their people, and admins, act on their pages."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from delegation import beside, figures
from delegation.models import (
    DecisionEvent,
    Delegation,
    DelegationDay,
    DelegationUse,
    DelegationVersion,
    SpotCheck,
)
from tenants.admin.base import ReadAdmin
from tenants.admin.site import site
from tenants.admin.unfolded import action


class OfARule(ReadAdmin[Any]):
    """What belongs to a rule: its people's page is the rule's."""

    list_select_related = ("delegation",)

    def people_url(self, obj: Any) -> str | None:
        return reverse("rule", args=[obj.delegation_id])


@admin.register(Delegation, site=site)
class DelegationAdmin(ReadAdmin[Delegation]):
    """Rules; on the page of one an admin has it pause, or revokes it."""

    list_display = ("id", "user", "version", "status", "origin", "risk", "created_at")
    list_filter = ("status", "origin", "risk")
    list_select_related = ("user",)
    actions_list = ("figures",)

    def people_url(self, obj: Delegation) -> str | None:
        return reverse("rule", args=[obj.pk])

    @action(description="What delegation saves")
    def figures(self, request: HttpRequest) -> HttpResponse:
        """Show how far people delegate, how wrong that may be, and what policy lets it be."""
        found = figures.tenant_figures()
        context = {
            **self.admin_site.each_context(request),
            "title": "What delegation saves",
            "opts": self.opts,
            "figures": found,
            "p10": _percent(found.p10),
            "p90": _percent(found.p90),
            "wrong": _per_10_000(found.wrong_rate),
            "bound": _per_10_000(found.wrong_rate_bound),
            "people": [(one, _percent(one.share)) for one in found.people],
            "modes": beside.modes_now(),
        }
        return TemplateResponse(request, "admin/delegation.html", context)


@admin.register(DelegationVersion, site=site)
class DelegationVersionAdmin(OfARule):
    list_display = ("id", "delegation", "version", "by", "at")


@admin.register(DelegationUse, site=site)
class DelegationUseAdmin(OfARule):
    list_display = ("id", "delegation", "version", "at")


@admin.register(DelegationDay, site=site)
class DelegationDayAdmin(OfARule):
    list_display = ("id", "delegation", "day", "calls")


@admin.register(SpotCheck, site=site)
class SpotCheckAdmin(OfARule):
    list_display = ("id", "delegation", "version", "verdict", "at")


@admin.register(DecisionEvent, site=site)
class DecisionEventAdmin(ReadAdmin[Any]):
    list_display = ("id", "user", "sequence", "kind", "at")
    list_select_related = ("user",)

    def people_url(self, obj: Any) -> str | None:
        return reverse("record", args=[obj.gate]) if obj.gate else None


def _percent(share: float | None) -> str:
    return "—" if share is None else f"{100 * share:.0f} %"


def _per_10_000(share: float | None) -> str:
    return "—" if share is None else f"{10_000 * share:.1f}"
