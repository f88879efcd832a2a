"""Counting what happens seldom, in the commit that does it, so that no figure is lost or invented."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from django.db import connection


class Counted(StrEnum):
    """What is counted of the whole service."""

    TAKEOVERS_FROM_SERVICE = "takeovers_service"  # a worker's lease lapsed, or its read did
    TAKEOVERS_FROM_AGENT = "takeovers_agent"
    WAKES_LOST = "wakes_lost"


def add(counts: Counter[Counted]) -> None:
    """Add to the tallies; the last thing of a transaction, since they are everybody's rows."""
    if not counts:
        return
    names = sorted(counts)  # one order, so that no two wait for each other
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO interrupts_tally AS t (name, value)"
            " SELECT * FROM unnest(%s::text[], %s::bigint[])"
            " ON CONFLICT (name) DO UPDATE SET value = t.value + excluded.value",
            [[name.value for name in names], [counts[name] for name in names]],
        )
