"""Who decides for whom, from when until when: set by the person themself or an admin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from approvals import deciders, substitutes
from approvals.models import Substitution
from approvals.services.inboxes import refresh_inboxes
from config.errors import Forbidden, InvalidBody, PeopleOnly
from interrupts.services.acting import role_now
from tenants import idempotency
from tenants.changes import Change, State, record, refuse_own
from tenants.clock import database_now
from tenants.journal import Actor
from tenants.models import Membership, Role, User
from tenants.principal import Principal

LAST: Final = datetime(3000, 1, 1, tzinfo=UTC)  # no substitution ends later
MOST_CHOICES: Final = 200
NOT_YOURS: Final = "Who is absent and an admin say who stands in for them."


@dataclass(frozen=True, slots=True)
class Set:
    """A substitution, and whether it was set just so before."""

    row: Substitution
    replayed: bool


def set_as(
    principal: Principal,
    *,
    substitute: str,
    ends_at: datetime,
    starts_at: datetime | None = None,
    person: str | None = None,
) -> Set:
    """Have ``substitute`` decide for the caller; an admin says it of anybody (``person``).

    Raises PeopleOnly, MayNot, Forbidden, InvalidBody, OwnAuthority; see `set_substitution`.
    """
    if not principal.is_person:
        raise PeopleOnly
    with transaction.atomic(durable=not idempotency.holds_transaction()):
        role = role_now(principal)
        if person not in (None, principal.name) and role != Role.ADMIN:
            raise Forbidden(NOT_YOURS)
        made = set_substitution(
            principal.actor,
            person=person or principal.name,
            substitute=substitute,
            starts_at=starts_at,
            ends_at=ends_at,
        )
        if not made.replayed:
            refresh_inboxes()
        return made


def set_substitution(
    actor: Actor, *, person: str, substitute: str, starts_at: datetime | None, ends_at: datetime
) -> Set:
    """Have one member decide for another from ``starts_at`` (None: now) until ``ends_at``.

    Just so again is no change. Raises InvalidBody, and OwnAuthority where somebody would make
    themselves the substitute of another.
    """
    now = database_now()
    stood_for, standing_in = _member(person, "person"), _member(substitute, "substitute")
    _check(stood_for, standing_in, starts_at or now, ends_at, now)
    if actor.id != str(stood_for.pk):
        refuse_own(actor, standing_in.pk, "Nobody makes themselves the substitute of another.")
    alike = substitutes.not_over().filter(person=stood_for, substitute=standing_in, ends_at=ends_at)
    alike = (
        alike.filter(starts_at__lte=now) if starts_at is None else alike.filter(starts_at=starts_at)
    )
    if (before := alike.first()) is not None:
        return Set(before, replayed=True)
    made = Substitution.objects.create(
        person=stood_for,
        substitute=standing_in,
        starts_at=starts_at or now,
        ends_at=ends_at,
        created_at=now,
        created_by=UUID(actor.id) if actor.kind == "user" else None,
    )
    deciders.tell_substitute(made, now)
    record(actor, [Change("substitution", person, None, _state(made))])
    return Set(made, replayed=False)


def _member(username: str, member: str) -> User:
    """Return a live member who does more than look. Raises InvalidBody."""
    live = Membership.objects.filter(active=True, user__is_active=True, user__username=username)
    found = live.exclude(role=Role.VIEWER).select_related("user").first()
    if found is None:
        raise InvalidBody.at(f"/{member}", "No member of this name does more than look.")
    return found.user


def _check(
    person: User, substitute: User, starts_at: datetime, ends_at: datetime, now: datetime
) -> None:
    if person.pk == substitute.pk:
        raise InvalidBody.at("/substitute", "Somebody else stands in.")
    if ends_at <= now:
        raise InvalidBody.at("/ends_at", "Must be in the future.")
    if ends_at <= starts_at:
        raise InvalidBody.at("/ends_at", "Must be after its start.")
    if ends_at > LAST:
        raise InvalidBody.at("/ends_at", f"Must not be after {LAST.year}.")


def end_as(principal: Principal, substitution_id: UUID) -> Substitution:
    """End a substitution at once: the person, the substitute and admins may; again is no change.

    What the substitute approved and has not started counts no more. Raises PeopleOnly, MayNot,
    Forbidden, Substitution.DoesNotExist.
    """
    if not principal.is_person:
        raise PeopleOnly
    with transaction.atomic(durable=not idempotency.holds_transaction()):
        role = role_now(principal)
        row = _row(substitution_id)
        if principal.id not in (row.person_id, row.substitute_id) and role != Role.ADMIN:
            raise Forbidden(NOT_YOURS)
        if end_substitution(principal.actor, substitution_id):
            refresh_inboxes()
    return _row(substitution_id)


def end_substitution(actor: Actor, substitution_id: UUID) -> list[Change]:
    """End a substitution at once; one that is over is no change."""
    row = _row(substitution_id)
    live = Substitution.objects.filter(pk=substitution_id, ended_at=None, ends_at__gt=Now())
    if not live.update(ended_at=Now()):
        return []
    changes = [Change("substitution", row.person.username, _state(row), None, narrows=True)]
    record(actor, changes)
    return changes


def _row(substitution_id: UUID) -> Substitution:
    return Substitution.objects.select_related("person", "substitute").get(pk=substitution_id)


def _state(row: Substitution) -> State:
    return {
        "substitute": row.substitute.username,
        "starts_at": row.starts_at.isoformat(),
        "ends_at": row.ends_at.isoformat(),
    }


def candidates(principal: Principal) -> list[User]:
    """Return whom the person may choose as a substitute, up to a bound."""
    live = Membership.objects.filter(active=True, user__is_active=True).exclude(role=Role.VIEWER)
    others = live.exclude(user=principal.id).select_related("user").order_by("user__username")
    return [one.user for one in others[:MOST_CHOICES]]


def seen_by(principal: Principal) -> QuerySet[Substitution]:
    """Return the substitutions that are not over: one's own and those by oneself; an admin's all."""
    return substitutes.not_over(None if principal.role == Role.ADMIN else principal.id)
