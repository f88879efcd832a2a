"""A person's own page: how the pages look to them, and their password."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth import update_session_auth_hash
from django.http import HttpResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters

from config.errors import InvalidBody
from tenants.models import Theme
from tenants.services import passwords, preferences
from tenants.views.page import PageView, see_other
from tenants.views.visits import Visit
from tenants.zones import zone_names


class ProfileView(PageView):
    nav: ClassVar[str] = "profile"

    def get(self, visit: Visit) -> HttpResponse:
        return _profile(self, visit, kept=visit.request.GET.get("kept", ""))

    def post(self, visit: Visit) -> HttpResponse:
        asked = visit.request.POST
        try:
            preferences.set_preferences(
                visit.user.pk,
                theme=asked.get("theme", ""),
                time_zone=asked.get("time_zone", ""),
                shortcuts="shortcuts" in asked,
            )
        except InvalidBody as refusal:
            return _profile(self, visit, refusal)
        return see_other(f"{reverse('profile')}?kept=pages")


@method_decorator(sensitive_post_parameters(), name="dispatch")
class PasswordView(PageView):
    nav: ClassVar[str] = "profile"

    def get(self, visit: Visit) -> HttpResponse:
        return _profile(self, visit)

    def post(self, visit: Visit) -> HttpResponse:
        asked = visit.request.POST
        try:
            user = passwords.change_password(
                visit.user.pk,
                old=asked.get("old", ""),
                new=asked.get("new", ""),
                again=asked.get("again", ""),
            )
        except InvalidBody as refusal:
            return _profile(self, visit, refusal)
        update_session_auth_hash(visit.request, user)
        return see_other(f"{reverse('profile')}?kept=password")


def _profile(
    view: PageView, visit: Visit, refusal: InvalidBody | None = None, *, kept: str = ""
) -> HttpResponse:
    wrong = {one["pointer"][1:]: one["detail"] for one in refusal.errors} if refusal else {}
    context = {
        "themes": Theme.choices,
        "zones": zone_names(),
        "wrong": wrong,
        "kept": kept,
        "asked": visit.request.POST if refusal else None,
    }
    return view.page(visit, "tenants/profile.html", context, status=422 if refusal else 200)
