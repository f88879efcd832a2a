"""The tenant itself."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from tenants.admin.base import ConfigAdmin
from tenants.admin.site import site
from tenants.admin.standing import Standing
from tenants.models import Tenant
from tenants.scope import current_tenant_id
from tenants.services.organisations import rename_tenant


@admin.register(Tenant, site=site)
class OwnTenantAdmin(ConfigAdmin):
    """The one tenant that is administered: its name."""

    noun = "tenant"
    list_display = ("name", "slug", "created_at")
    list_display_links = ("name",)
    fields = ("name", "slug", "authority_version", "freezes", "created_at")
    readonly_fields = ("slug", "authority_version", "freezes", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        return super().get_queryset(request).filter(pk=current_tenant_id())

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        return False

    def journal_name(self, obj: Tenant) -> str:
        return obj.slug

    def store(self, standing: Standing, obj: Any, form: Any, *, secrets: dict[str, str]) -> Any:  # noqa: ARG002
        rename_tenant(standing.actor, form.cleaned_data["name"])
        return Tenant.objects.get(pk=obj.pk)
