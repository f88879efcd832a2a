"""The one way into a signed-in page: session, tenant, and each refusal as a page in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import urlencode

from django.core.exceptions import ObjectDoesNotExist
from django.db import connection, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views import View

from config.errors import MethodNotAllowed, NotFound, Problem
from tenants import refusals
from tenants.models import User
from tenants.views.visits import NoTenantChosen, NotSignedIn, Visit, person_of, visiting

MAX_NEXT: Final = 500


class Words(NamedTuple):
    """What a refusal says: what is true, and what it means."""

    title: str
    says: str


WORDS: Final[Mapping[str, Words]] = {
    "not-found": Words(
        "Nothing is here",
        "There is no such page, or what it showed is not yours to see.",
    ),
    "forbidden": Words("You can read this, not change it", "Your role here does not allow that."),
    "method-not-allowed": Words(
        "This page is not asked for like that", "Open it by its link, and use what it offers."
    ),
    "version-mismatch": Words(
        "This changed while you were reading", "Look at it as it is now, and decide again."
    ),
}


class SignedInView(View):
    """A page for whoever is signed in, in whatever tenant or none: ``person``."""

    person: User

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            self.person = person_of(request)
        except NotSignedIn:
            return to_sign_in(request)
        return super().dispatch(request, *args, **kwargs)


class PageView(View):
    """A page for signed-in people. Its ``get`` and ``post`` take a Visit and what the path names.

    A GET changes nothing: its transaction is read-only, unless ``records_views`` says that what
    was shown is kept. A Problem, wherever it is raised, becomes a page; ``words`` adds what its
    codes mean here.
    """

    nav: ClassVar[str] = ""  # which of the areas is marked as the current one
    records_views: ClassVar[bool] = False
    words: ClassVar[Mapping[str, Words]] = {}

    def dispatch(self, request: HttpRequest, *_args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase
        try:
            with visiting(request) as visit:
                response = self._serve(visit, kwargs)
        except NotSignedIn:
            response = to_sign_in(request)
        except NoTenantChosen:
            response = see_other(with_next("tenant", request.get_full_path()))
        response.headers["Cache-Control"] = "no-store"
        return response

    def _serve(self, visit: Visit, kwargs: Mapping[str, Any]) -> HttpResponseBase:
        method = str(visit.request.method)
        try:
            handler = self._handler(method)
            if method in {"GET", "HEAD"} and not self.records_views:
                with reading_only():
                    return handler(visit, **kwargs)
            return handler(visit, **kwargs)
        except (ObjectDoesNotExist, Http404):
            return self._refused(visit, NotFound(), kwargs)
        except Problem as problem:
            return self._refused(visit, problem, kwargs)

    def _refused(self, visit: Visit, problem: Problem, kwargs: Mapping[str, Any]) -> HttpResponse:
        refusals.tell(visit.principal, visit.request, problem)
        return self.refused(visit, problem, **kwargs)

    def _handler(self, method: str) -> Callable[..., HttpResponseBase]:
        name = "get" if method == "HEAD" else method.lower()
        handler: Callable[..., HttpResponseBase] | None = None
        if name in {"get", "post"}:
            handler = getattr(self, name, None)
        if handler is None:
            allowed = [one.upper() for one in ("get", "post") if hasattr(self, one)]
            raise MethodNotAllowed(headers={"Allow": ", ".join(allowed)})
        return handler

    def refused(self, visit: Visit, problem: Problem, **_kwargs: Any) -> HttpResponse:
        """Show a refusal: what is true, and that nothing was recorded where something was asked."""
        words = {**WORDS, **self.words}.get(problem.code)
        context = {
            "title": words.title if words else problem.title,
            "says": words.says if words else problem.detail,
            "problem": problem,
            "asked": visit.request.method == "POST",
        }
        response = self.page(visit, "refused.html", context, status=problem.status)
        if allow := problem.headers.get("Allow"):
            response.headers["Allow"] = allow
        return response

    def page(
        self,
        visit: Visit,
        template: str,
        context: Mapping[str, Any] | None = None,
        *,
        status: int = 200,
    ) -> HttpResponse:
        """Render a page at once, inside the tenant's scope."""
        shown = {"visit": visit, "nav": self.nav, **(context or {})}
        return HttpResponse(render_to_string(template, shown, visit.request), status=status)


@contextmanager
def reading_only() -> Iterator[None]:
    """Let the database refuse every write of the block; inside a transaction it is the outer's."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        yield


def see_other(url: str) -> HttpResponse:
    """Send the browser on with a GET (303), so that going back sends nothing twice."""
    return HttpResponse(status=303, headers={"Location": url})


def to_sign_in(request: HttpRequest) -> HttpResponse:
    """Send to sign-in and back; what was asked for by a POST was not done, and is said so."""
    lost = {"lost": "1"} if request.method == "POST" else {}
    return see_other(with_next("sign-in", request.get_full_path(), **lost))


def with_next(name: str, path: str, **query: str) -> str:
    """Return the URL of a page that leads on to ``path``."""
    named = {"next": path} if path != "/" and len(path) <= MAX_NEXT else {}
    asked = urlencode({**named, **query})
    return f"{reverse(name)}?{asked}" if asked else reverse(name)


def local_path(path: str | None) -> str:
    """Return where to go next: a path of this service, else the first page."""
    if not path or len(path) > MAX_NEXT or not path.startswith("/"):
        return "/"
    return path if url_has_allowed_host_and_scheme(path, allowed_hosts=None) else "/"
