"""What conditions may ask about around a call: the step, the run's usage, the time, the past."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tenants.zones import zone


def step_facts(number: int, key: str | None, *, parallel: bool) -> Mapping[str, Any]:
    """Return ``number`` (its position in the run, from 1), ``parallel``, and ``key`` if it has one.

    What an agent says of its step (confidence, risk, milestone) is not here: by a condition it
    could loosen a verdict, where triggers let it only tighten one.
    """
    found = {"number": number, "parallel": parallel}
    return found if key is None else {**found, "key": key}


def usage_facts(steps: int, tokens: int, cost: Decimal, seconds: Decimal) -> dict[str, Any]:
    """Return what the run has used so far; ``cost`` is a text, exact to the last digit."""
    return {
        "steps": steps,
        "tokens": tokens,
        "cost": f"{Decimal(cost).normalize():f}",
        "seconds": float(seconds),
    }


def time_facts(at: datetime, time_zone: str) -> Mapping[str, Any]:
    """Return the moment ``at`` (RFC 3339, UTC), and what a clock in that zone shows.

    ``date`` is YYYY-MM-DD, ``hour`` 0 to 23, ``minute`` 0 to 59, ``weekday`` 1 (Monday) to 7.
    """
    local = at.astimezone(zone(time_zone))
    return {
        "at": at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "zone": time_zone,
        "date": local.date().isoformat(),
        "hour": local.hour,
        "minute": local.minute,
        "weekday": local.isoweekday(),
    }
