"""Which tenant is administered; and where superusers make a new one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from tenants.admin.standing import MOST_LISTED, choices_of, choose
from tenants.journal import Actor
from tenants.models import Tenant, User
from tenants.services.organisations import make_tenant
from tenants.views.page import SignedInView, local_path, see_other, with_next

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}", re.ASCII)
_LONGEST_NAME: Final = 200


@method_decorator(never_cache, name="dispatch")
class ChoiceView(SignedInView):
    """The tenants that a person may administer; a POST chooses one, or makes one."""

    http_method_names = ["get", "head", "post"]

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._page(request)

    def post(self, request: HttpRequest) -> HttpResponse:
        if "make" in request.POST and self.person.is_superuser:
            return self._make(request)
        onward = local_path(request.POST.get("next"))
        if not choose(request, self.person, request.POST.get("tenant", "")):
            return see_other(with_next("admin:tenant", onward))
        return see_other(onward if onward != "/" else reverse("admin:index"))

    def _make(self, request: HttpRequest) -> HttpResponse:
        slug, name = request.POST.get("slug", "").strip(), request.POST.get("name", "").strip()
        wrong = dict(_faults(slug, name))
        if wrong:
            return self._page(request, wrong)
        with transaction.atomic():
            make_tenant(Actor("user", str(self.person.pk)), slug=slug, name=name)
        choose(request, self.person, slug)
        return see_other(reverse("admin:index"))

    def _page(self, request: HttpRequest, wrong: Mapping[str, str] | None = None) -> HttpResponse:
        asked = request.POST if request.method == "POST" else request.GET
        context = {**_shown(self.person, asked), "wrong": wrong or {}, "person": self.person}
        return render(request, "admin/choice.html", context, status=422 if wrong else 200)


def _shown(person: User, asked: Mapping[str, str]) -> dict[str, Any]:
    choices = choices_of(person, asked.get("q", ""))
    return {
        "choices": choices,
        "more": len(choices) >= MOST_LISTED,
        "q": asked.get("q", ""),
        "next": local_path(asked.get("next")),
        "slug": asked.get("slug", ""),
        "name": asked.get("name", ""),
    }


def _faults(slug: str, name: str) -> list[tuple[str, str]]:
    found = []
    if not _SLUG.fullmatch(slug):
        found.append(("slug", "Small letters, digits and - _ only, 63 at most."))
    elif Tenant.objects.filter(slug=slug).exists():
        found.append(("slug", "A tenant has this name already."))
    if not 1 <= len(name) <= _LONGEST_NAME:
        found.append(("name", f"A name has 1 to {_LONGEST_NAME} characters."))
    return found
