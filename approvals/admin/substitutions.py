"""Who decides for whom: set and ended by admins, and never changed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.http import HttpRequest, HttpResponse

from approvals.models import Substitution
from approvals.services.substitutions import end_substitution, set_substitution
from tenants.admin.base import ConfigAdmin, ServiceForm
from tenants.admin.forms import OF_MEMBER, members
from tenants.admin.site import site
from tenants.admin.standing import Standing
from tenants.admin.unfolded import TextInput, action
from tenants.models import Membership


class SubstitutionForm(ServiceForm):
    absent = forms.ModelChoiceField(
        Membership.unscoped.none(), widget=AutocompleteSelect(OF_MEMBER, site)
    )
    stands_in = forms.ModelChoiceField(
        Membership.unscoped.none(),
        widget=AutocompleteSelect(OF_MEMBER, site),
        help_text="Decides by the authority of who is absent, within its limits. Nobody makes"
        " themselves the substitute of another.",
    )
    starts_at = forms.DateTimeField(
        required=False,
        widget=TextInput(),
        help_text="2026-12-24 18:00; now, where nothing is said.",
    )
    ends_at = forms.DateTimeField(widget=TextInput(), help_text="It ends by itself then.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("absent", "stands_in"):
            if name in self.fields:
                chosen: Any = self.fields[name]
                chosen.queryset = members()

    def add_faults(self, faults: Any, *, at: str | None = None) -> None:
        """Show the service's faults at the fields that hold what it names."""
        fields = {"/person": "/absent", "/substitute": "/stands_in"}
        super().add_faults([(fields.get(place, place), said) for place, said in faults], at=at)

    def _post_clean(self) -> None:
        """Build no row: the service does, of what is checked here."""


@admin.register(Substitution, site=site)
class SubstitutionAdmin(ConfigAdmin):
    noun = "substitution"
    form = SubstitutionForm
    list_display = ("person", "substitute", "starts_at", "ends_at", "ended_at")
    list_select_related = ("person", "substitute")
    ordering = ("-id",)
    sortable_by = ()
    actions_detail = ("end",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        if obj is None:
            return ("absent", "stands_in", "starts_at", "ends_at")
        return ("person", "substitute", "starts_at", "ends_at", "ended_at", "created_at")

    def journal_name(self, obj: Substitution) -> str:
        return obj.person.username

    def store(self, standing: Standing, obj: Any, form: Any, *, secrets: dict[str, str]) -> Any:  # noqa: ARG002
        said = form.cleaned_data
        return set_substitution(
            standing.actor,
            person=said["absent"].user.username,
            substitute=said["stands_in"].user.username,
            starts_at=said["starts_at"],
            ends_at=said["ends_at"],
        ).row

    @action(description="End it now")
    def end(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.act(
            request,
            object_id,
            title="End the substitution",
            says="What the substitute approved and has not started counts no more.",
            do=lambda row, standing: end_substitution(standing.actor, row.pk),
        )
