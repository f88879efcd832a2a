"""What people do with rules: accept, pause, revoke, narrow, dismiss, make by hand, ask again.

Each is one transaction: the rule locked, who may, what it is now, then the change and its entry in
the tenant's journal. What takes something from a rule has answered only when no intent is open that
may not have seen it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from approvals import judging
from config.errors import Forbidden, PeopleOnly
from delegation import drafts, locks, predicates
from delegation.beside import modes_now
from delegation.errors import (
    AlreadyRevoked,
    NotDelegable,
    NotSuggested,
    RuleChanged,
    TooManyRules,
)
from delegation.models import (
    OPEN_RULES,
    Delegation,
    DelegationPreference,
    DelegationStatus,
    DelegationTemplate,
    Origin,
    PauseReason,
)
from delegation.modes import Mode
from delegation.services.learning import backtest_of
from delegation.studying import settings_of
from delegation.transitions import rules as transitions
from interrupts.models import Tool
from interrupts.services.acting import role_now
from tenants import authority, idempotency, journal
from tenants.clock import database_now
from tenants.journal import Entry
from tenants.models import Role
from tenants.principal import Principal

S = DelegationStatus
ENDED: Final = frozenset({S.REVOKED, S.EXPIRED})
MOST_ACTIVE: Final = 50  # rules of a person for one version of a tool
MAX_NOTE: Final = 1_000  # characters
MOST_RULES: Final = 20  # of a person and a tool that have not ended, before one more by hand
MOST_TEMPLATES: Final = 20  # of a tool, that are offered
NOT_YOURS: Final = "Only the person whom a rule speaks for does this."
NOT_SHOWN: Final = "A rule is shown to the person it speaks for, and to admins."


def accept(
    principal: Principal,
    delegation_id: UUID,
    *,
    limits: Mapping[str, Any] | None = None,
    version: int | None = None,
) -> Delegation:
    """Let a suggestion begin, or a rule that sleeps go on; one that is active stays as it is.

    ``limits``: ``{"per_day": {"calls": 5, "sum": {"amount": "120"}}}``, no wider than the rule's;
    ``version`` is the one that was read. From then on it is its person's own, and learning changes
    nothing of it. Raises Delegation.DoesNotExist, PeopleOnly, Forbidden (another person's, or an
    admin's pause), AlreadyRevoked, RuleChanged, NotDelegable, TooManyRules, NotNarrower.
    """
    _check_person(principal)
    with _transaction():
        # Whoever accepts another of theirs at once is counted, or waits to count this one.
        locks.lock_learner(principal.id)
        rule = _own(principal, delegation_id)
        if rule.status == S.ACTIVE:
            return rule
        _check_version(rule, version)
        if rule.pause_reason == PauseReason.ADMIN and not _is_admin(principal):
            raise Forbidden("An admin had it sleep: only an admin lets it go on.")
        if modes_now().of(rule.risk) is Mode.OFF:
            raise NotDelegable("The policy delegates nothing of this risk.")
        if not _is_in_force(rule):
            raise NotDelegable("Its tool is retired, or has a newer version: no call is like it.")
        _check_active(rule)
        now = database_now()
        if limits:
            _narrow(rule, limits, "")
            rule.limits = dict(limits)
        if rule.origin == Origin.LEARNED:
            rule.origin = Origin.PERSON
        transitions.begin(rule, principal.actor, now, judging.number_now())
    return rule


def pause(principal: Principal, delegation_id: UUID, note: str = "") -> Delegation:
    """Have an active rule sleep; its person's or an admin's to say. Again it changes nothing.

    Raises Delegation.DoesNotExist, PeopleOnly, Forbidden, AlreadyRevoked, NotSuggested (a
    suggestion does not speak yet).
    """
    with _transaction():
        rule, own = _own_or_admins(principal, delegation_id)
        _check_lives(rule)
        if rule.status == S.SUGGESTED:
            raise NotSuggested("It has not begun.")
        if rule.status == S.ACTIVE:
            reason = PauseReason.PERSON if own else PauseReason.ADMIN
            transitions.pause(rule, reason, principal.actor, database_now(), note)
    return rule


def revoke(principal: Principal, delegation_id: UUID) -> Delegation:
    """End a rule for good; its person's or an admin's to say. Again it changes nothing.

    Raises Delegation.DoesNotExist, PeopleOnly, Forbidden, AlreadyRevoked (where it expired).
    """
    with _transaction():
        rule, _ = _own_or_admins(principal, delegation_id)
        if rule.status == S.REVOKED:
            return rule
        _check_lives(rule)
        transitions.end(rule, S.REVOKED, principal.actor, database_now())
    return rule


def tighten(
    principal: Principal,
    delegation_id: UUID,
    change: Mapping[str, Any],
    *,
    version: int | None = None,
) -> Delegation:
    """Narrow a rule: ``change`` has the predicate's members that take the place of its own.

    What was learned is its person's own from then on. Raises Delegation.DoesNotExist, PeopleOnly,
    Forbidden, AlreadyRevoked, RuleChanged, NotNarrower and InvalidBody (with a pointer).
    """
    with _transaction():
        rule = _own(principal, delegation_id)
        _check_version(rule, version)
        before = rule.predicate
        narrowed = drafts.narrowed(rule.predicate, change, "/change")
        if predicates.sha256(narrowed) == rule.sha256:
            return rule
        rule.narrowed_from = rule.narrowed_from or before
        if rule.origin == Origin.LEARNED:
            rule.origin = Origin.PERSON
        if "per_day" in change:
            rule.limits = {"per_day": narrowed["per_day"]}
        rule.backtest = backtest_of(rule.user_id, rule.tool, rule.tool_number, narrowed)
        transitions.change(rule, narrowed, principal.actor, database_now())
    return rule


def dismiss(principal: Principal, delegation_id: UUID) -> Delegation:
    """Take a suggestion away for good; again it changes nothing.

    Raises Delegation.DoesNotExist, PeopleOnly, Forbidden, NotSuggested.
    """
    with _transaction():
        rule = _own(principal, delegation_id, ended=True)
        if rule.dismissed_at is not None:
            return rule
        if rule.status != S.SUGGESTED:
            raise NotSuggested
        rule.dismissed_at = now = database_now()
        transitions.end(rule, S.REVOKED, principal.actor, now)
    return rule


def propose_by_hand(
    principal: Principal,
    tool: str,
    predicate: Mapping[str, Any],
    limits: Mapping[str, Any] | None = None,
) -> Delegation:
    """Make a rule of one's own, as a suggestion with its back-test that is accepted like others.

    Raises PeopleOnly, InvalidBody (no such tool, no predicate of it), NotDelegable, TooManyRules.
    """
    _check_person(principal)
    with _transaction():
        role_now(principal)
        found = drafts.learned_tool(tool)
        _check_room(principal.id, found.id)
        made = Delegation(
            user_id=principal.id,
            tool=UUID(found.id),
            tool_number=found.version,
            origin=Origin.PERSON,
            risk=found.risk,
            predicate=drafts.checked(found, predicate),
            limits=dict(limits or {}),
            check_share=settings_of(modes_now()).stages[found.risk][0].check,
        )
        made.sha256 = predicates.sha256(made.predicate)
        if limits:
            _narrow(made, limits, "/limits")
        made.backtest = backtest_of(made.user_id, found.id, found.version, made.predicate)
        transitions.suggest(made, principal.actor, database_now())
    return made


def ask_everything(principal: Principal, *, wanted: bool = True) -> None:
    """Have every rule of the person's sleep, or wake them again; again it changes nothing."""
    _check_person(principal)
    with _transaction():
        rows = DelegationPreference.objects
        rows.bulk_create([DelegationPreference(user_id=principal.id)], ignore_conflicts=True)
        row = rows.select_for_update().get(user=principal.id)
        if (row.asks_everything_since is not None) == wanted:
            return
        row.asks_everything_since = database_now() if wanted else None
        row.save(update_fields=["asks_everything_since"])
        authority.raise_authority()
        entry = Entry("delegation.ask_everything", {"person": principal.id, "wanted": wanted})
        journal.append_to_tenant(principal.actor, entry)


def publish_template(
    principal: Principal,
    tool: str,
    predicate: Mapping[str, Any],
    limits: Mapping[str, Any] | None = None,
) -> DelegationTemplate:
    """Offer a rule to everybody who decides calls of the tool; it skips nobody's proof.

    Admins only. Raises PeopleOnly, Forbidden, InvalidBody (no such tool, no predicate of it),
    NotDelegable, TooManyRules.
    """
    _check_person(principal)
    with _transaction():
        if role_now(principal) != Role.ADMIN:
            raise Forbidden("Admins publish templates.")
        found = drafts.learned_tool(tool)
        checked = drafts.checked(found, predicate)
        _check_room_for_template(found.id)
        made = DelegationTemplate.objects.create(
            tool=UUID(found.id),
            tool_number=found.version,
            risk=found.risk,
            predicate=checked,
            limits=dict(limits or {}),
            sha256=predicates.sha256(checked),
            published_by_id=principal.id,
        )
        data = {"template": made.pk, "tool": found.id, "sha256": made.sha256}
        journal.append_to_tenant(principal.actor, Entry("delegation.template_published", data))
    return made


def withdraw_template(principal: Principal, template_id: UUID) -> DelegationTemplate:
    """Offer it no more; what people took up stays theirs. Admins only; again it changes nothing.

    Raises PeopleOnly, Forbidden, DelegationTemplate.DoesNotExist.
    """
    _check_person(principal)
    with _transaction():
        if role_now(principal) != Role.ADMIN:
            raise Forbidden("Admins withdraw templates.")
        made = DelegationTemplate.objects.select_for_update().get(pk=template_id)
        if made.withdrawn_at is None:
            made.withdrawn_at = database_now()
            made.save(update_fields=["withdrawn_at"])
            data = {"template": made.pk, "tool": made.tool}
            journal.append_to_tenant(principal.actor, Entry("delegation.template_withdrawn", data))
    return made


def _transaction() -> transaction.Atomic:
    return transaction.atomic(durable=not idempotency.holds_transaction())


def _check_person(principal: Principal) -> None:
    if not principal.is_person:
        raise PeopleOnly


def admit(principal: Principal, rule: Delegation) -> None:
    """Raise Forbidden where a rule is neither the caller's nor the caller an admin."""
    if rule.user_id != principal.id and principal.role != Role.ADMIN:
        raise Forbidden(NOT_SHOWN)


def _is_admin(principal: Principal) -> bool:
    return role_now(principal) == Role.ADMIN


def _own(principal: Principal, delegation_id: UUID, *, ended: bool = False) -> Delegation:
    """Lock and return a rule of the caller's own that has not ended."""
    _check_person(principal)
    role_now(principal)
    rule = locks.lock_rule(delegation_id)
    if rule.user_id != principal.id:
        raise Forbidden(NOT_YOURS)
    if not ended:
        _check_lives(rule)
    return rule


def _own_or_admins(principal: Principal, delegation_id: UUID) -> tuple[Delegation, bool]:
    """Lock and return a rule, and whether it is the caller's own; admins may look after others'."""
    _check_person(principal)
    is_admin = _is_admin(principal)
    rule = locks.lock_rule(delegation_id)
    own = rule.user_id == principal.id
    if not own and not is_admin:
        raise Forbidden(NOT_YOURS)
    return rule, own


def _check_room(user_id: UUID, tool: str) -> None:
    """See that the person may have one more rule of the tool: all are read at each of its calls.

    Held until the end of the transaction, so that whoever asks at once is counted.
    """
    locks.lock_learner(user_id)
    own = Delegation.objects.filter(user=user_id, tool=tool, status__in=sorted(OPEN_RULES))
    if own.count() >= MOST_RULES:
        told = f"You have {MOST_RULES} rules of this tool: revoke one that is needed no more."
        raise TooManyRules.at("/tool", told)


def _check_room_for_template(tool: str) -> None:
    locks.lock_stream()
    offered = DelegationTemplate.objects.filter(tool=tool, withdrawn_at=None)
    if offered.count() >= MOST_TEMPLATES:
        told = f"There are {MOST_TEMPLATES} templates of this tool: withdraw one of them."
        raise TooManyRules.at("/tool", told)


def _is_in_force(rule: Delegation) -> bool:
    """Say whether calls are still proposed of the tool's version that a rule speaks of."""
    tools = Tool.objects.filter(pk=rule.tool, retired_at=None, current__number=rule.tool_number)
    return tools.exists()


def _check_active(rule: Delegation) -> None:
    """Refuse more rules of a person for a tool's version than are read to decide one call."""
    alike = {"tool": rule.tool, "tool_number": rule.tool_number, "status": S.ACTIVE}
    if Delegation.objects.filter(user=rule.user_id, **alike).count() >= MOST_ACTIVE:
        raise TooManyRules(f"{MOST_ACTIVE} of your rules speak for this tool already.")


def _check_lives(rule: Delegation) -> None:
    if rule.status in ENDED:
        raise AlreadyRevoked(f"The rule is {rule.status}.")


def _check_version(rule: Delegation, version: int | None) -> None:
    if version is not None and version != rule.version:
        raise RuleChanged(f"It is at version {rule.version}.")


def _narrow(rule: Delegation, change: Mapping[str, Any], at: str) -> None:
    """Put narrower members in the place of a rule's own; it becomes its next version."""
    before = rule.predicate
    narrowed = drafts.narrowed(before, change, at)
    if predicates.sha256(narrowed) != rule.sha256:
        rule.narrowed_from = rule.narrowed_from or before
        rule.predicate, rule.sha256 = narrowed, predicates.sha256(narrowed)
        rule.version += 1
