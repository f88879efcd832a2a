"""Whom a gate asks, and what its expiry does, by what policy says of it now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from approvals.models import Gate
from interrupts.authorizer import Judgement

ENDS: Final = ("escalate", "reject", "cancel")  # what expiry does, the strictest last
_OF_ESCALATION: Final = ("escalate_to", "escalate_in")


def take_up(gate: Gate, judgement: Judgement) -> None:
    """Write on the gate who is asked by policy; the stricter end and the longer cool-down stay.

    When it expires does not change: whoever is asked has been told.
    """
    if is_escalated(gate, judgement):
        return
    said = _routing(judgement)
    if gate.on_expiry is not None:
        gate.on_expiry = max(gate.on_expiry, judgement.on_expiry or "reject", key=ENDS.index)
    if gate.on_expiry != "escalate":
        said = {name: value for name, value in said.items() if name not in _OF_ESCALATION}
    if cool_down := max(gate.routing.get("cool_down", 0), said.get("cool_down", 0)):
        said["cool_down"] = cool_down
    gate.approvers, gate.routing = _approvers(judgement), said


def offer(gate: Gate, reasons: Sequence[Mapping[str, Any]]) -> None:
    """Write on the gate the reasons that whoever decides it chooses from."""
    rest = {name: value for name, value in gate.routing.items() if name != "reasons"}
    gate.routing = {**rest, "reasons": list(reasons)} if reasons else rest


def is_escalated(gate: Gate, judgement: Judgement) -> bool:
    """Whether others are asked in the place of those that this judgement names, by its own word.

    A policy that names others by now, or escalates otherwise, is a new question: they are asked.
    """
    return (
        "escalated_from" in gate.routing
        and gate.routing["escalated_from"] == _approvers(judgement)
        and gate.routing.get("escalate_to") == _routing(judgement).get("escalate_to")
    )


def extendable_until(gate: Gate, judgement: Judgement | None = None) -> datetime | None:
    """Return until when people may extend the gate at most; None: no longer than it is.

    That is by what the gate says, or by ``judgement`` where policy says something new. It counts
    from when those were asked who are asked now.
    """
    kept = judgement is None or is_escalated(gate, judgement)
    said = gate.routing if kept or judgement is None else _routing(judgement)
    seconds, asked_at = said.get("extendable_to"), gate.routing.get("asked_at")
    if seconds is None or gate.expires_at is None:
        return None
    since = datetime.fromisoformat(asked_at) if asked_at else gate.opened_at
    latest = since + timedelta(seconds=seconds)
    return latest if latest > gate.expires_at else None


def approvers(gate: Gate, judgement: Judgement | None) -> list[str]:
    """Return the groups of one of which a decider must be, by what policy says now; none: all."""
    if judgement is None or is_escalated(gate, judgement):
        return list(gate.approvers)
    return _approvers(judgement)


def _approvers(judgement: Judgement) -> list[str]:
    return list(judgement.detail.get("approvers") or ())


def _routing(judgement: Judgement) -> dict[str, Any]:
    return dict(judgement.detail.get("routing") or {})
