"""Calibration and overgating as the API shows them: shares to four places, seconds to three."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from approvals.hindsight import Band, Calibration, Overgating, Proportion, RuleAsked
from tenants.api.answers import instant

Shown = dict[str, Any]


def calibration(found: Calibration) -> Shown:
    return {
        "since": instant(found.window.since),
        "tool": found.window.tool,
        "workflow": found.window.workflow,
        "considered": found.considered,
        "more": found.more,
        "decided": found.decided,
        "calibration_error": _share(found.error),
        "score": [_band(band) for band in found.score],
        "risk_score": [_band(band) for band in found.risk_score],
        "confidence": [{**_band(band), "gap": _share(band.gap)} for band in found.confidence],
    }


def _band(band: Band) -> Shown:
    return {
        "from": band.low,
        "to": band.high,
        **asdict(band.counts),
        "stated": _share(band.stated),
        "as_proposed_rate": _share(band.approved_as_proposed),
        "refusal": _proportion(band.refusal),
    }


def overgating(found: Overgating) -> Shown:
    return {
        "since": instant(found.window.since),
        "considered": found.considered,
        "more": found.more,
        "policy_version": found.policy_version,
        "minimum": found.least,
        "rules": [_rule(rule) for rule in found.rules],
    }


def _rule(rule: RuleAsked) -> Shown:
    return {
        "rule": rule.rule,
        "since_version": rule.version,
        "asked": rule.asked,
        "alone": rule.alone,
        **asdict(rule.counts),
        "reasons": [{"code": code, "times": times} for code, times in rule.reasons.items()],
        "median_seconds": None if rule.seconds is None else round(rule.seconds, 3),
        "refusal": _proportion(rule.refusal),
        "in_vain": rule.in_vain,
        "meaning": rule.meaning,
    }


def _proportion(found: Proportion | None) -> Shown | None:
    if found is None:
        return None
    return {name: _share(value) for name, value in found._asdict().items()}


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
