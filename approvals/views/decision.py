"""The decision page: what would happen, what could go wrong, why, and the answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters

from approvals import learned, records, selectors, waiting
from approvals.cases import UNSET
from approvals.errors import ConfirmationRequired, ReasonRequired, UnknownReason
from approvals.models import OPEN_GATES, Ceremony, Gate, Verdict
from approvals.policy.stages import needed
from approvals.records import Beside
from approvals.services import decisions, edits, gates
from approvals.services.edits import EditShown
from approvals.services.questions import MAX_QUESTION
from approvals.shown import GateShown
from approvals.views import edit_form
from approvals.views.answers import UNDO_SECONDS, VERDICTS, read_answer
from approvals.views.situations import ENDING, Situation, situation_of
from config.errors import InvalidBody, NotFound, Problem
from interrupts.models import Choice
from interrupts.services.acting import OPERATORS
from interrupts.templates import mask
from tenants.api.auth import is_session_fresh
from tenants.errors import FreshSignInRequired
from tenants.models import User
from tenants.views.page import PageView, reading_only, see_other
from tenants.views.signing import sign_in_again
from tenants.views.visits import Visit

_LONGER: Final = (timedelta(hours=1), timedelta(hours=4), timedelta(days=1), timedelta(days=7))
# What is mended where an edit is shown: the edit itself is in order.
_MENDED: Final = (
    ConfirmationRequired,
    FreshSignInRequired,
    InvalidBody,
    ReasonRequired,
    UnknownReason,
)
# What each answer's form is called on the page, and where its faults are told.
_FORMS: Final = {"approve", "edit", "changes", "reject", "respond"}


class DecisionView(PageView):
    """One decision. That the person was shown it is kept."""

    nav: ClassVar[str] = "inbox"
    records_views: ClassVar[bool] = True

    def get(self, visit: Visit, pk: UUID) -> HttpResponse:
        shown = gates.look_at_gate(visit.principal, pk)
        with reading_only():
            return decision_page(self, visit, shown)


@method_decorator(sensitive_post_parameters("password"), name="dispatch")
class AnswerView(PageView):
    """An answer to it: recorded and led on to the record, or the page again with what stands in
    the way."""

    nav: ClassVar[str] = "inbox"

    def get(self, _visit: Visit, pk: UUID, answer: str) -> HttpResponse:
        if answer not in _FORMS:
            raise NotFound
        return see_other(reverse("decision", args=[pk]))

    def post(self, visit: Visit, pk: UUID, answer: str) -> HttpResponse:
        if answer not in VERDICTS:
            raise NotFound
        wanted = read_answer(answer, visit.request.POST.dict())
        if wanted["verdict"] == Verdict.APPROVE and _asks_password(visit, pk):
            sign_in_again(visit, visit.request.POST.get("password", ""))
        decisions.decide_gate(visit.principal, pk, **wanted)
        return see_other(reverse("record", args=[pk]))

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if isinstance(problem, NotFound) or visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        if "arguments" in visit.request.POST and problem.code not in ENDING:
            return review_page(self, visit, kwargs["pk"], problem)
        return refused_page(self, visit, kwargs["pk"], kwargs["answer"], problem)


def _asks_password(visit: Visit, pk: UUID) -> bool:
    """Say whether approving takes the password once more: where it can't be undone, after a while."""
    gate = Gate.objects.only("ceremony").get(pk=pk)
    return gate.ceremony == Ceremony.TYPED and not is_session_fresh(visit.request)


class EditView(PageView):
    """Edited arguments, shown with what they would do before anything is decided."""

    nav: ClassVar[str] = "inbox"

    def get(self, _visit: Visit, pk: UUID) -> HttpResponse:
        return see_other(reverse("decision", args=[pk]))

    def post(self, visit: Visit, pk: UUID) -> HttpResponse:
        sent = visit.request.POST.dict()
        schema, shown = editable(selectors.gates().get(pk=pk))
        arguments = edit_form.read(schema, shown, sent)
        edit = edits.look_at_edit(
            visit.principal, pk, digest=sent.get("digest", ""), arguments=arguments
        )
        return edit_page(self, visit, edit, arguments)

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if isinstance(problem, NotFound) or visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        return refused_page(self, visit, kwargs["pk"], "edit", problem)


def decision_page(
    view: PageView,
    visit: Visit,
    shown: GateShown,
    *,
    refusal: Problem | None = None,
    answer: str = "",
) -> HttpResponse:
    """Show a gate as its viewer may answer it; after a refusal with what was typed."""
    gate, viewer = shown.gate, visit.principal.id
    beside = records.beside(gate, viewer)
    now = selectors.database_time()
    situation = situation_of(shown, beside, viewer, now, refusal)
    facts = shown.facts
    sent = visit.request.POST if refusal is not None else {}
    context = {
        **_about(gate),
        "shown": shown,
        "facts": facts,
        "version": shown.version,
        "beside": beside,
        "situation": situation,
        "newest": gates.newest_gate(gate) if situation.kind == "superseded" else gate,
        "seen": _seen(gate, viewer, sent, situation),
        "refusal": refusal,
        "answer": answer,
        "sent": sent,
        "wrong": wrong_fields(refusal),
        "edit": _edit_form(shown, facts, sent, refusal, answer, situation),
        "votes": [one for one in shown.decisions if selectors.is_vote(one)],
        "open_to": _open_to(shown, beside),
        "asks_password": situation.answerable and _asks_password(visit, gate.pk),
        "learned": learned.of_gate(gate, viewer) if situation.answerable else None,
        "missing": max(gate.quorum - shown.given, 0),
        "holds": gate.ceremony == "single" and gate.risk == "low",
        "undo_seconds": UNDO_SECONDS,
        "open": gate.state in OPEN_GATES,
        "reasons": _reasons(gate),
        "longest_question": MAX_QUESTION,
        "handovers": records.handovers(gate),
        "extended": records.extensions(gate),
        "extensions": _extensions(shown),
        "handed_to": _may_hand_to(visit, gate, beside),
        "next": waiting.next_waiting(viewer, gate),
    }
    status = refusal.status if refusal is not None else 200
    return view.page(visit, "approvals/decision.html", context, status=status)


def _extensions(shown: GateShown) -> Sequence[datetime]:
    """Return until when the gate may be extended, for choice; nothing: it can't be."""
    latest, ends = shown.extendable_until, shown.gate.expires_at
    if latest is None or ends is None:
        return ()
    return [*(ends + more for more in _LONGER if ends + more < latest), latest]


def _reasons(gate: Gate) -> Mapping[str, Any]:
    """Return the declared reasons by what is chosen with them."""
    return {choice.value: gate.reasons_for(choice) for choice in Choice}


def _may_hand_to(visit: Visit, gate: Gate, beside: Beside) -> Sequence[User]:
    """Return to whom the viewer may hand the gate: nobody where it is not theirs to hand on."""
    may = beside.is_asked or visit.role in OPERATORS
    if gate.state not in OPEN_GATES or not may:
        return ()
    return [person for person in beside.deciders if person.pk != visit.principal.id]


def _open_to(shown: GateShown, beside: Beside) -> Sequence[User]:
    """Return who may still approve: those who may decide and have not."""
    votes = [one for one in shown.decisions if selectors.is_vote(one)]
    voted = {person for one in votes for person in one.people}
    return [person for person in beside.deciders if person.pk not in voted]


def _about(gate: Gate) -> Mapping[str, Any]:
    return {"gate": gate, "run": gate.run, "agent": gate.run.agent, "step": gate.step}


def _seen(
    gate: Gate, viewer: UUID, sent: Mapping[str, str], situation: Situation
) -> Mapping[str, Any] | None:
    """Return what the viewer had been shown, where it has changed since."""
    if situation.kind != "changed":
        return None
    return records.snapshot_of(gate, viewer, sent.get("digest", ""))


def wrong_fields(refusal: Problem | None) -> Mapping[str, str]:
    """Return what is wrong by the name of the form's field."""
    if refusal is None:
        return {}
    return {one["pointer"].removeprefix("/"): one["detail"] for one in refusal.errors}


def editable(gate: Gate) -> tuple[Any, Any]:
    """Return the schema of a gate's arguments, and the arguments as a person is shown them."""
    shown = selectors.shown_gate(gate, None)
    return shown.version.arguments, mask(shown.arguments, shown.version.sensitive)


def _edit_form(
    shown: GateShown,
    facts: Mapping[str, Any],
    sent: Mapping[str, str],
    refusal: Problem | None,
    answer: str,
    situation: Situation,
) -> edit_form.Form | None:
    if not situation.answerable:
        return None
    typed = dict(sent.items()) if answer == "edit" else None
    errors = refusal.errors if refusal is not None and answer == "edit" else ()
    return edit_form.form_of(shown.version.arguments, facts["what"]["arguments"], typed, errors)


def refused_page(
    view: PageView, visit: Visit, pk: UUID, answer: str, problem: Problem
) -> HttpResponse:
    """Show the gate again, with the refusal and what was typed."""
    gate = selectors.gates().get(pk=pk)
    shown = selectors.shown_gate(gate, visit.principal.id)
    return decision_page(view, visit, shown, refusal=problem, answer=answer)


def edit_page(
    view: PageView,
    visit: Visit,
    edit: EditShown,
    arguments: Any,
    refusal: Problem | None = None,
) -> HttpResponse:
    """Show an edit beside what it changes, with the form that approves it."""
    sensitive = edit.asked.sensitive
    context = {
        **_about(edit.gate),
        "headline": edit.asked.headline,
        "consequence": edit.asked.consequence,
        "confirmation": edit.asked.confirmation,
        "before": mask(edit.before.arguments, sensitive),
        "after": mask(edit.asked.arguments, sensitive),
        "arguments_json": json.dumps(arguments, ensure_ascii=False),
        "preview": edit.preview.shown if edit.preview else None,
        "preview_error": edit.preview.error if edit.preview else None,
        "others": needed(edit.stages) - 1,
        "stages": edit.stages if len(edit.stages) > 1 else (),
        "reasons": _reasons(edit.gate),
        "answer": "edit",
        "asks_password": _asks_password(visit, edit.gate.pk),
        "refusal": refusal,
        "sent": visit.request.POST if refusal is not None else {},
        "wrong": wrong_fields(refusal),
    }
    status = refusal.status if refusal is not None else 200
    return view.page(visit, "approvals/edit.html", context, status=status)


def review_page(view: PageView, visit: Visit, pk: UUID, problem: Problem) -> HttpResponse:
    """Show an edit again whose approval was refused: what it takes was not given."""
    sent = visit.request.POST.dict()
    wanted = _arguments_sent(sent)
    if wanted is UNSET or not isinstance(problem, _MENDED):
        return refused_page(view, visit, pk, "edit", problem)
    try:
        edit = edits.look_at_edit(
            visit.principal, pk, digest=sent.get("digest", ""), arguments=wanted
        )
    except Problem as other:
        return refused_page(view, visit, pk, "edit", other)
    return edit_page(view, visit, edit, wanted, problem)


def _arguments_sent(sent: Mapping[str, str]) -> Any:
    try:
        return read_answer("approve", sent)["arguments"]
    except Problem:
        return UNSET
