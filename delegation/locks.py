"""Every row lock of delegation.

Order: a run and its agent's days (interrupts/locks.py), then rules' days by rule and day; or the
stream of events; or what was learned of a person, then their rules by id, then the days. The tenant's
row is locked last. What is proposed together may come to rules in any order: a day that is out of it
is not waited for. A rule is locked so that what refers to it may still be written: whoever holds a
day writes a use of the rule.
"""

from __future__ import annotations

from datetime import date
from typing import Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS

from delegation.models import Delegation, DelegationDay, EventStream, LearnerState
from tenants.statements import prepared

_READ: Final = ("id", "delegation_id", "day", "calls", "sums")
_DAY: Final = (
    "SELECT id, calls, sums FROM delegation_delegationday"
    " WHERE delegation_id = %b::uuid AND day = %b::date FOR NO KEY UPDATE"
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
    row = _locked_day(delegation_id, day)
    if row is None:
        made = DelegationDay(delegation_id=delegation_id, day=day)
        DelegationDay.objects.bulk_create([made], ignore_conflicts=True)
        row = _locked_day(delegation_id, day)
    if row is None:
        raise DelegationDay.DoesNotExist(f"{delegation_id} has no {day}")
    return row


def _locked_day(delegation_id: UUID, day: date) -> DelegationDay | None:
    found = prepared(_DAY, [delegation_id, day])
    if not found:
        return None
    pk, calls, sums = found
    values = [pk, delegation_id, day, calls, sums]
    return DelegationDay.from_db(DEFAULT_DB_ALIAS, _READ, values)


def try_day(delegation_id: UUID, day: date) -> DelegationDay | None:
    """Lock and return the row of a rule's day without waiting; None: others hold it, or make it."""
    rows = DelegationDay.objects.select_for_update(no_key=True, skip_locked=True)
    return rows.filter(delegation=delegation_id, day=day).first()
