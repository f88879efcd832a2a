"""Sign-in, the choice of a tenant, sign-out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from config.errors import NotFound, Problem, TooManyRequests
from tenants.api.auth import SESSION_TENANT, remember_sign_in
from tenants.errors import FreshSignInRequired, WrongCredentials
from tenants.services import signing_in
from tenants.services.signing_in import Place
from tenants.views.page import SignedInView, local_path, see_other, with_next
from tenants.views.visits import Visit


@method_decorator(never_cache, name="dispatch")
@method_decorator(sensitive_post_parameters("password"), name="dispatch")
class SignInView(View):
    """A name and a password; what was to be opened is opened afterwards."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._form(request)

    def post(self, request: HttpRequest) -> HttpResponse:
        name, password = request.POST.get("name", ""), request.POST.get("password", "")
        try:
            user = signing_in.sign_in(name, password, address_of(request))
        except (WrongCredentials, TooManyRequests) as refusal:
            return self._form(request, refusal, name)
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        remember_sign_in(request)
        places = signing_in.places_of(user.pk)
        onward = local_path(request.POST.get("next"))
        if len(places) != 1 and onward.startswith(reverse("admin:index")):
            return see_other(onward)  # which asks for the tenant itself: a superuser has none
        if len(places) != 1:
            return see_other(with_next("tenant", onward))
        enter(request, places[0])
        return see_other(onward)

    def _form(
        self, request: HttpRequest, refusal: Problem | None = None, name: str = ""
    ) -> HttpResponse:
        asked = request.POST if request.method == "POST" else request.GET
        seconds = int(refusal.headers.get("Retry-After", "0")) if refusal else 0
        context = {
            "name": name,
            "next": local_path(asked.get("next")),
            "lost": "lost" in request.GET,
            "wrong": isinstance(refusal, WrongCredentials),
            "minutes": -(-seconds // 60),
        }
        response = render(request, "tenants/sign_in.html", context)
        if refusal is not None:
            response.status_code = refusal.status
            if seconds:
                response.headers["Retry-After"] = str(seconds)
        return response


@method_decorator(never_cache, name="dispatch")
class TenantView(SignedInView):
    """Which of their tenants a person works in."""

    def get(self, request: HttpRequest) -> HttpResponse:
        places = signing_in.places_of(self.person.pk)
        here = request.session.get(SESSION_TENANT)
        context: Mapping[str, Any] = {
            "person": self.person,
            "places": places,
            "here": here,
            "left": here is not None and here not in {str(one.tenant_id) for one in places},
            "next": local_path(request.GET.get("next")),
        }
        return render(request, "tenants/choice.html", context)

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            place = signing_in.place_of(self.person.pk, request.POST.get("tenant", ""))
        except NotFound:
            return see_other(with_next("tenant", local_path(request.POST.get("next"))))
        enter(request, place)
        return see_other(local_path(request.POST.get("next")))


class SignOutView(View):
    """Ends the session; a GET does not."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> HttpResponse:
        logout(request)
        return see_other(with_next("sign-in", "/"))


def enter(request: HttpRequest, place: Place) -> None:
    request.session[SESSION_TENANT] = str(place.tenant_id)


def sign_in_again(visit: Visit, password: str) -> None:
    """Take the person's password once more, tries counted as at sign-in; again changes nothing.

    Raises FreshSignInRequired with what is wrong at ``/password``.
    """
    try:
        user = signing_in.sign_in(visit.user.username, password, address_of(visit.request))
    except WrongCredentials:
        said = "This is not your password." if password else "Type your password."
        raise FreshSignInRequired.at("/password", said) from None
    except TooManyRequests as tries:
        minutes = -(-int(tries.headers.get("Retry-After", "0")) // 60)
        said = f"Too many tries. Try again in {minutes} min."
        raise FreshSignInRequired.at("/password", said) from None
    if user.pk != visit.user.pk:
        raise FreshSignInRequired.at("/password", "This is not your password.")
    visit.request.session.cycle_key()
    remember_sign_in(visit.request)


def address_of(request: HttpRequest) -> str:
    """Return where the request came from, behind as many proxies of ours as the settings say."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    passed: list[str] = [
        part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    ]
    if settings.ABEYANCE_PROXIES and len(passed) >= settings.ABEYANCE_PROXIES and all(passed):
        return passed[-settings.ABEYANCE_PROXIES]
    return address
