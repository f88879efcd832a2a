"""The stop switch: freezes are set and lifted by operators, and never changed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from config.errors import Problem
from interrupts.models import Freeze, FreezeScope
from interrupts.selectors import Reach, freeze_reach
from interrupts.services import freezes
from tenants.admin.base import ReadAdmin
from tenants.admin.site import site
from tenants.admin.standing import standing_of
from tenants.admin.unfolded import Select, Textarea, TextInput, action


class FreezeForm(forms.Form):
    scope = forms.ChoiceField(choices=FreezeScope.choices, widget=Select())
    name = forms.CharField(
        required=False,
        max_length=100,
        widget=TextInput(),
        help_text="Of the agent or the tool; nothing for the whole tenant.",
    )
    note = forms.CharField(required=False, max_length=2000, widget=Textarea())


def _looked(form: FreezeForm) -> Reach | None:
    """Return what the freeze would stop; None, and a fault of the form: there is no such thing."""
    scope, name = form.cleaned_data["scope"], form.cleaned_data["name"]
    if fault := freezes.name_fault(scope, name):
        form.add_error("name", fault)
        return None
    return freeze_reach(scope, name)


@admin.register(Freeze, site=site)
class FreezeAdmin(ReadAdmin[Freeze]):
    list_display = ("scope", "name", "note", "created_at", "lifted_at")
    actions_detail = ("lift",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.admin_site.has_permission(request)

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",  # noqa: ARG002 - Django's signature
        extra_context: dict[str, Any] | None = None,  # noqa: ARG002 - Django's signature
    ) -> HttpResponse:
        """Freeze in the service's own transaction: its answer comes after the drain."""
        form = FreezeForm(request.POST or None)
        looked = None
        if request.method == "POST" and form.is_valid() and "look" in request.POST:
            looked = _looked(form)
        elif request.method == "POST" and form.is_valid():
            try:
                made, flying = freezes.freeze(standing_of(request).principal, **form.cleaned_data)
            except Problem as refusal:
                form.add_error(None, refusal.detail)
            else:
                messages.success(request, f"Frozen; {len(flying)} attempts were in flight already.")
                return HttpResponse(status=303, headers={"Location": f"../{made.pk}/change/"})
        context = {
            **self.admin_site.each_context(request),
            "title": "Freeze",
            "opts": self.opts,
            "form": form,
            "act": "Freeze",
            "says": "No effect in its scope starts until it is lifted; what is in flight ends.",
            "looked": looked,
        }
        return TemplateResponse(request, "admin/freeze.html", context)

    @action(description="Lift")
    def lift(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask (GET), then lift in the service's own transaction."""
        row = self.found(request, object_id)
        refusal = None
        if request.method == "POST":
            try:
                freezes.thaw(standing_of(request).principal, row.pk)
            except Problem as problem:
                refusal = problem
            else:
                return HttpResponse(status=303, headers={"Location": "../change/"})
        context = {
            **self.admin_site.each_context(request),
            "title": f"Lift the freeze: {row}",
            "opts": self.opts,
            "act": "Lift the freeze",
            "says": "What it held back is looked at again at once.",
            "refusal": refusal,
            "back": "../change/",
        }
        status = refusal.status if refusal else 200
        return TemplateResponse(request, "admin/act.html", context, status=status)
