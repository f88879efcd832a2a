"""What a person wants to be told by e-mail in a tenant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final
from uuid import UUID

from approvals import owed
from approvals.deciders import ASKED, REMINDER, SUBSTITUTE, UNDECIDABLE
from approvals.models import NoticePreference
from tenants.models import Membership, Role, User
from tenants.principal import Principal


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person wants to be told by e-mail in a tenant; all of it where nothing is said."""

    asked: bool = True
    reminders: bool = True
    answers: bool = True
    votes: bool = True
    expiries: bool = True
    outcomes: bool = True
    recoveries: bool = True
    interrupts: bool = True
    rules: bool = True


WISHES: Final = tuple(one.name for one in fields(Wishes))
_WANTED: Final[Mapping[str, Callable[[Wishes], bool]]] = {
    ASKED: lambda wishes: wishes.asked,
    REMINDER: lambda wishes: wishes.reminders,
    owed.HANDED: lambda wishes: wishes.asked,
    SUBSTITUTE: lambda wishes: wishes.asked,
    owed.ANSWER: lambda wishes: wishes.answers,
    owed.VOTE: lambda wishes: wishes.votes,
    owed.EXPIRED: lambda wishes: wishes.expiries,
    owed.FAILED: lambda wishes: wishes.outcomes,
    owed.UNKNOWN: lambda wishes: wishes.outcomes,
    owed.RECOVERY: lambda wishes: wishes.recoveries,
    owed.HELD: lambda wishes: wishes.interrupts,
    owed.SUGGESTED: lambda wishes: wishes.rules,
    owed.PAUSED: lambda wishes: wishes.rules,
    owed.FOUND: lambda wishes: wishes.outcomes or wishes.recoveries,
}


def wishes_of(user_id: UUID) -> Wishes:
    row = NoticePreference.objects.filter(user=user_id).first()
    return Wishes(**{name: getattr(row, name) for name in WISHES}) if row else Wishes()


def set_wishes(principal: Principal, wishes: Wishes) -> None:
    """Keep what the person wants to be told here; what they are owed already follows it too."""
    NoticePreference.objects.update_or_create(user_id=principal.id, defaults=asdict(wishes))


def reader_of(kind: str, recipient: UUID) -> User | None:
    """Return the person where they are still to be told such things."""
    member = Membership.objects.filter(user=recipient, active=True, user__is_active=True)
    found = member.select_related("user").first()
    if found is None or not found.user.email or not _may_be_told(kind, found.role):
        return None
    wanted = _WANTED.get(kind)
    return found.user if wanted is None or wanted(wishes_of(recipient)) else None


def _may_be_told(kind: str, role: str) -> bool:
    if kind == UNDECIDABLE:
        return role == Role.ADMIN
    return kind != owed.RECOVERY or role in owed.SETTLERS
