"""What the forms of a tenant's configuration share."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.db.models import QuerySet

from tenants.admin.base import ServiceForm
from tenants.admin.unfolded import TextInput
from tenants.models import GroupMember, Membership

NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
# A column that refers to a member: what completes a member's name is asked for by such a one.
OF_MEMBER: Final[Any] = GroupMember._meta.get_field("membership")  # noqa: SLF001 - Django documents it


def name_field(**attrs: str) -> forms.RegexField:
    return forms.RegexField(
        NAME,
        max_length=100,
        widget=TextInput(attrs=attrs),
        error_messages={"invalid": "Letters, digits and . - _ only."},
    )


def members() -> QuerySet[Membership]:
    """Return the tenant's live members: whom a form may name."""
    found: QuerySet[Membership] = Membership.objects.filter(active=True)
    return found.select_related("user").order_by("user__username")


class NamedForm(ServiceForm):
    """A form of something that has one name in its tenant."""

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        # Only this tenant's names: another's would be told by the refusal.
        if type(self.instance).objects.filter(name=name).exists():
            raise forms.ValidationError("There is one of this name already.")
        return name
