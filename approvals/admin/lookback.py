"""Pages that look back: what agents state against what people decided, and rules that ask in vain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest

from approvals.hindsight import (
    LEAST_DECIDED,
    LOOKED_BACK,
    Band,
    Counts,
    Proportion,
    RuleAsked,
    Window,
    read_calibration,
    read_overgating,
)
from tenants.clock import database_now

DAYS: Final = (7, 30, LOOKED_BACK.days, 365)
_MOST_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """A proportion as it is drawn: in hundredths of the width, to one place."""

    rate: str
    lower: str
    width: str
    told: str


@dataclass(frozen=True, slots=True)
class BandRow:
    """A band as its row shows it."""

    name: str
    counts: Counts
    stated: str
    approved: str
    gap: str
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule as its row shows it."""

    rule: RuleAsked
    bar: Bar | None


def calibration(request: HttpRequest) -> dict[str, Any]:
    """Return what the page of scores and stated confidence shows of the window that is asked for."""
    found = read_calibration(_window(request, request.GET.get("tool"), request.GET.get("workflow")))
    return {
        "title": "Calibration",
        "found": found,
        "days": _days(request),
        "choices": DAYS,
        "error": _percent(found.error),
        "parts": [
            ("Stated confidence", "confidence", _rows(found.confidence), True),
            ("Score of the service", "score", _rows(found.score), False),
            ("Stated risk", "risk", _rows(found.risk_score), False),
        ],
    }


def overgating(request: HttpRequest) -> dict[str, Any]:
    """Return what the page of rules that ask shows of the window that is asked for."""
    found = read_overgating(_window(request), _number(request, "minimum", LEAST_DECIDED))
    rows = [RuleRow(one, _bar(one.refusal)) for one in found.rules]
    return {
        "title": "Rules that ask in vain",
        "found": found,
        "days": _days(request),
        "choices": DAYS,
        "rows": rows,
        "in_vain": sum(one.rule.in_vain for one in rows),
    }


def _window(request: HttpRequest, tool: str | None = None, workflow: str | None = None) -> Window:
    return Window(
        database_now() - timedelta(days=_days(request)),
        _text(tool) or None,
        _text(workflow) or None,
    )


def _text(given: str | None) -> str:
    return (given or "").replace("\x00", "").strip()


def _days(request: HttpRequest) -> int:
    days = _number(request, "days", LOOKED_BACK.days)
    return days if days in DAYS else LOOKED_BACK.days


def _number(request: HttpRequest, name: str, absent: int) -> int:
    """Return a number from 1 on; what is none, as where it is absent."""
    raw = request.GET.get(name, "")
    is_number = raw.isascii() and raw.isdecimal() and len(raw) <= _MOST_DIGITS
    return int(raw) if is_number and int(raw) else absent


def _rows(bands: Sequence[Band]) -> list[BandRow]:
    return [
        BandRow(
            name="none" if band.low is None else f"{band.low:.1f} to {band.high:.1f}",
            counts=band.counts,
            stated="—" if band.stated is None else f"{band.stated:.2f}",
            approved=_percent(band.approved_as_proposed),
            gap="—" if band.gap is None else f"{band.gap:+.2f}",
            bar=_bar(band.refusal),
        )
        for band in bands
    ]


def _bar(found: Proportion | None) -> Bar | None:
    if found is None:
        return None
    rate, lower, upper = (100 * share for share in found)
    return Bar(
        rate=f"{rate:.1f}",
        lower=f"{lower:.1f}",
        width=f"{upper - lower:.1f}",
        told=f"{rate:.0f} % ({lower:.0f} to {upper:.0f} %)",
    )


def _percent(share: float | None) -> str:
    return "—" if share is None else f"{100 * share:.0f} %"
