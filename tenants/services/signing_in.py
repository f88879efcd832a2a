"""Signing in by a password, and where a person may go then."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django.contrib.auth import authenticate
from django.db import connection, transaction
from django.utils.crypto import salted_hmac

from config.errors import NotFound, TooManyRequests
from tenants.clock import database_now
from tenants.errors import WrongCredentials
from tenants.models import User

WINDOW_SECONDS: Final = 15 * 60
# A name from one address is guessed at ten times in a window; what many addresses try at one name,
# and one address at many names, ends later, so that nobody is locked out by a few of others' tries.
PER_NAME_AND_ADDRESS: Final = 10
PER_NAME: Final = 100
PER_ADDRESS: Final = 100
MAX_NAME: Final = 254
MAX_PASSWORD: Final = 4096
_FORGOTTEN_AT_ONCE: Final = 100


class Place(NamedTuple):
    """A tenant that a person belongs to, and what they are there."""

    tenant_id: UUID
    slug: str
    name: str
    role: str


def sign_in(name: str, password: str, address: str) -> User:
    """Return the person of this name (or e-mail address, where it is one person's) and password.

    Each try is counted before the password is looked at, so that tries at once all count; one that
    succeeds is not held against anybody. Raises TooManyRequests, WrongCredentials.
    """
    name = name.strip()[:MAX_NAME]
    subjects = _subjects(name, address)
    for subject, limit in subjects.items():
        _count(subject, limit)
    user = None
    if len(password) <= MAX_PASSWORD:
        user = authenticate(username=_username(name), password=password)
    if not isinstance(user, User):
        raise WrongCredentials
    _give_back(list(subjects))
    return user


def places_of(user_id: UUID) -> list[Place]:
    """Return the tenants that the person belongs to now, by name."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant_id, slug, name, role FROM tenants_of_person(%s)", [user_id])
        return [Place(*row) for row in cursor.fetchall()]


def place_of(user_id: UUID, slug: str) -> Place:
    """Return the tenant of that slug; NotFound where the person does not belong to it."""
    for place in places_of(user_id):
        if place.slug == slug:
            return place
    raise NotFound


def _username(name: str) -> str:
    if "@" not in name or User.objects.filter(username=name).exists():
        return name
    found = list(User.objects.filter(email__iexact=name).values_list("username", flat=True)[:2])
    return found[0] if len(found) == 1 else name


def _subjects(name: str, address: str) -> Mapping[str, int]:
    """Return what a try is counted for, as keyed digests, each with its limit."""
    known_as = unicodedata.normalize("NFKC", name).casefold()
    return {
        _digest("pair", known_as, address): PER_NAME_AND_ADDRESS,
        _digest("name", known_as): PER_NAME,
        _digest("address", address): PER_ADDRESS,
    }


def _digest(*named: str) -> str:
    return salted_hmac("tenants.sign_in", "\0".join(named), algorithm="sha256").hexdigest()


def _count(subject: str, limit: int) -> None:
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO tenants_signincount AS known (subject, tries, until)
            VALUES (%(subject)s, 1, clock_timestamp() + %(window)s * interval '1 second')
            ON CONFLICT (subject) DO UPDATE SET
                tries = CASE WHEN known.until <= clock_timestamp() THEN 1 ELSE known.tries + 1 END,
                until = CASE WHEN known.until <= clock_timestamp()
                    THEN excluded.until ELSE known.until END
            RETURNING tries, until
            """,
            {"subject": subject, "window": WINDOW_SECONDS},
        )
        tries, until = cursor.fetchone()
    if tries > limit:
        raise _too_many(until)


def _too_many(until: datetime) -> TooManyRequests:
    seconds = max(1, round((until - database_now()).total_seconds()))
    return TooManyRequests(headers={"Retry-After": str(seconds)})


def _give_back(subjects: Sequence[str]) -> None:
    """Forget the tries from here, take this one back elsewhere, and drop what is over.

    Sessions that have expired are dropped with it, a few at a time.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM tenants_signincount WHERE subject = %s", [subjects[0]])
        for subject in subjects[1:]:
            cursor.execute(
                "UPDATE tenants_signincount SET tries = greatest(tries - 1, 0) WHERE subject = %s",
                [subject],
            )
        cursor.execute(
            "DELETE FROM tenants_signincount WHERE subject IN (SELECT subject"
            " FROM tenants_signincount WHERE until < now() LIMIT %s FOR UPDATE SKIP LOCKED)",
            [_FORGOTTEN_AT_ONCE],
        )
        cursor.execute(
            "DELETE FROM django_session WHERE session_key IN (SELECT session_key"
            " FROM django_session WHERE expire_date < now() LIMIT %s FOR UPDATE SKIP LOCKED)",
            [_FORGOTTEN_AT_ONCE],
        )
