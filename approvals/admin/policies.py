"""Policies: drafts that are checked as they are kept, and published after a look at what changes."""

from __future__ import annotations

import difflib
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse

from approvals.admin import lookback
from approvals.models import PolicyStatus, PolicyVersion
from approvals.policy import validate_policy
from approvals.selectors import policy_in_force
from approvals.services.policies import discard_draft, publish_draft, save_draft
from approvals.services.simulation import Simulated, simulate
from approvals.tenantfile import policytext
from approvals.tenantfile.reading import UnreadableFile
from config.errors import InvalidBody, VersionMismatch
from tenants.admin.base import ConfigAdmin, ServiceForm
from tenants.admin.shown import shown
from tenants.admin.site import site
from tenants.admin.standing import Standing
from tenants.admin.unfolded import Textarea, TextInput, action
from tenants.changes import Change
from tenants.services.groups import members_of_groups


class PolicyForm(ServiceForm):
    document = forms.CharField(
        strip=False,  # what begins a line belongs to it
        widget=Textarea(attrs={"rows": 30, "class": "font-mono"}),
        help_text="YAML, as in a tenant file, or JSON: rules, scorers, milestones, reasons, time_zone, budgets, daily_budget,"
        " allowed_hosts, delegation. It is kept only where it could"
        " be published.",
    )
    why = forms.CharField(required=False, max_length=500, widget=TextInput())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "document" not in self.fields:
            return
        started = self.instance.document
        if self.instance._state.adding:  # noqa: SLF001 - Django's word for "not stored yet"
            in_force = policy_in_force()
            started = in_force.document if in_force else {"rules": []}
        self.initial["document"] = policytext.write(started)

    def clean_document(self) -> Any:
        text = self.cleaned_data["document"]
        try:
            document = policytext.read(text)
        except UnreadableFile as fault:
            raise forms.ValidationError(list(fault.faults)) from None
        if faults := validate_policy(document, members_of_groups()):
            raise forms.ValidationError(policytext.with_lines(text, faults))
        return document


@admin.register(PolicyVersion, site=site)
class PolicyVersionAdmin(ConfigAdmin):
    noun = "draft"
    form = PolicyForm
    list_display = ("number", "status", "why", "created_at", "published_at", "published_by")
    list_select_related = ("published_by",)
    ordering = ("-number",)
    actions_list = ("calibration", "overgating")
    actions_detail = ("publish", "discard")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A draft may be changed; what was published never is."""
        drafted = obj is None or obj.status == PolicyStatus.DRAFT
        return drafted and super().has_change_permission(request, obj)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[Any, ...]:
        if obj is None:
            return ("why", "document")
        if self.has_change_permission(request, obj):
            return ("number", "status", "why", "document", "difference")
        told = ("published_at", "published_by", "digest")
        return ("number", "status", *told, shown(self.model, "why"), shown(self.model, "document"))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[Any, ...]:
        if obj is None:
            return ()
        if self.has_change_permission(request, obj):
            return ("number", "status", "difference")
        return self.get_fields(request, obj)

    @admin.display(description="Against the version in force")
    def difference(self, obj: PolicyVersion) -> str:
        """Show what the draft, as it was kept last, changes of the version in force."""
        lines = _difference(policy_in_force(), obj)
        return render_to_string("admin/_difference.html", {"lines": lines})

    def journal_name(self, obj: PolicyVersion) -> str:
        return f"draft {obj.number}"

    def store(self, standing: Standing, obj: Any, form: Any, *, secrets: dict[str, str]) -> Any:  # noqa: ARG002
        said = form.cleaned_data
        draft_id = None if obj._state.adding else obj.pk  # noqa: SLF001
        draft, _ = save_draft(standing.actor, said["document"], why=said["why"], draft_id=draft_id)
        return draft

    @action(description="Calibration")
    def calibration(self, request: HttpRequest) -> HttpResponse:
        return self._looking_back(request, "admin/calibration.html", lookback.calibration(request))

    @action(description="Rules that ask in vain")
    def overgating(self, request: HttpRequest) -> HttpResponse:
        return self._looking_back(request, "admin/overgating.html", lookback.overgating(request))

    def _looking_back(
        self, request: HttpRequest, template: str, shown: dict[str, Any]
    ) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "opts": self.opts, **shown}
        return TemplateResponse(request, template, context)

    @action(description="Publish")
    def publish(self, request: HttpRequest, object_id: str) -> HttpResponse:
        draft, in_force = self.found(request, object_id), policy_in_force()
        number = in_force.number if in_force else 0

        def do(_: PolicyVersion, standing: Standing) -> list[Change]:
            instead_of = request.POST.get("instead_of", "")
            if not instead_of.isdecimal() or len(instead_of) > 9:
                raise VersionMismatch("Look at the difference first.")
            if draft.status != PolicyStatus.DRAFT:
                raise InvalidBody("This is published already.")
            return publish_draft(
                standing.actor,
                draft.pk,
                seen=request.POST.get("seen", ""),
                instead_of=int(instead_of),
                groups=members_of_groups(),
            )

        return self.act(
            request,
            object_id,
            title="Publish the policy",
            says="What was authorised under the policy in force is judged anew before it starts.",
            do=do,
            detail={
                "kept": {"seen": draft.digest, "instead_of": number},
                "compared": f"Against version {number}" if number else "Against no policy at all",
                "lines": _difference(in_force, draft),
                "tried": _tried(draft),
            },
        )

    @action(description="Discard")
    def discard(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.act(
            request,
            object_id,
            title="Discard the draft",
            says="It was never in force; the journal keeps what it said.",
            do=lambda draft, standing: discard_draft(standing.actor, draft.pk),
            onward="../../",
        )


def _tried(draft: PolicyVersion) -> Simulated | None:
    """Try the draft on what was recorded lately; None: it could not be published any more."""
    try:
        return simulate(draft.document)
    except InvalidBody:
        return None


def _difference(before: PolicyVersion | None, after: PolicyVersion) -> list[str]:
    old = policytext.write(before.document).splitlines() if before else []
    new = policytext.write(after.document).splitlines()
    return list(difflib.unified_diff(old, new, n=3, lineterm=""))
