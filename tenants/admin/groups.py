"""A tenant's groups and who is in them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelectMultiple
from django.http import HttpRequest, HttpResponse

from tenants.admin.base import ConfigAdmin
from tenants.admin.forms import OF_MEMBER, NamedForm, members, name_field
from tenants.admin.site import site
from tenants.admin.standing import Standing
from tenants.admin.unfolded import action
from tenants.models import Group, Membership
from tenants.services.groups import remove_groups, set_groups


class People(AutocompleteSelectMultiple):
    """A choice of people, each taken out by itself: what takes out all would stand in their list."""

    def build_attrs(
        self, base_attrs: dict[str, Any], extra_attrs: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        return {**super().build_attrs(base_attrs, extra_attrs), "data-allow-clear": "false"}


class GroupForm(NamedForm):
    name = name_field()
    members = forms.ModelMultipleChoiceField(
        Membership.unscoped.none(),
        required=False,
        widget=People(OF_MEMBER, site),
        help_text="Nobody puts themselves into a group; another admin does.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen: Any = self.fields["members"]
        chosen.queryset = members()
        if not self.instance._state.adding:  # noqa: SLF001 - Django's word for "not stored yet"
            self.initial["members"] = list(members().filter(groups__group=self.instance.pk))


@admin.register(Group, site=site)
class GroupAdmin(ConfigAdmin):
    noun = "group"
    form = GroupForm
    list_display = ("name", "people")
    ordering = ("name",)
    search_fields = ("name",)
    fields = ("name", "members")
    actions_detail = ("remove",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("name",) if obj else ()

    def people(self, obj: Group) -> str:
        held = members().filter(groups__group=obj.pk).values_list("user__username", flat=True)
        return ", ".join(held[:20]) or "nobody"

    def store(self, standing: Standing, obj: Any, form: Any, *, secrets: dict[str, str]) -> Any:  # noqa: ARG002
        usernames = [one.user.username for one in form.cleaned_data["members"]]
        set_groups(standing.actor, {obj.name: usernames})
        return Group.objects.get(name=obj.name)

    @action(description="Remove")
    def remove(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.act(
            request,
            object_id,
            title="Remove the group",
            says="Rules that name it let nobody of it decide any more.",
            do=lambda group, standing: remove_groups(standing.actor, [group.name]),
            onward="../../",
        )
