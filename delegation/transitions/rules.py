"""A rule suggested, begun, changed, paused, ended; `move` is the one writer of a status.

Each is told in the tenant's journal. Whatever takes something from a rule that is active raises
the tenant's authority version: once it has answered, nothing starts by what was allowed before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from approvals import owed
from delegation import predicates
from delegation.models import (
    MOVES,
    Delegation,
    DelegationStatus,
    DelegationVersion,
    PauseReason,
)
from delegation.predicates import Predicate, Unreadable, Widens
from interrupts.errors import IllegalMove
from tenants import authority, journal
from tenants.ids import uuid7
from tenants.journal import SYSTEM, Actor, Entry

LASTS: Final = timedelta(days=90)
S = DelegationStatus


def move(rule: Delegation, to: DelegationStatus) -> None:
    if to not in MOVES[DelegationStatus(rule.status)]:
        raise IllegalMove(f"A rule that is {rule.status} does not become {to}.")
    rule.status = to


def suggest(rule: Delegation, actor: Actor, now: datetime) -> None:
    """Keep a new rule that its person may let begin."""
    rule.status, rule.changed_at, rule.expires_at = S.SUGGESTED, now, now + LASTS
    rule.save(force_insert=True)
    _tell(actor, "delegation.suggested", rule)
    if actor == SYSTEM:
        owed.tell_of_rule(owed.SUGGESTED, rule.pk, rule.user_id, now)


def begin(rule: Delegation, actor: Actor, now: datetime, policy: int) -> None:
    """Let a rule speak for its person from now on, in this version.

    ``policy`` is the number of the policy version under which somebody said so, or what was learned
    did: once a later one begins to deny its tool, it speaks no more until it is let go on.
    """
    if rule.status != S.ACTIVE:
        move(rule, S.ACTIVE)
    rule.pause_reason, rule.note = None, ""
    rule.accepted_at = rule.accepted_at or now
    rule.confirmed_under = policy
    rule.changed_at, rule.expires_at = now, now + LASTS
    rule.save()
    _keep_version(rule, actor, now)
    # Which tools have rules is remembered for one authority version.
    authority.raise_authority()
    _tell(actor, "delegation.began", rule)


def begin_new(rule: Delegation, actor: Actor, now: datetime, policy: int) -> None:
    """Keep a new rule that begins at once."""
    rule.status = S.SUGGESTED
    rule.save(force_insert=True)
    begin(rule, actor, now, policy)


def change(rule: Delegation, predicate: Predicate, actor: Actor, now: datetime) -> None:
    """Give a rule its next version; the same predicate again changes nothing but its evidence."""
    digest = predicates.sha256(predicate)
    if digest == rule.sha256:
        rule.save()
        return
    before = rule.predicate
    rule.predicate, rule.sha256 = dict(predicate), digest
    rule.version += 1
    rule.changed_at = now
    rule.save()
    if rule.status == S.SUGGESTED:
        return
    _keep_version(rule, actor, now)
    if rule.status == S.ACTIVE and not _widens_only(before, predicate):
        authority.raise_authority()
    _tell(actor, "delegation.changed", rule)


def _widens_only(before: Predicate, after: Predicate) -> bool:
    try:
        predicates.narrow(after, before)
    except (Widens, Unreadable):
        return False
    return True


def pause(
    rule: Delegation, reason: PauseReason, actor: Actor, now: datetime, note: str = ""
) -> None:
    """Have an active rule sleep; its person is told where it was not their own word."""
    move(rule, S.PAUSED)
    _sleep(rule, reason, actor, now, note)
    authority.raise_authority()


def sleep_on(
    rule: Delegation, reason: PauseReason, actor: Actor, now: datetime, note: str = ""
) -> None:
    """Have a rule that sleeps already sleep for another reason; its person is told of that too."""
    if rule.status != S.PAUSED:
        raise IllegalMove(f"A rule that is {rule.status} does not sleep on.")
    _sleep(rule, reason, actor, now, note)


def _sleep(
    rule: Delegation, reason: PauseReason, actor: Actor, now: datetime, note: str = ""
) -> None:
    rule.pause_reason, rule.note, rule.changed_at, rule.pause = reason, note, now, uuid7()
    rule.save()
    if reason != PauseReason.PERSON:
        owed.tell_of_rule(owed.PAUSED, rule.pause, rule.user_id, now)
    _tell(actor, "delegation.paused", rule, {"reason": reason.value, "note": note})


def end(rule: Delegation, to: DelegationStatus, actor: Actor, now: datetime) -> None:
    """Revoke a rule, or have it expire, for good."""
    was = rule.status
    move(rule, to)
    rule.pause_reason, rule.changed_at = None, now
    rule.revoked_at = now if to == S.REVOKED else None
    rule.save()
    if was == S.ACTIVE:
        authority.raise_authority()
    _tell(actor, f"delegation.{to.value}", rule)


def _keep_version(rule: Delegation, actor: Actor, now: datetime) -> None:
    said = {
        "predicate": rule.predicate,
        "limits": rule.limits,
        "evidence": rule.evidence,
        "sha256": rule.sha256,
        "by": str(actor),
        "at": now,
    }
    DelegationVersion.objects.get_or_create(delegation=rule, version=rule.version, defaults=said)


def _tell(actor: Actor, kind: str, rule: Delegation, more: Mapping[str, Any] | None = None) -> None:
    data = {
        "rule": rule.pk,
        "version": rule.version,
        "person": rule.user_id,
        "tool": rule.tool,
        "tool_version": rule.tool_number,
        "origin": str(rule.origin),
        "sha256": rule.sha256,
        **(more or {}),
    }
    journal.append_to_tenant(actor, Entry(kind, data))
