"""Who looks at a page, once it is known: a person in the web session, in the tenant they chose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.middleware import get_user
from django.http import HttpRequest
from django.utils import timezone

from tenants.api.auth import SESSION_TENANT
from tenants.models import Membership, Tenant, User
from tenants.principal import Principal
from tenants.scope import tenant_scope
from tenants.zones import zone


class NotSignedIn(Exception):
    """Nobody is signed in, or who was is not active any more."""


class NoTenantChosen(Exception):
    """The person is signed in and in no tenant: none was chosen, or they have left it."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page: who asks, and where they are."""

    request: HttpRequest
    user: User
    principal: Principal
    tenant: Tenant

    @property
    def role(self) -> str:
        return self.principal.role or ""


def person_of(request: HttpRequest) -> User:
    """Return the person of the web session; NotSignedIn where there is none."""
    user = get_user(request)
    if not isinstance(user, User) or not user.is_active:
        raise NotSignedIn
    return user


@contextmanager
def visiting(request: HttpRequest) -> Iterator[Visit]:
    """Work as the person of the session, in their tenant and time zone, until the block ends.

    Raises NotSignedIn, NoTenantChosen.
    """
    user = person_of(request)
    chosen = request.session.get(SESSION_TENANT)
    if chosen is None:
        raise NoTenantChosen
    tenant_id = UUID(chosen)
    with tenant_scope(tenant_id), timezone.override(zone(user.time_zone)):
        member = Membership.objects.filter(user=user, active=True).select_related("tenant").first()
        if member is None:
            raise NoTenantChosen
        principal = Principal("user", user.pk, tenant_id, user.username, None, member.role)
        yield Visit(request, user, principal, member.tenant)
