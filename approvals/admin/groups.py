"""A tenant's groups, who is in them, and what they may decide by being in one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelectMultiple
from django.http import HttpRequest, HttpResponse

from approvals.admin.members import entries_in, line_of, lines_of, may_decide_field
from approvals.services.grants import Entry, held_by_group, set_group_grants
from tenants.admin.base import ConfigAdmin
from tenants.admin.forms import OF_MEMBER, NamedForm, members, name_field
from tenants.admin.site import site
from tenants.admin.standing import Standing
from tenants.admin.unfolded import action
from tenants.changes import Change
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

    may_decide = may_decide_field(
        "Whoever is in the group may decide this too, and no longer than they are in it."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen: Any = self.fields["members"]
        chosen.queryset = members()
        if not self.instance._state.adding:  # noqa: SLF001 - Django's word for "not stored yet"
            self.initial["members"] = list(members().filter(groups__group=self.instance.pk))
            held = held_by_group(self.instance.pk)
            self.initial["may_decide"] = "\n".join(map(line_of, held))

    def clean_may_decide(self) -> list[Entry]:
        return entries_in(self.cleaned_data["may_decide"])


@admin.register(Group, site=site)
class GroupAdmin(ConfigAdmin):
    noun = "group"
    form = GroupForm
    list_display = ("name", "people", "may_decide")
    ordering = ("name",)
    search_fields = ("name",)
    fields = ("name", "members", "may_decide")
    actions_detail = ("remove",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("name",) if obj else ()

    def people(self, obj: Group) -> str:
        held = members().filter(groups__group=obj.pk).values_list("user__username", flat=True)
        return ", ".join(held[:20]) or "nobody"

    def may_decide(self, obj: Group) -> str:
        return lines_of(held_by_group(obj.pk)) or "nothing"

    def store(self, standing: Standing, obj: Any, form: Any, *, secrets: dict[str, str]) -> Any:  # noqa: ARG002
        usernames = [one.user.username for one in form.cleaned_data["members"]]
        set_groups(standing.actor, {obj.name: usernames})
        set_group_grants(standing.actor, {obj.name: form.cleaned_data["may_decide"]})
        return Group.objects.get(name=obj.name)

    @action(description="Remove")
    def remove(self, request: HttpRequest, object_id: str) -> HttpResponse:
        def do(group: Group, standing: Standing) -> list[Change]:
            taken = set_group_grants(standing.actor, {group.name: []})
            return [*taken, *remove_groups(standing.actor, [group.name])]

        return self.act(
            request,
            object_id,
            title="Remove the group",
            says="Rules that name it let nobody of it decide any more, and who was in it may no"
            " longer decide what it may.",
            do=do,
            onward="../../",
        )
