"""The tenant's catalogue: saving another declaration makes the tool's next version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html

from config.errors import Problem
from config.jsontext import parse
from interrupts.declarations import FORM, OPTIONAL, check_tool, secret_faults
from interrupts.models import Effect, Risk, Tool, ToolVersion
from interrupts.services.tools import retire_tools, set_tools
from tenants.admin.base import ConfigAdmin, ReadAdmin
from tenants.admin.forms import NamedForm
from tenants.admin.site import site
from tenants.admin.standing import Standing
from tenants.admin.unfolded import NumberInput, Select, Textarea, TextInput, action
from tenants.changes import Issued
from tenants.selectors import secret_names

# What is written as JSON, with what it says where nothing is written.
_JSON: Final[Mapping[str, Any]] = {
    "arguments": None,
    "sensitive": [],
    "failure_modes": [],
    "roles": {},
    "decisions": [],
    "executor": None,
    "preview": None,
    "reconcile": None,
    "compensate": None,
    "verifier": None,
    "context": [],
}
_HELP: Final[Mapping[str, str]] = {
    "name": "Names joined by points: payments.refund. It stays.",
    "arguments": "JSON Schema of the arguments.",
    "sensitive": 'JSON Pointers of what is never shown or logged in clear: ["/card_number"].',
    "confirmation": "What must be typed where the effect is irreversible: refund {amount}.",
    "headline": "What the reviewer reads first: Refund {amount} of payment {payment}.",
    "failure_modes": '["The customer is refunded twice"]',
    "roles": 'For learning: {"payment": "id", "amount": "number"}.',
    "cost": "What one call costs, as a decimal: 0.50. So much of a budget is reserved for it.",
    "context": 'What a call needs to know, and how old at most: [{"name": "balance",'
    ' "longest_age": 300}].',
    "key_lifetime": "Seconds for which the far end honours an idempotency key.",
    "decisions": 'What people may choose of a call: ["approve", "edit", "reject", "request_changes",'
    ' "respond"], where nothing stands here. To approve and to reject can\'t be taken away.',
    "executor": '{"kind": "http", "url": "https://…", "timeout": 10}, or a "request" of an API of'
    " its own in place of the url.",
    "preview": '{"url": "https://…"}, a "request" with what is shown, or nothing; of a python tool'
    ' {}, or {"function": "…"}.',
    "reconcile": '{"url": "https://…/{key}", "settle_after": 10}, a "request" with "outcomes", or'
    " nothing.",
    "compensate": '{"url": "https://…/{key}/compensate"}, a "request", or nothing.',
    "verifier": 'Who judges its receipts: {"kind": "http", "url": "https://…"}, or a "request" with'
    ' "outcomes"; {"kind": "python", "function": "…"}, or nothing.',
}
_LINES: Final = 500  # the longest text of one line that a declaration holds


class JsonText(forms.CharField):
    """A document as JSON, read as strictly as the API reads it."""

    def __init__(self, *, empty: Any, **kwargs: Any) -> None:
        self.empty = empty
        super().__init__(strip=True, widget=Textarea(attrs={"rows": 6}), **kwargs)

    def prepare_value(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        shown = value != self.empty
        return json.dumps(value, ensure_ascii=False, indent=2) if shown else ""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return self.empty
        try:
            return parse(text.encode())
        except Problem as fault:
            told = [one["detail"] for one in fault.errors] or [fault.detail]
            raise forms.ValidationError(told) from None


def _field(member: str) -> forms.Field:
    if member in _JSON:
        required = member in {"arguments", "executor"}
        return JsonText(empty=_JSON[member], required=required, help_text=_HELP.get(member, ""))
    return forms.CharField(
        required=False,
        max_length=_LINES,
        widget=TextInput(),
        help_text=_HELP.get(member, ""),
    )


class ToolForm(NamedForm):
    """A declaration, one field a member; each fault is shown at its own."""

    name = forms.CharField(max_length=100, widget=TextInput(), help_text=_HELP["name"])
    description = forms.CharField(required=False, max_length=10_000, widget=Textarea())
    effect = forms.ChoiceField(choices=Effect.choices, widget=Select())
    risk = forms.ChoiceField(choices=Risk.choices, widget=Select())
    arguments = _field("arguments")
    sensitive = _field("sensitive")
    confirmation = _field("confirmation")
    headline = _field("headline")
    consequence = _field("consequence")
    blast_radius = _field("blast_radius")
    failure_modes = _field("failure_modes")
    roles = _field("roles")
    key_lifetime = forms.IntegerField(
        required=False, min_value=0, widget=NumberInput(), help_text=_HELP["key_lifetime"]
    )
    on_failure = forms.ChoiceField(
        choices=[("tell", "tell the agent"), ("interrupt", "interrupt the run")], widget=Select()
    )
    decisions = _field("decisions")
    cost = _field("cost")
    context = _field("context")
    executor = _field("executor")
    preview = _field("preview")
    reconcile = _field("reconcile")
    compensate = _field("compensate")
    verifier = _field("verifier")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if (version := self.instance.current) is not None:
            self.initial.update({one: getattr(version, one) for one in (*FORM, *OPTIONAL)})

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if not self.errors:
            self.add_faults(check_tool(self.declaration()))
        if not self.errors:
            unknown = secret_faults([self.declaration()], secret_names())
            self.add_faults([(place.removeprefix("/0"), detail) for place, detail in unknown])
        return cleaned

    def declaration(self) -> dict[str, Any]:
        said = {name: self.cleaned_data[name] for name in ("description", *FORM)}
        more = {name: self.cleaned_data[name] for name in OPTIONAL if self.cleaned_data[name]}
        return {"name": self.cleaned_data.get("name") or self.instance.name, **said, **more}


@admin.register(Tool, site=site)
class ToolAdmin(ConfigAdmin):
    noun = "tool"
    form = ToolForm
    list_display = ("name", "effect", "risk", "version", "retired_at")
    list_select_related = ("current",)
    ordering = ("name",)
    search_fields = ("name",)
    actions_detail = ("retire",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        members = ("name", "description", *FORM, *OPTIONAL)
        return ("name", "retired_at", "version", *members[1:]) if obj else members

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("name", "retired_at", "version") if obj else ()

    def effect(self, obj: Tool) -> str:
        return obj.current.effect if obj.current else ""

    def risk(self, obj: Tool) -> str:
        return obj.current.risk if obj.current else ""

    def version(self, obj: Tool) -> str:
        if obj.current is None:
            return "none"
        url = reverse("admin:interrupts_toolversion_change", args=(obj.current_id,))
        return format_html(
            '<a class="text-primary-600 dark:text-primary-500" href="{}">{}</a>',
            url,
            obj.current.number,
        )

    def store(self, standing: Standing, obj: Any, form: Any, *, secrets: dict[str, str]) -> Any:
        issued = Issued()
        set_tools(standing.actor, [form.declaration()], issued=issued)
        secrets.update({f"Signing secret of {name}": one for name, one in issued.tools.items()})
        return Tool.objects.get(name=obj.name)

    @action(description="Retire")
    def retire(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.act(
            request,
            object_id,
            title="Retire the tool",
            says="Nothing of it is proposed or started any more. Saving it brings it back.",
            do=lambda tool, standing: retire_tools(standing.actor, [tool.name]),
        )


@admin.register(ToolVersion, site=site)
class ToolVersionAdmin(ReadAdmin[ToolVersion]):
    """What a tool was, for ever."""

    list_display = ("tool", "number", "effect", "risk", "executor_kind", "created_at")
    list_select_related = ("tool",)
