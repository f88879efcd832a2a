"""Waiting for you, and decided by you."""

from __future__ import annotations

from typing import ClassVar, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from approvals import waiting
from approvals.waiting import Wanted
from interrupts.models import Effect, Risk, Suspension
from tenants.views.page import PageView
from tenants.views.visits import Visit

_RISKS: Final = (*Risk.values, Effect.IRREVERSIBLE.value)
# The counters in the order of the pages' own table, the calmest state first.
_STATES: Final = tuple(reversed(Suspension.values))


class InboxView(PageView):
    """What waits for the person, and how much of it."""

    nav: ClassVar[str] = "inbox"

    def get(self, visit: Visit) -> HttpResponse:
        asked = visit.request.GET
        wanted = _wanted(visit.request)
        user_id = visit.principal.id
        found = waiting.waiting(user_id, wanted, waiting.edge(asked.get("after", "")))
        counts = waiting.counts(user_id)
        context = {
            "found": found,
            "counts": counts,
            "states": [(name, counts.runs.get(name, 0)) for name in _STATES],
            "wanted": wanted,
            "later": "after" in asked,
            "onward": _query(visit.request, after=str(found.onward)) if found.onward else None,
            "choices": waiting.choices(),
            "risks": _RISKS,
            "together": waiting.count_fit_for_bulk(user_id),
        }
        return self.page(visit, "approvals/inbox.html", context)


class DecidedView(PageView):
    """What the person decided, the latest first."""

    nav: ClassVar[str] = "decided"

    def get(self, visit: Visit) -> HttpResponse:
        before = visit.request.GET.get("before", "")
        rows, onward = waiting.decided(visit.principal.id, _id(before))
        context = {
            "rows": rows,
            "later": bool(before),
            "onward": urlencode({"before": onward}) if onward else None,
        }
        return self.page(visit, "approvals/decided_by_you.html", context)


def _wanted(request: HttpRequest) -> Wanted:
    asked = request.GET
    risk, state = asked.get("risk", ""), asked.get("state", "")
    return Wanted(
        agent=_plain(asked.get("agent", "")),
        tool=_plain(asked.get("tool", "")),
        risk=risk if risk in _RISKS else "",
        state=state if state in Suspension.values else "",
        text=_plain(asked.get("q", "")).strip(),
    )


def _plain(text: str) -> str:
    """Return a text that the database can be asked for: no NUL, and not long."""
    return text.replace("\0", "")[:200]


def _query(request: HttpRequest, **more: str) -> str:
    return urlencode({**request.GET.dict(), **more})


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
