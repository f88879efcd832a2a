"""Agents, and the credentials of agents and people: secrets are shown once, by who makes them."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from tenants.admin.base import ConfigAdmin, ServiceForm
from tenants.admin.forms import OF_MEMBER, NamedForm, members, name_field
from tenants.admin.site import site
from tenants.admin.standing import Standing
from tenants.admin.unfolded import AutocompleteFilter, NumberInput, action
from tenants.changes import Issued
from tenants.models import Agent, AgentKey, Membership, UserToken
from tenants.services import keys
from tenants.services.agents import AgentWanted, end_agents, set_agents

_OF_AGENT: Final[Any] = AgentKey._meta.get_field("agent")  # noqa: SLF001 - Django documents it


_LIMITS: Final = ("steps", "cost", "seconds", "tokens")
_DAILY: Final = tuple(f"daily_{name}" for name in _LIMITS)
_OF_A_DAY: Final = (
    "What all its runs together may use in a day (UTC). Empty: what the policy says for every"
    " agent. What an agent has used is under Agent days."
)


class AgentForm(NamedForm):
    name = name_field()
    owner = forms.ModelChoiceField(
        Membership.unscoped.none(),
        required=False,
        widget=AutocompleteSelect(OF_MEMBER, site),
        help_text="Answers for the agent, and never decides its gates.",
    )
    daily_steps = forms.IntegerField(
        required=False, min_value=0, max_value=2**53 - 1, widget=NumberInput(), help_text=_OF_A_DAY
    )
    daily_cost = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=24,
        decimal_places=9,
        widget=NumberInput(attrs={"step": "any"}),
    )
    daily_seconds = forms.IntegerField(
        required=False, min_value=0, max_value=2**53 - 1, widget=NumberInput()
    )
    daily_tokens = forms.IntegerField(
        required=False, min_value=0, max_value=2**53 - 1, widget=NumberInput()
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, limit in self.instance.daily_budget.items():
            self.initial[f"daily_{name}"] = limit
        chosen: Any = self.fields["owner"]
        chosen.queryset = members()
        if self.instance.owner_id:
            self.initial["owner"] = members().filter(user=self.instance.owner_id).first()

    def daily_budget(self) -> dict[str, Any]:
        """Return the limits that were given, money as text."""
        given = {name: self.cleaned_data.get(f"daily_{name}") for name in _LIMITS}
        return {
            name: f"{limit:f}" if name == "cost" else limit
            for name, limit in given.items()
            if limit is not None
        }


@admin.register(Agent, site=site)
class AgentAdmin(ConfigAdmin):
    noun = "agent"
    form = AgentForm
    list_display = ("name", "owner", "active", "created_at")
    list_filter = ("active",)
    list_select_related = ("owner",)
    ordering = ("name",)
    search_fields = ("name",)
    fields = ("name", "owner", *_DAILY)
    actions_detail = ("end",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        more = ("active", "created_at") if obj else ()
        return ("name", "owner", *_DAILY, *more)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("name", "active", "created_at") if obj else ()

    def store(self, standing: Standing, obj: Any, form: Any, *, secrets: dict[str, str]) -> Any:
        member = form.cleaned_data["owner"]
        owner = member.user.username if member else None
        wanted = AgentWanted(obj.name, owner, form.daily_budget())
        issued = Issued()
        set_agents(standing.actor, [wanted], issued=issued)
        secrets.update({f"Key of {name}": key for name, key in issued.agents.items()})
        return Agent.objects.get(name=obj.name)

    @action(description="Deactivate")
    def end(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.act(
            request,
            object_id,
            title="Deactivate the agent",
            says="Its keys are revoked at once. Saving the agent makes it active again, with a new"
            " key.",
            do=lambda agent, standing: end_agents(standing.actor, [agent.name]),
        )


class KeyForm(ServiceForm):
    agent = forms.ModelChoiceField(
        Agent.unscoped.none(),
        widget=AutocompleteSelect(_OF_AGENT, site),
        help_text="The key is shown once, right after it is made.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "agent" in self.fields:
            chosen: Any = self.fields["agent"]
            chosen.queryset = Agent.objects.filter(active=True)


class CredentialAdmin(ConfigAdmin):
    """Credentials are made and revoked, and never changed; of the secret only its hint is kept."""

    ordering = ("-id",)
    sortable_by = ()
    actions_detail = ("revoke",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False


@admin.register(AgentKey, site=site)
class AgentKeyAdmin(CredentialAdmin):
    noun = "key"
    form = KeyForm
    list_display = ("hint", "agent", "created_at", "revoked_at")
    list_filter = (("agent", AutocompleteFilter),)
    list_filter_submit = True
    list_select_related = ("agent",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("agent", "hint", "created_at", "revoked_at") if obj else ("agent",)

    def journal_name(self, obj: AgentKey) -> str:
        return obj.agent.name

    def store(self, standing: Standing, obj: Any, form: Any, *, secrets: dict[str, str]) -> Any:  # noqa: ARG002
        agent = form.cleaned_data["agent"]
        key, secrets[f"Key of {agent.name}"] = keys.issue_key(standing.actor, agent.pk)
        return key

    @action(description="Revoke")
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.act(
            request,
            object_id,
            title="Revoke the key",
            says="Who signs in with it is nobody from then on. What is already in flight ends.",
            do=lambda key, standing: keys.revoke_key(standing.actor, key.pk),
        )


@admin.register(UserToken, site=site)
class UserTokenAdmin(CredentialAdmin):
    noun = "token"
    list_display = ("hint", "person", "created_at", "revoked_at")
    list_select_related = ("membership__user",)
    fields = ("person", "hint", "created_at", "revoked_at")
    readonly_fields = ("person",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[UserToken]:
        return super().get_queryset(request).select_related("membership__user")

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        """A token speaks for its person: nobody makes one for somebody else."""
        return False

    def person(self, obj: UserToken) -> str:
        return obj.membership.user.username

    def journal_name(self, obj: UserToken) -> str:
        return self.person(obj)

    @action(description="Revoke")
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.act(
            request,
            object_id,
            title="Revoke the token",
            says="Who signs in with it is nobody from then on.",
            do=lambda token, standing: keys.revoke_token(standing.actor, token.pk),
        )
