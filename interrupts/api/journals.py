"""Journals: a page of a run's entries, and streams of a run's or the tenant's as they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from interrupts import selectors
from interrupts.api import rendering, shapes
from interrupts.api.access import seen_run
from interrupts.api.runs import NOT_YOUR_RUN
from interrupts.models import Run
from interrupts.selectors import EntryShown
from tenants.api.answers import answer
from tenants.api.checks import Schema
from tenants.api.http import integer
from tenants.api.operation import operation
from tenants.api.pagination import PAGE, page_schema
from tenants.api.view import ApiCall, TenantView
from tenants.errors import InvalidHeader
from tenants.idempotency import Answer

EVENT_STREAM: Final = "text/event-stream"
EVENTS_AT_ONCE: Final = 200
AFTER_QUERY: Final[dict[str, Schema]] = {
    "after": {
        "type": "integer",
        "minimum": 0,
        "description": "The sequence number of the last entry already known.",
    }
}
OF_A_STREAM: Final = (
    "Server-Sent Events (`text/event-stream`): `id` is the entry's sequence number, `event` its"
    " kind, `data` the entry. Goes on after `Last-Event-ID`, or after `after`."
)


class JournalView(TenantView):
    subject = Run

    @operation(
        "Read a run's journal",
        query=AFTER_QUERY,
        answers={200: page_schema(shapes.ENTRY)},
        refusals=NOT_YOUR_RUN,
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        seen_run(call.principal, pk)
        after = integer(call.request, "after") or 0
        found = selectors.entries(pk, after=after, limit=PAGE + 1)
        shown = found[:PAGE]
        following = shown[-1].seq if len(found) > PAGE else None
        links = answer(
            {"next": _link(call, following), "previous": _link(call, _before(after, shown))}
        )
        # The entries are spliced in as the very text that was hashed.
        results = rendering.entries(shown, call.principal)
        return links._replace(body=f'{{"results":[{results}],{links.body[1:]}')


def _before(after: int, shown: Sequence[EntryShown]) -> int | None:
    """Return what the page before begins after, None for the first page."""
    return max(0, min(after, shown[0].seq - 1 if shown else after) - PAGE) if after else None


def _link(call: ApiCall, after: int | None) -> str | None:
    if after is None:
        return None
    request = call.request
    return request.build_absolute_uri(f"{request.path}?{urlencode({'after': after})}")


class StreamView(TenantView):
    """A path whose answers are batches of events; the front joins them to one stream."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        sent = super().dispatch(request, *args, **kwargs)
        if sent.status_code == 200:
            sent.headers["Content-Type"] = f"{EVENT_STREAM}; charset=utf-8"
            sent.headers["Cache-Control"] = "no-store"
        return sent


def events_after(call: ApiCall) -> int:
    """Return the sequence number after which the caller wants events: the header's, or the query's.

    Raises InvalidHeader where Last-Event-ID is no sequence number.
    """
    last = call.request.META.get("HTTP_LAST_EVENT_ID", "")
    if not last:
        return integer(call.request, "after") or 0
    if not (last.isascii() and last.isdecimal() and len(last) <= 18):
        raise InvalidHeader("Last-Event-ID is the sequence number of an entry.")
    return int(last)


def stream_answer(
    call: ApiCall, channel: str, found: Sequence[EntryShown], after: int, *, ends: bool = False
) -> Answer:
    """Answer with a batch of events, telling the front what the stream goes on with."""
    told = {
        "X-Abeyance-Stream": channel,
        "X-Abeyance-Version": str(found[-1].seq if found else after),
        **({"X-Abeyance-Stream-End": "true"} if ends else {}),
    }
    return Answer(200, told, rendering.events(found, call.principal))


class RunEventsView(StreamView):
    subject = Run

    @operation(
        "Follow a run's journal",
        description=f"{OF_A_STREAM} Ends once the run has ended; then asked again: 204.",
        query=AFTER_QUERY,
        answers={200: None, 204: None},
        refusals=NOT_YOUR_RUN,
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        run = seen_run(call.principal, pk)
        after = events_after(call)
        found = selectors.entries(pk, after=after, limit=EVENTS_AT_ONCE)
        told_all = (found[-1].seq if found else after) >= run.journal_seq
        ends = run.ended and told_all
        if ends and not found:
            return Answer(204, {}, "")  # so that an EventSource does not connect again
        return stream_answer(call, f"run:{pk}", found, after, ends=ends)


class EventsView(StreamView):
    @operation(
        "Follow the tenant's journal",
        description=f"Policy, authority, keys, tools, freezes, delegations. {OF_A_STREAM}",
        who="people",
        query=AFTER_QUERY,
        answers={200: None},
        refusals={"people-only": 403},
    )
    def get(self, call: ApiCall) -> Answer:
        tenant = call.principal.tenant_id
        after = events_after(call)
        found = selectors.entries(tenant, after=after, limit=EVENTS_AT_ONCE)
        return stream_answer(call, f"tenant:{tenant}", found, after)
