"""Several of low risk on one page: each shown whole, ticked by the person, approved for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, ClassVar, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse, QueryDict
from django.urls import reverse

from approvals import records, selectors, waiting
from approvals.models import Decision
from approvals.services import bulk, decisions
from approvals.services.bulk import Chosen, Reviewed, Told
from approvals.waiting import Waiting
from config.errors import InvalidBody, Problem
from interrupts.models import StepStatus
from tenants import refusals
from tenants.principal import Principal
from tenants.views.page import PageView, reading_only, see_other
from tenants.views.visits import Visit

UNDO_SECONDS: Final = 30
_TOLD: Final = "approved_together"  # in the session: what came of the latest review


class ReviewView(PageView):
    """Several that wait for the person and are of low risk. That they were shown each is kept."""

    nav: ClassVar[str] = "inbox"
    records_views: ClassVar[bool] = True

    def get(self, visit: Visit) -> HttpResponse:
        return review_page(self, visit)

    def post(self, visit: Visit) -> HttpResponse:
        chosen = _chosen(visit.request.POST)
        told = bulk.approve_together(visit.principal, chosen, hold_seconds=UNDO_SECONDS)
        for one in told:
            if one.problem is not None:
                refusals.tell(visit.principal, visit.request, one.problem, one.gate)
        visit.request.session[_TOLD] = {
            "tenant": str(visit.tenant.pk),
            "told": [_kept(one) for one in told],
        }
        return see_other(reverse("reviewed"))

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if not isinstance(problem, InvalidBody) or visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        return review_page(self, visit, problem)


class ReviewedView(PageView):
    """What came of the latest review: each as it is now, with its undo while it can be undone."""

    nav: ClassVar[str] = "inbox"

    def get(self, visit: Visit) -> HttpResponse:
        kept = visit.request.session.get(_TOLD)
        if kept is None or kept["tenant"] != str(visit.tenant.pk):
            return see_other(reverse("review"))
        rows = _rows(visit.principal, kept["told"])
        context = {
            "done": [one for one in rows if one.own is not None],
            "refused": [one for one in rows if one.own is None],
            "more": waiting.count_fit_for_bulk(visit.principal.id),
        }
        return self.page(visit, "approvals/reviewed.html", context)


def _chosen(sent: QueryDict) -> list[Chosen]:
    """Read what was ticked, each with the digest of what was shown. Raises InvalidBody."""
    ticked = sent.getlist("gate")
    if not ticked:
        raise InvalidBody.at("/gate", "Tick what you approve.")
    try:
        gates = [UUID(one) for one in ticked]
    except ValueError:
        raise InvalidBody.at("/gate", "This is none of what was shown.") from None
    return [Chosen(gate, sent.get(f"digest-{gate}", "")) for gate in gates]


def _kept(one: Told) -> Mapping[str, str]:
    says = {} if one.problem is None else {"says": one.problem.detail}
    return {"gate": str(one.gate), **says}


def review_page(view: PageView, visit: Visit, refusal: Problem | None = None) -> HttpResponse:
    """Show what can be approved together, by tool, with nothing ticked."""
    asked = visit.request.GET
    found = waiting.fit_for_bulk(visit.principal.id, waiting.edge(asked.get("after", "")))
    listed = bulk.review(visit.principal, [row.gate.pk for row in found.rows])
    context = {
        "tools": _by_tool(listed),
        "number": len(listed),
        "later": "after" in asked,
        "here": urlencode({"after": asked["after"]}) if "after" in asked else "",
        "onward": _onward(found, listed),
        "refusal": refusal,
        "undo_seconds": UNDO_SECONDS,
    }
    status = refusal.status if refusal is not None else 200
    with reading_only():
        return view.page(visit, "approvals/review.html", context, status=status)


def _by_tool(listed: Sequence[Reviewed]) -> list[tuple[str, list[Reviewed]]]:
    def tool(one: Reviewed) -> str:
        return str(one.facts["what"]["tool"])

    return [(name, list(group)) for name, group in groupby(sorted(listed, key=tool), tool)]


def _onward(found: Waiting, listed: Sequence[Reviewed]) -> str | None:
    """Return the query of the next page: after the last that is shown, where any is left out."""
    last = listed[-1].shown.gate.pk if listed else None
    left = next((row.gate for row in reversed(found.rows) if row.gate.pk == last), None)
    edge = waiting.edge_after(left) if left and left != found.rows[-1].gate else found.onward
    return urlencode({"after": edge}) if edge else None


@dataclass(frozen=True, slots=True)
class _Row:
    """One that was ticked: the person's approval of it, or why there is none."""

    gate: UUID
    headline: str | None
    says: str
    own: Decision | None = None
    can_withdraw: bool = False
    starts_at: datetime | None = None


def _rows(principal: Principal, told: Sequence[Mapping[str, str]]) -> list[_Row]:
    gates = [UUID(one["gate"]) for one in told]
    headlines = records.headlines(gates)
    approvals = records.latest_approvals(gates, principal.id)
    now = selectors.database_time()
    rows = []
    for gate, one in zip(gates, told, strict=True):
        refused = "says" in one
        own = None if refused else approvals.get(gate)
        row = _Row(gate, headlines.get(gate), one.get("says", ""))
        rows.append(row if own is None else _approved(row, own, principal, now))
    return rows


def _approved(row: _Row, own: Decision, principal: Principal, now: datetime) -> _Row:
    step = own.gate.step
    held = step.status == StepStatus.READY and step.attempts == 0 and step.due_at is not None
    return _Row(
        row.gate,
        row.headline,
        row.says,
        own,
        decisions.can_withdraw(principal, own.gate, own),
        step.due_at if held and step.due_at and step.due_at > now else None,
    )
