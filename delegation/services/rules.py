"""What people do with rules: accept, pause, revoke, narrow, dismiss, make by hand, ask again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from delegation.models import Delegation, DelegationTemplate
from tenants.principal import Principal


def accept(
    principal: Principal, delegation_id: UUID, *, limits: Mapping[str, Any] | None = None
) -> Delegation:
    """Let a suggestion begin, or a rule that its person paused go on; again it changes nothing.

    ``limits``: ``{"per_day": {"calls": 5, "sum": {"amount": "120"}}}``, no wider than the rule's.
    Raises Delegation.DoesNotExist, Forbidden (another person's), NotNarrower, AlreadyRevoked.
    """
    raise NotImplementedError


def pause(principal: Principal, delegation_id: UUID, note: str = "") -> Delegation:
    """Have a rule sleep; its person's or an admin's to say. Again it changes nothing.

    Raises Delegation.DoesNotExist, Forbidden, AlreadyRevoked.
    """
    raise NotImplementedError


def revoke(principal: Principal, delegation_id: UUID) -> Delegation:
    """End a rule for good; its person's or an admin's to say. Again it changes nothing.

    Raises Delegation.DoesNotExist, Forbidden, AlreadyRevoked (where it expired).
    """
    raise NotImplementedError


def tighten(principal: Principal, delegation_id: UUID, change: Mapping[str, Any]) -> Delegation:
    """Narrow a rule: ``change`` has the predicate's members that take the place of its own.

    Raises Delegation.DoesNotExist, Forbidden, NotNarrower (with a pointer), AlreadyRevoked.
    """
    raise NotImplementedError


def dismiss(principal: Principal, delegation_id: UUID) -> Delegation:
    """Take a suggestion away for good. Raises Delegation.DoesNotExist, Forbidden, NotSuggested."""
    raise NotImplementedError


def propose_by_hand(
    principal: Principal,
    tool: str,
    predicate: Mapping[str, Any],
    limits: Mapping[str, Any] | None = None,
) -> Delegation:
    """Make a rule of one's own, as a suggestion with its back-test that is accepted like others.

    Raises InvalidBody (no such tool, no predicate), NotDelegable.
    """
    raise NotImplementedError


def ask_everything(principal: Principal, *, wanted: bool = True) -> None:
    """Have every rule of the person's sleep, or wake them again; again it changes nothing."""
    raise NotImplementedError


def publish_template(
    principal: Principal,
    tool: str,
    predicate: Mapping[str, Any],
    limits: Mapping[str, Any] | None = None,
) -> DelegationTemplate:
    """Offer a rule to everybody who may decide the tool; admins only, and it skips nobody's proof.

    Raises Forbidden, InvalidBody (no such tool, no predicate), NotDelegable.
    """
    raise NotImplementedError


def withdraw_template(principal: Principal, template_id: UUID) -> DelegationTemplate:
    """Offer it no more; what people took up stays theirs. Admins only. Raises Forbidden."""
    raise NotImplementedError
