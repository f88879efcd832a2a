"""Who may be in the admin, and for which tenant: one at a time, chosen in the session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from django.db.models import Q
from django.http import HttpRequest

from tenants.api.auth import SESSION_TENANT
from tenants.journal import Actor
from tenants.models import Membership, Role, Tenant, User
from tenants.principal import Principal
from tenants.scope import tenant_scope
from tenants.services.signing_in import places_of

# A request's own place for what its views need to know: set for every view of the admin.
STANDING: Final = "abeyance.standing"
MOST_LISTED: Final = 50


class Choice(NamedTuple):
    slug: str
    name: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A person at work in one tenant's admin. ``role`` is None for a superuser from outside."""

    user: User
    tenant: Tenant
    role: str | None

    @property
    def actor(self) -> Actor:
        return Actor("user", str(self.user.pk))

    @property
    def principal(self) -> Principal:
        return Principal("user", self.user.pk, self.tenant.pk, self.user.username, None, self.role)


def standing_of(request: HttpRequest) -> Standing:
    found: Standing = request.META[STANDING]
    return found


def find_standing(request: HttpRequest, user: User) -> Standing | None:
    """Return the person's standing in the tenant of their session; None where they have none.

    An admin of the tenant stands there, and a superuser, whatever the tenant; nobody else.
    """
    chosen = request.session.get(SESSION_TENANT)
    tenant = Tenant.objects.filter(pk=UUID(chosen)).first() if chosen else None
    if tenant is None:
        return None
    with tenant_scope(tenant.pk):
        member = Membership.objects.filter(user=user, active=True).first()
    role = member.role if member else None
    if role == Role.ADMIN or user.is_superuser:
        return Standing(user, tenant, role)
    return None


def choices_of(user: User, named: str = "") -> Sequence[Choice]:
    """Return the tenants that the person may choose here, by name: the first so many."""
    if not user.is_superuser:
        places = [one for one in places_of(user.pk) if one.role == Role.ADMIN]
        return [Choice(one.slug, one.name) for one in places][:MOST_LISTED]
    like = Q(slug__icontains=named) | Q(name__icontains=named)
    rows = Tenant.objects.filter(like).order_by("name", "slug").values_list("slug", "name")
    return [Choice(*row) for row in rows[:MOST_LISTED]]


def choose(request: HttpRequest, user: User, slug: str) -> bool:
    """Make the tenant of that slug the session's; False where it is not this person's to choose."""
    mine = {one.slug: one.tenant_id for one in places_of(user.pk) if one.role == Role.ADMIN}
    found = mine.get(slug)
    if found is None and user.is_superuser:
        found = Tenant.objects.filter(slug=slug).values_list("pk", flat=True).first()
    if found is None:
        return False
    request.session[SESSION_TENANT] = str(found)
    return True
