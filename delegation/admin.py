"""Delegations and what was done under them. Only read: people's pages change them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from delegation.models import DecisionEvent, Delegation, DelegationUse, SpotCheck
from tenants.admin.base import ReadAdmin
from tenants.admin.site import site


@admin.register(Delegation, site=site)
class DelegationAdmin(ReadAdmin[Delegation]):
    list_display = ("id", "user", "version", "status", "origin", "risk", "created_at")
    list_select_related = ("user",)


@admin.register(DelegationUse, site=site)
class DelegationUseAdmin(ReadAdmin[Any]):
    list_display = ("id", "delegation", "version", "at")
    list_select_related = ("delegation",)


@admin.register(SpotCheck, site=site)
class SpotCheckAdmin(ReadAdmin[Any]):
    list_display = ("id", "delegation", "version", "verdict", "at")
    list_select_related = ("delegation",)


@admin.register(DecisionEvent, site=site)
class DecisionEventAdmin(ReadAdmin[Any]):
    list_display = ("id", "user", "sequence", "kind", "at")
    list_select_related = ("user",)
