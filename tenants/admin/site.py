"""The admin's one way in: who asks, for which tenant, and nothing changed by looking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import update_wrapper
from typing import Any, Final

from django.contrib.auth import logout
from django.core.exceptions import BadRequest, ObjectDoesNotExist
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.template.response import SimpleTemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect

from config.errors import NotFound
from tenants.admin.choosing import ChoiceView
from tenants.admin.journal import journal_view
from tenants.admin.standing import MOST_LISTED, STANDING, choices_of, find_standing
from tenants.admin.unfolded import AdminSite
from tenants.models import User
from tenants.scope import tenant_scope
from tenants.views.page import reading_only, see_other, to_sign_in, with_next
from tenants.views.visits import NotSignedIn, person_of
from tenants.zones import zone

# Its scripts (Alpine) make functions of what stands in attributes, and set styles as they go.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
_LOOKING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
# Sign-in is the people's, nothing has a page of Django's, and nothing is searched across tables.
_LEFT_OUT: Final = frozenset({"view_on_site", "search", "password_change", "password_change_done"})
View = Callable[..., HttpResponseBase]


class TenantAdminSite(AdminSite):
    """An admin of one tenant at a time: that of the session."""

    site_title = "Abeyance admin"
    site_header = "Abeyance"
    index_title = "Administration"
    index_template = "admin/tenant_index.html"

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self._after_changes: list[Callable[[], None]] = []

    def after_each_change(self, act: Callable[[], None]) -> None:
        """Have ``act`` called in the transaction of each change of configuration made here."""
        self._after_changes.append(act)

    def changed(self) -> None:
        for act in self._after_changes:
            act()

    def has_permission(self, request: HttpRequest) -> bool:
        return STANDING in request.META

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: FBT001, FBT002 - Django's signature
        def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            response = self._serve(request, view, args, kwargs)
            response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
            response.headers.setdefault("Cache-Control", "no-store")
            return response

        wrapped: Any = inner if cacheable else never_cache(inner)
        return update_wrapper(csrf_protect(wrapped), view)

    def _serve(
        self, request: HttpRequest, view: View, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> HttpResponseBase:
        try:
            user = person_of(request)
        except NotSignedIn:
            return to_sign_in(request)
        standing = find_standing(request, user)
        if standing is None:
            return _elsewhere(request, user)
        request.META[STANDING] = standing
        with ExitStack() as stack:
            stack.enter_context(tenant_scope(standing.tenant.pk))
            stack.enter_context(timezone.override(zone(user.time_zone)))
            if request.method in _LOOKING:
                stack.enter_context(reading_only())
            return _rendered(view, request, args, kwargs)

    def get_urls(self) -> list[Any]:
        own: list[URLPattern | URLResolver] = [
            path("tenant/", ChoiceView.as_view(), name="tenant"),
            path("journal/", self.admin_view(self.journal), name="journal"),
        ]
        theirs = [one for one in super().get_urls() if getattr(one, "name", None) not in _LEFT_OUT]
        return own + theirs

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return what can be changed and what is only read, apart: that is how it is looked for."""
        apps: list[Any] = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        tables = [table for app in apps for table in app["models"]]
        parts: dict[str, list[Any]] = {"Configuration": [], "What happened": []}
        for table in tables:
            is_read = not (table["perms"]["add"] or table["perms"]["change"])
            parts["What happened" if is_read else "Configuration"].append(table)
        return [
            {
                "name": name,
                "app_label": slugify(name),
                "app_url": reverse("admin:index"),
                "has_module_perms": True,
                "models": found,
            }
            for name, found in parts.items()
        ]

    def journal(self, request: HttpRequest) -> HttpResponse:
        return journal_view(request, self.each_context(request))

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:  # noqa: ARG002 - Django's signature
        return see_other(with_next("sign-in", reverse("admin:index")))

    def logout(self, request: HttpRequest, extra_context: Any = None) -> Any:  # noqa: ARG002 - Django's signature
        if request.method == "POST":
            logout(request)
        return see_other(with_next("sign-in", "/"))

    def extra_context(self, context: Mapping[str, Any], request: HttpRequest) -> dict[str, Any]:
        standing = request.META.get(STANDING)
        choices = choices_of(standing.user) if standing else ()
        return {
            **context,
            "standing": standing,
            "choices": choices,
            "more_choices": len(choices) >= MOST_LISTED,
        }


def _elsewhere(request: HttpRequest, user: User) -> HttpResponse:
    """Send who may be here to the choice of a tenant; tell the others that they may not."""
    if user.is_superuser or choices_of(user):  # a superuser makes the first one
        return see_other(with_next("admin:tenant", request.get_full_path()))
    return render(request, "admin/not_yours.html", {}, status=403)


def _rendered(
    view: View, request: HttpRequest, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> HttpResponseBase:
    """Answer inside the tenant's scope, where templates still read rows."""
    try:
        response = view(request, *args, **kwargs)
        if isinstance(response, SimpleTemplateResponse) and not response.is_rendered:
            response = response.render()
    except (ObjectDoesNotExist, NotFound) as missing:
        raise Http404 from missing
    except DataError as fault:  # what was asked for holds what no column can, as a NUL
        raise BadRequest("The request names what cannot be stored.") from fault
    return response


site = TenantAdminSite()
