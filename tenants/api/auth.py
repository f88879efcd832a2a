"""Who asks: an agent by its key, a person by a token, or by the web session.

Sign-in by bearer is one round trip: the database function finds the principal of a secret's hash
across tenants and sets the session's tenant. Either way the tenant is left when the request ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

from django.contrib.auth import get_user
from django.http import HttpRequest, HttpResponse
from rest_framework.authentication import CSRFCheck

from config.errors import Forbidden, Unauthenticated
from config.keys import secret_hash
from tenants.clock import database_now
from tenants.models import Membership, User
from tenants.principal import AGENT_PREFIX, USER_PREFIX, Principal
from tenants.scope import tenant_scope
from tenants.statements import Row, Statement, prepared, together

SESSION_TENANT = "tenant"  # the web session's key for the tenant its person chose
SESSION_SIGNED_IN = "signed_in_at"  # its key for when the password was given, in epoch seconds
FRESH_SECONDS = 15 * 60
_MAX_SECRET = 200
_SIGN_IN = (
    "SELECT kind, principal_id, tenant_id, name, credential_id, role, owner_id"
    " FROM tenants_sign_in(%b::bytea)"
)


class SignedIn(NamedTuple):
    """Who asks, and the first row of what was looked up beside."""

    principal: Principal
    found: Row = ()


@contextmanager
def signed_in(request: HttpRequest, also: Statement | None = None) -> Iterator[SignedIn]:
    """Work as whoever asks, in their tenant, until the block ends; Unauthenticated if no one.

    ``also`` is looked up in that tenant, in the same round trip where that can be.
    """
    header = request.META.get("HTTP_AUTHORIZATION")
    if header:
        signed = _by_bearer(header, also)
        with tenant_scope(signed.principal.tenant_id, variable_set=True):
            yield signed
        return
    user, tenant_id = _of_session(request)
    with tenant_scope(tenant_id):
        principal = _member(user, tenant_id)
        _check_csrf(request)
        yield SignedIn(principal, prepared(*also) if also else ())


def remember_sign_in(request: HttpRequest) -> None:
    """Keep in the web session that its person has just given their password."""
    request.session[SESSION_SIGNED_IN] = database_now().timestamp()


def is_session_fresh(request: HttpRequest) -> bool:
    """Say whether the session's person gave their password within FRESH_SECONDS."""
    at = request.session.get(SESSION_SIGNED_IN)
    return isinstance(at, float) and database_now().timestamp() - at < FRESH_SECONDS


def is_fresh(request: HttpRequest) -> bool:
    """Say the same of who asks the API; a bearer gives their secret with each request."""
    return bool(request.META.get("HTTP_AUTHORIZATION")) or is_session_fresh(request)


def _by_bearer(header: str, also: Statement | None) -> SignedIn:
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    known_form = secret.startswith((AGENT_PREFIX, USER_PREFIX)) and len(secret) <= _MAX_SECRET
    if scheme.lower() != "bearer" or not known_form:
        raise Unauthenticated
    sign_in = Statement(_SIGN_IN, [secret_hash(secret)])
    row, found = together(sign_in, also) if also else (prepared(*sign_in), ())
    if not row:
        raise Unauthenticated
    return SignedIn(Principal(*row), found)


def _of_session(request: HttpRequest) -> tuple[User, UUID]:
    session = getattr(request, "session", None)
    chosen = session.get(SESSION_TENANT) if session is not None else None
    if chosen is None:
        raise Unauthenticated
    user = get_user(request)
    if not isinstance(user, User) or not user.is_active:
        raise Unauthenticated
    return user, UUID(chosen)


def _member(user: User, tenant_id: UUID) -> Principal:
    membership = Membership.objects.filter(user=user, active=True).first()
    if membership is None:
        raise Unauthenticated
    return Principal("user", user.pk, tenant_id, user.username, None, membership.role)


def _check_csrf(request: HttpRequest) -> None:
    """Refuse a change that a page of another site may have sent with the session's cookie."""
    check = CSRFCheck(_unused)
    check.process_request(request)
    if reason := check.process_view(request, _unused, (), {}):
        raise Forbidden(f"CSRF: {reason}")


def _unused(_request: HttpRequest) -> HttpResponse:
    """Stand for the view where Django's check wants one; it is not called."""
    return HttpResponse()
