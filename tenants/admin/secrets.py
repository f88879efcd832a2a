"""A tenant's secrets: written here and never shown again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from tenants.admin.base import ConfigAdmin
from tenants.admin.forms import NamedForm, name_field
from tenants.admin.site import site
from tenants.admin.standing import Standing
from tenants.admin.unfolded import PasswordInput, action
from tenants.models import Secret
from tenants.services.secrets import remove_secrets, set_secrets, value_fault


class SecretForm(NamedForm):
    name = name_field(autocomplete="off")  # beside a value it would be taken for a user's name
    # What was typed is not sent back, whatever was wrong with it.
    value = forms.CharField(
        widget=PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="Written here and never shown again. Another value replaces it.",
    )

    def clean_value(self) -> str:
        value: str = self.cleaned_data["value"]
        if fault := value_fault(value):
            raise forms.ValidationError(fault)
        return value


@admin.register(Secret, site=site)
class SecretAdmin(ConfigAdmin):
    noun = "secret"
    form = SecretForm
    list_display = ("name", "version", "set_at", "removed_at")
    ordering = ("name",)
    search_fields = ("name",)
    actions_detail = ("remove",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("name", "version", "set_at", "removed_at", "value") if obj else ("name", "value")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("name", "version", "set_at", "removed_at") if obj else ()

    def store(self, standing: Standing, obj: Any, form: Any, *, secrets: dict[str, str]) -> Any:  # noqa: ARG002
        set_secrets(standing.actor, {obj.name: form.cleaned_data["value"]})
        return Secret.objects.get(name=obj.name)

    @action(description="Remove")
    def remove(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.act(
            request,
            object_id,
            title="Remove the secret",
            says="What it holds is destroyed, and no tool that names it calls anybody any more.",
            do=lambda secret, standing: remove_secrets(standing.actor, [secret.name]),
        )
