"""The page itself: who may read it, how often it is made, and what it says without a database."""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.urls import path
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from config.metrics.families import families
from config.metrics.reading import Figures, read

KEPT_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 3.0
# What says that somebody else's request was passed on by a proxy on this machine.
PASSED_ON: Final = (
    "HTTP_FORWARDED",
    "HTTP_VIA",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_REAL_IP",
)
logger = logging.getLogger(__name__)


class Unreadable(Exception):
    """The figures cannot be had now; the text says why."""


class Kept:
    """Reads at most every KEPT_SECONDS, one at a time, however many ask; failures are kept too."""

    def __init__(self, make: Callable[[], Figures]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made_at = float("-inf")
        self._figures: Figures | None = None
        self._fault = ""

    def get(self) -> Figures:
        """Return figures no older than KEPT_SECONDS; Unreadable where there are none."""
        # Whoever waits for another's reading holds a thread that others need.
        if not self._lock.acquire(timeout=PATIENCE_SECONDS):
            raise Unreadable("the database is slow to answer")
        try:
            if time.monotonic() - self._made_at >= KEPT_SECONDS:
                self._renew()
        finally:
            self._lock.release()
        if self._figures is None:
            raise Unreadable(self._fault)
        return self._figures

    def _renew(self) -> None:
        try:
            self._figures = self._make()
        except Error as fault:
            logger.warning("the metrics could not be read: %s", fault)
            self._figures = None
            self._fault = f"the database could not be read: {type(fault).__name__}"
        self._made_at = time.monotonic()


kept = Kept(read)


class Page(Collector):
    """What `prometheus_client` renders."""

    def __init__(self, figures: Figures, *, naming: bool) -> None:
        self.families = list(families(figures, naming=naming))

    def collect(self) -> list[object]:  # type: ignore[override]
        return list(self.families)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The figures, to whoever has the token; without one to this machine, naming no tenant."""
    token: str = settings.ABEYANCE_METRICS_TOKEN
    if token and not _has(request, token):
        refusal = _line("the metrics need `Authorization: Bearer` and the token", 401)
        refusal["WWW-Authenticate"] = 'Bearer realm="abeyance metrics"'
        return refusal
    if not token and not is_local(request):
        return _line("the metrics are for this machine alone: set ABEYANCE_METRICS_TOKEN", 403)
    try:
        figures = kept.get()
    except Unreadable as why:
        return _line(str(why), 503)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Page(figures, naming=bool(token)))
    page = HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)
    page["Cache-Control"] = "no-store"
    return page


def _line(text: str, status: int) -> HttpResponse:
    return HttpResponse(f"abeyance: {text}\n", status=status, content_type="text/plain")


def _has(request: HttpRequest, token: str) -> bool:
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def is_local(request: HttpRequest) -> bool:
    """Say whether a request comes from this machine itself, in a service that is reached from it.

    A proxy on this machine passes on what comes from anywhere, so nothing may speak of one.
    """
    if settings.ABEYANCE_PROXIES or any(name in request.META for name in PASSED_ON):
        return False
    host, _ = split_domain_port(request.get_host())
    base = urlsplit(settings.ABEYANCE_BASE_URL).hostname or ""
    return all(map(_is_loopback, (request.META.get("REMOTE_ADDR", ""), host, base)))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


urlpatterns = [path("metrics", metrics)]
