"""The people of a tenant, and what they may decide: by globs, which name the tools there are.

A line is an entry as the tenant file has it: a glob, or `glob where condition`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from approvals.services.grants import Entry, held_by, held_by_group, parts, set_grants
from approvals.tenantfile.checking import entry_faults
from config.errors import InvalidBody
from tenants.admin.base import ConfigAdmin, ServiceForm
from tenants.admin.site import site
from tenants.admin.standing import Standing
from tenants.admin.unfolded import EmailInput, Select, Textarea, TextInput, action
from tenants.changes import Change, Issued
from tenants.models import Group, Membership, Role
from tenants.services.people import AnotherPerson, MemberWanted, remove_members, set_members

WHERE: Final = " where "


def may_decide_field(more: str) -> forms.CharField:
    return forms.CharField(
        required=False,
        widget=Textarea(attrs={"rows": 6}),
        help_text="A glob a line: payments.*, mail.send; * is every tool, those to come too. With a"
        " limit: payments.refund where decimal(arguments.amount) <= decimal('500'); each limit of a"
        f" tool must hold. {more}",
    )


class MemberForm(ServiceForm):
    username = forms.RegexField(
        r"^[\w.@+-]+$",
        max_length=150,
        widget=TextInput(),
        help_text="One person's over the service. Somebody who is known already joins with the"
        " e-mail address they are known by.",
    )
    email = forms.EmailField(max_length=254, widget=EmailInput())
    role = forms.ChoiceField(choices=Role.choices, widget=Select())
    may_decide = may_decide_field(
        "No role decides by itself, and nobody gives themselves what they may decide. What their"
        " groups may decide they may too."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:  # noqa: SLF001 - Django's word for "not stored yet"
            held = held_by(self.instance.user_id)
            self.initial["may_decide"] = "\n".join(line_of(entry) for entry in held)

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        if Membership.objects.filter(active=True, user__username=username).exists():
            raise forms.ValidationError("They are a member already.")
        return username

    def clean_may_decide(self) -> list[Entry]:
        return entries_in(self.cleaned_data["may_decide"])


def entries_in(text: str) -> list[Entry]:
    """Return the entries of a text's lines; ValidationError with each fault of each."""
    lines = [line.strip() for line in text.splitlines()]
    found = [entry_of(line) for line in lines if line]
    if faults := [
        f"{line_of(entry)}: {detail}" for entry in found for _, detail in entry_faults(entry)
    ]:
        raise forms.ValidationError(faults)
    return found


def entry_of(line: str) -> Entry:
    glob, limited, condition = line.partition(WHERE)
    return {"tools": [glob.strip()], "condition": condition.strip()} if limited else glob


def line_of(entry: Entry) -> str:
    globs, condition = parts(entry)
    return globs[0] if condition is None else f"{globs[0]}{WHERE}{condition}"


def lines_of(entries: Iterable[Entry]) -> str:
    return ", ".join(map(line_of, entries))


@admin.register(Membership, site=site)
class MembershipAdmin(ConfigAdmin):
    noun = "member"
    form = MemberForm
    list_display = ("username", "email", "role", "active", "may_decide")
    list_filter = ("role", "active")
    list_select_related = ("user",)
    ordering = ("user__username",)
    search_fields = ("user__username", "user__email")
    actions_detail = ("end",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return super().get_queryset(request).select_related("user")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        if obj is None:
            return ("username", "email", "role", "may_decide")
        return ("username", "email", "active", "created_at", "role", "may_decide", "by_groups")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("username", "email", "active", "created_at", "by_groups") if obj else ()

    def username(self, obj: Membership) -> str:
        return obj.user.username

    def email(self, obj: Membership) -> str:
        return obj.user.email

    def may_decide(self, obj: Membership) -> str:
        return lines_of(held_by(obj.user_id)) or "nothing"

    @admin.display(description="may decide by their groups")
    def by_groups(self, obj: Membership) -> str:
        groups = Group.objects.filter(members__membership=obj.pk).order_by("name")
        held = [(group.name, lines_of(held_by_group(group.pk))) for group in groups]
        return "; ".join(f"{name}: {entries}" for name, entries in held if entries) or "nothing"

    def journal_name(self, obj: Membership) -> str:
        return obj.user.username

    def store(self, standing: Standing, obj: Any, form: Any, *, secrets: dict[str, str]) -> Any:
        """Have them in their role, with what they may decide; somebody new gets a password."""
        said, known = form.cleaned_data, None if obj._state.adding else obj.user  # noqa: SLF001
        username = known.username if known else said["username"]
        email = known.email if known else said["email"]
        issued = Issued()
        try:
            set_members(
                standing.actor,
                [MemberWanted(username, email, said["role"])],
                issued=issued,
                tokens=False,
            )
        except AnotherPerson as taken:
            detail = "This username does not go with this e-mail address."
            raise InvalidBody.at("/email", detail) from taken
        set_grants(standing.actor, {username: said["may_decide"]})
        for name, made in issued.users.items():
            secrets[f"Password of {name}"] = made["password"]
        return Membership.objects.select_related("user").get(user__username=username)

    @action(description="End the membership")
    def end(self, request: HttpRequest, object_id: str) -> HttpResponse:
        def do(member: Membership, standing: Standing) -> list[Change]:
            username = member.user.username
            taken = set_grants(standing.actor, {username: []}) if member.active else []
            return [*taken, *remove_members(standing.actor, [username])]

        return self.act(
            request,
            object_id,
            title="End the membership",
            says="Their tokens for this tenant are revoked, and they may decide nothing here.",
            do=do,
        )
