"""Every row lock of delegation.

Order: a run and its agent's days (interrupts/locks.py), then rules' days by rule and day; or the
stream of events; or what was learned of a person, then their rules by id, then the days. The
tenant's row is locked last. A spot check is never waited for by whoever holds a run. What is
proposed together may come to rules in any order: a day that is out of it is not waited for. A rule
is locked so that what refers to it may still be written: whoever holds a day writes a use of the
rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS

from delegation.models import Delegation, DelegationDay, EventStream, LearnerState, SpotCheck
from tenants.ids import uuid7
from tenants.scope import current_tenant_id
from tenants.statements import prepared

_READ: Final = ("id", "delegation_id", "day", "calls", "sums")
_DAY: Final = (
    "SELECT id, calls, sums FROM delegation_delegationday"
    " WHERE delegation_id = %b::uuid AND day = %b::date FOR NO KEY UPDATE"
)
_BEGUN: Final = (
    "INSERT INTO delegation_delegationday (id, tenant_id, delegation_id, day, calls, sums)"
    " VALUES (%b::uuid, %b::uuid, %b::uuid, %b::date, 0, '{}') ON CONFLICT DO NOTHING"
    " RETURNING id, calls, sums"
)


def lock_stream() -> EventStream:
    """Lock and return the head of the tenant's events; the first to ask makes it."""
    rows = EventStream.objects.select_for_update()
    row = rows.first()
    if row is None:
        EventStream.objects.bulk_create([EventStream()], ignore_conflicts=True)
        row = rows.get()
    return row


def lock_learner(user_id: UUID) -> LearnerState:
    """Lock and return what was learned of a person; the first to ask makes it."""
    rows = LearnerState.objects.select_for_update().filter(user=user_id)
    row = rows.first()
    if row is None:
        LearnerState.objects.bulk_create([LearnerState(user_id=user_id)], ignore_conflicts=True)
        row = rows.get()
    return row


def lock_rule(delegation_id: UUID) -> Delegation:
    """Lock and return a rule. Raises Delegation.DoesNotExist."""
    return Delegation.objects.select_for_update(no_key=True).get(pk=delegation_id)


def lock_rules(user_id: UUID) -> list[Delegation]:
    """Lock and return a person's rules that have not ended, by id."""
    rows = Delegation.objects.select_for_update(no_key=True).filter(
        user=user_id, status__in=["suggested", "active", "paused"]
    )
    return list(rows.order_by("id"))


def lock_day(delegation_id: UUID, day: date) -> DelegationDay:
    """Lock and return the row that a rule's day is counted in; the first to ask makes it."""
    about = [delegation_id, day]
    # Two that begin a day at once: the one waits here for the other's row, and finds it then.
    found = prepared(_DAY, about) or prepared(_BEGUN, [uuid7(), current_tenant_id(), *about])
    pk, calls, sums = found or prepared(_DAY, about)
    return DelegationDay.from_db(DEFAULT_DB_ALIAS, _READ, [pk, *about, calls, sums])


def try_day(delegation_id: UUID, day: date) -> DelegationDay | None:
    """Lock and return the row of a rule's day without waiting; None: others hold it, or make it."""
    rows = DelegationDay.objects.select_for_update(no_key=True, skip_locked=True)
    return rows.filter(delegation=delegation_id, day=day).first()


def try_check(pks: Sequence[UUID]) -> SpotCheck | None:
    """Lock and return the first of these checks that nobody holds; None: there is none."""
    rows = SpotCheck.objects.select_for_update(no_key=True, skip_locked=True)
    return rows.filter(pk__in=pks, awaits=True).order_by("id").first()
