"""What the API shows of a rule and of what ran under it."""

from __future__ import annotations

from typing import Any

from delegation.selectors import Backtest, Card, Condition, Example
from delegation.uses import Used
from tenants.api.answers import instant

Shown = dict[str, Any]


def rule(card: Card) -> Shown:
    """Show a rule to whom it speaks for, or to an admin."""
    row = card.delegation
    return {
        "id": row.pk,
        "person": card.person,
        "status": row.status,
        "origin": row.origin,
        "version": row.version,
        "tool": card.tool,
        "tool_version": row.tool_number,
        "risk": row.risk,
        "conditions": [_condition(one) for one in card.sentence],
        "exceptions": list(card.pairs),
        "ceilings": list(card.ceilings),
        "predicate": row.predicate,
        "evidence": row.evidence,
        "examples": [_example(one) for one in card.examples],
        "still_asks": _still_asks(card),
        "backtest": _backtest(card.backtest),
        "used_today": {
            "calls": card.used_today.calls,
            "calls_limit": card.used_today.calls_limit,
            "sums": dict(card.used_today.sums),
            "sum_limits": dict(card.used_today.sum_limits),
        },
        "uses": card.uses,
        "last_used_at": instant(card.last_use),
        "check_share": row.check_share,
        "checks": {
            "answered": card.checks,
            "refused": card.checks_refused,
            "last_at": instant(card.last_check),
        },
        "pause_reason": row.pause_reason,
        "note": row.note,
        "created_at": instant(row.created_at),
        "accepted_at": instant(row.accepted_at),
        "expires_at": instant(row.expires_at),
        "revoked_at": instant(row.revoked_at),
        "sha256": row.sha256,
    }


def _condition(one: Condition) -> Shown:
    return {
        "field": one.field,
        "words": one.words,
        "values": list(one.values),
        "at_most": one.ceiling,
    }


def _example(one: Example) -> Shown:
    return {
        "gate": one.gate,
        "arguments": dict(one.arguments),
        "verdict": one.verdict,
        "at": instant(one.at),
    }


def _still_asks(card: Card) -> Shown | None:
    if card.still_asks is None:
        return None
    found = _example(card.still_asks)
    del found["verdict"]
    return {**found, "why": card.still_asks_why}


def _backtest(found: Backtest | None) -> Shown | None:
    if found is None:
        return None
    return {"allowed": found.allowed, "refused": found.refused, "asked": found.asked}


def use(one: Used) -> Shown:
    return {
        "id": one.use,
        "version": one.version,
        "step": one.step,
        "run": one.run,
        "gate": one.gate,
        "headline": one.headline,
        "status": one.status,
        "at": instant(one.at),
    }
