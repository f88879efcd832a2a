"""Gates, the decisions on them, and who was shown what. Only read."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.urls import reverse

from approvals.models import Assignment, Decision, Gate, View
from tenants.admin.base import ReadAdmin
from tenants.admin.site import site
from tenants.admin.unfolded import AutocompleteFilter


def decision_page(gate: UUID) -> str:
    return reverse("decision", args=(gate,))


class OfGate(ReadAdmin[Any]):
    def people_url(self, obj: Any) -> str | None:
        return decision_page(obj.gate_id)


@admin.register(Gate, site=site)
class GateAdmin(ReadAdmin[Gate]):
    list_display = ("id", "headline", "tool", "state", "ceremony", "rule", "opened_at")
    list_filter = (("tool", AutocompleteFilter),)
    list_filter_submit = True
    list_select_related = ("tool",)

    def people_url(self, obj: Gate) -> str | None:
        return decision_page(obj.pk)


@admin.register(Decision, site=site)
class DecisionAdmin(OfGate):
    list_display = ("id", "gate", "user", "acting_for", "verdict", "counts", "at")
    list_select_related = ("gate", "user", "acting_for")


@admin.register(View, site=site)
class ViewAdmin(OfGate):
    list_display = ("id", "gate", "user", "digest", "at")
    list_select_related = ("gate", "user")


@admin.register(Assignment, site=site)
class AssignmentAdmin(OfGate):
    list_display = ("id", "gate", "user", "assigned_at")
    list_select_related = ("gate", "user")
