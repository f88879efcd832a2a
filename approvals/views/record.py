"""The record of a decision: who said what and when, what came of it, and what they were shown."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse

from approvals import records, selectors, waiting
from approvals.models import OPEN_GATES
from approvals.services import decisions
from config.errors import NotFound, Problem
from interrupts.models import OPEN_STEPS
from interrupts.templates import mask
from tenants.views.page import PageView, see_other
from tenants.views.visits import Visit

JUST_NOW_SECONDS: Final = 60


class RecordView(PageView):
    """What was decided, and the receipts as they come."""

    nav: ClassVar[str] = "decided"

    def get(self, visit: Visit, pk: UUID) -> HttpResponse:
        return record_page(self, visit, pk)


class WithdrawView(PageView):
    """Takes the person's own approval back, while nothing of it has started."""

    nav: ClassVar[str] = "decided"

    def get(self, _visit: Visit, pk: UUID, decision: UUID) -> HttpResponse:  # noqa: ARG002
        return see_other(reverse("record", args=[pk]))

    def post(self, visit: Visit, pk: UUID, decision: UUID) -> HttpResponse:
        decisions.withdraw_decision(visit.principal, pk, decision)
        return see_other(reverse("decision", args=[pk]))

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if isinstance(problem, NotFound) or visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        return record_page(self, visit, kwargs["pk"], problem)


class SeenView(PageView):
    """What a person was shown when they decided."""

    nav: ClassVar[str] = "decided"

    def get(self, visit: Visit, pk: UUID, decision: UUID) -> HttpResponse:
        said, view = records.seen(pk, decision)
        gate = said.gate
        version = gate.tool_version
        context = {
            "gate": gate,
            "run": gate.run,
            "agent": gate.run.agent,
            "decision": said,
            "view": view,
            "version": version,
            "facts": view.snapshot if view is not None else None,
            "edits": mask(records.edits(said), version.sensitive) if said.edits else None,
        }
        return self.page(visit, "approvals/seen.html", context)


def record_page(
    view: PageView, visit: Visit, pk: UUID, refusal: Problem | None = None
) -> HttpResponse:
    gate = selectors.gates().get(pk=pk)
    found = records.record(gate)
    now = selectors.database_time()
    own = [one for one in found.decisions if one.user_id == visit.principal.id]
    latest = own[-1] if own else None
    starts_at = records.starts_at(gate.step_id)
    context = {
        "gate": gate,
        "run": gate.run,
        "agent": gate.run.agent,
        "step": gate.step,
        "record": found,
        "handovers": records.handovers(gate),
        "extended": records.extensions(gate),
        "own": latest,
        "just_now": latest is not None and (now - latest.at).total_seconds() < JUST_NOW_SECONDS,
        "starts_at": starts_at if starts_at is not None and starts_at > now else None,
        "can_withdraw": latest is not None
        and decisions.can_withdraw(visit.principal, gate, latest),
        "open": gate.state in OPEN_GATES,
        "moving": gate.step.status in OPEN_STEPS and gate.state not in OPEN_GATES,
        "refusal": refusal,
        "next": waiting.next_waiting(visit.principal.id, gate),
    }
    status = refusal.status if refusal is not None else 200
    return view.page(visit, "approvals/record.html", context, status=status)
