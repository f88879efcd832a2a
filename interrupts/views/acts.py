"""What people do about a run: stop it, answer what holds it, cancel, undo, go on as a new one.

Each is a plain POST that is answered with a 303; opened by its address it leads back to the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.http import HttpResponse

from config import jsontext
from config.errors import InvalidBody, Problem
from interrupts.errors import AlreadyResolved
from interrupts.models import InFlight, Interrupt, Reason, Resolution, Step
from interrupts.services import compensating, forks, holds, responses, runs
from interrupts.services.holds import Asked
from interrupts.views import answers, fields, telling
from interrupts.views.runs import Refused, RunPages, run_of_interrupt, run_page, run_url
from interrupts.watching import people, who
from tenants import idempotency
from tenants.ids import uuid7
from tenants.views.page import see_other
from tenants.views.visits import Visit

MOST_KEY: Final = 200


class OfARun(RunPages):
    """An act on the run that the path names."""

    def get(self, _visit: Visit, pk: UUID) -> HttpResponse:
        return see_other(run_url(pk))


class StopView(OfARun):
    """Holds the run where it is; it can go on, another way or not at all."""

    def post(self, visit: Visit, pk: UUID) -> HttpResponse:
        typed = visit.request.POST
        cancels = typed.get("in_flight") == InFlight.CANCEL
        asked = Asked(
            reason=Reason.OPERATOR_STOP,
            in_flight=InFlight.CANCEL if cancels else InFlight.FINISH,
            note=fields.text(typed, "note").strip() or None,
        )
        row, _ = holds.open_interrupt(visit.principal, pk, asked=asked)
        return see_other(run_url(pk, f"#i-{row.pk}"))


class CancelView(OfARun):
    """Ends the run for good, with what it started."""

    def post(self, visit: Visit, pk: UUID) -> HttpResponse:
        typed = visit.request.POST
        runs.cancel_run(
            visit.principal,
            pk,
            note=fields.text(typed, "note").strip() or None,
            compensate=typed.get("done") == "undo",
        )
        return see_other(run_url(pk))


class ForkView(OfARun):
    """Lets an ended run go on as a new one; the same form sent twice makes one."""

    def post(self, visit: Visit, pk: UUID) -> HttpResponse:
        typed = visit.request.POST
        checkpoint = fields.text(typed, "checkpoint")
        key = fields.text(typed, "answer_key")[:MOST_KEY] or str(uuid7())
        fingerprint = jsontext.canonical({"fork": str(pk), "checkpoint": checkpoint})
        with idempotency.once(str(visit.principal.actor), f"page:{key}", fingerprint) as pending:
            if pending.first is not None:
                return see_other(run_url(UUID(pending.first.body)))
            fork = forks.fork_run(visit.principal, pk, checkpoint=_id(checkpoint))
            idempotency.store_answer_within_transaction(201, {}, str(fork.pk))
        return see_other(run_url(fork.pk))


class UndoView(RunPages):
    """Has one effect undone, also of a run that ended."""

    def get(self, _visit: Visit, pk: UUID) -> HttpResponse:
        return see_other(run_url(_run_of_step(pk)))

    def post(self, visit: Visit, pk: UUID) -> HttpResponse:
        note = fields.text(visit.request.POST, "note").strip() or None
        step = compensating.compensate_step(visit.principal, pk, note=note)
        return see_other(run_url(step.run_id, "#undo"))

    def run_of(self, *, pk: UUID | None = None) -> UUID | None:
        if pk is None:
            return None
        return Step.objects.filter(pk=pk).values_list("run_id", flat=True).first()


class AnswerView(RunPages):
    """Answers an interrupt; what was typed wrong is shown again at its field."""

    def get(self, _visit: Visit, pk: UUID) -> HttpResponse:
        row = Interrupt.objects.get(pk=pk)
        return see_other(run_url(row.run_id, f"#i-{pk}"))

    def post(self, visit: Visit, pk: UUID) -> HttpResponse:
        typed = visit.request.POST
        row = Interrupt.objects.get(pk=pk)
        try:
            resolution = _resolution(typed.get("resolution", ""))
            responses.respond(
                visit.principal,
                pk,
                checkpoint=_id(typed.get("checkpoint", "")),
                resolution=resolution,
                value=answers.value_of(row, resolution, typed),
                note=fields.text(typed, "note").strip() or None,
            )
        except InvalidBody as refusal:
            refused = Refused(pk, typed.get("answer", ""), typed, refusal)
            return run_page(self, visit, row.run_id, refused)
        return see_other(run_url(row.run_id))

    def run_of(self, *, pk: UUID | None = None) -> UUID | None:
        return run_of_interrupt(pk)

    def first_answer(self, problem: Problem, **kwargs: Any) -> Mapping[str, Any] | None:
        if not isinstance(problem, AlreadyResolved):
            return None
        row = Interrupt.objects.select_related("run__agent").get(pk=kwargs["pk"])
        if row.resolved_by is None:
            return None
        return {
            "by": who(row.resolved_by, people([row.resolved_by]), row.run.agent.name),
            "at": row.resolved_at,
            "words": telling.RESOLUTIONS[str(row.resolution)],
            "note": (row.response or {}).get("note"),
        }


def _run_of_step(pk: UUID) -> UUID:
    return Step.objects.values_list("run_id", flat=True).get(pk=pk)


def _resolution(text: str) -> str:
    if text not in Resolution.values:
        raise InvalidBody.at("/resolution", "is not among the allowed resolutions")
    return text


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidBody.at("/checkpoint", "is no checkpoint") from None
