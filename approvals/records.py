"""Reads for the page of one decision and its record: who may decide, what was said, what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from approvals import deciders, substitutes
from approvals.authority import Refusal
from approvals.calls import call_of
from approvals.models import (
    FINAL_GATES,
    Assignment,
    Decision,
    Gate,
    Substitution,
    Verdict,
    View,
)
from interrupts.models import Attempt, Question, Receipt, Step, StepStatus
from interrupts.selectors import bodies
from interrupts.watching import people
from tenants.models import JournalEntry, User

MOST_NAMED: Final = 20
MOST_SIMILAR: Final = 5


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside a gate on its page."""

    deciders: Sequence[User]  # who may decide it now, up to a bound
    substitutes: Sequence[Substitution]  # of these
    acting_for: User | None  # whose authority the viewer would decide by, where not their own
    refusal: Refusal | None  # why the viewer may not
    limits: Sequence[str]  # of the viewer's authority, where the call is beyond them
    is_asked: bool  # whether it stands in the viewer's inbox
    similar: Sequence[Gate]  # how the latest of this tool ended


@dataclass(frozen=True, slots=True)
class Record:
    """What became of a gate: what people said and asked of it, and each try at its step."""

    decisions: Sequence[Decision]
    attempts: Sequence[Attempt]
    receipts: Sequence[Receipt]
    questions: Sequence[Question]


def beside(gate: Gate, viewer: UUID) -> Beside:
    assigned = Assignment.objects.filter(gate=gate).select_related("user")
    people = [one.user for one in assigned.order_by("user__username")[:MOST_NAMED]]
    entitled = deciders.entitled([gate.pk], {person.pk for person in people}).get(gate.pk, set())
    may = [person for person in people if (person.pk, person.pk) in entitled]
    acting_for, refused = deciders.gate_standing(viewer, gate, gate.run, call_of(gate, gate.run))
    return Beside(
        deciders=may,
        substitutes=substitutes.standing_in_for([person.pk for person in may]),
        acting_for=substitutes.named(acting_for),
        refusal=refused.code if refused is not None else None,
        limits=refused.limits if refused is not None else (),
        is_asked=assigned.filter(user=viewer, passed_at=None).exists(),
        similar=_similar(gate),
    )


@dataclass(frozen=True, slots=True)
class Handover:
    """Who handed a gate to whom, and why."""

    at: datetime
    by: str
    to: str
    note: str


def handovers(gate: Gate) -> list[Handover]:
    """Return who handed the gate to whom, the latest up to a bound, as its run's journal says."""
    read = _told_of(gate, "gate.reassigned")
    names = people(one for _, said in read for one in (said["actor"], said["data"]["to"]))
    return [
        Handover(
            at,
            names.get(said["actor"]["id"], "somebody"),
            names.get(said["data"]["to"]["id"], "somebody"),
            said["data"].get("note", ""),
        )
        for at, said in read
    ]


@dataclass(frozen=True, slots=True)
class Extension:
    """Who gave the gate more time, until when, and why."""

    at: datetime
    by: str
    until: datetime
    note: str


def extensions(gate: Gate) -> list[Extension]:
    """Return who gave the gate more time, the latest up to a bound, as its run's journal says."""
    if gate.expires_at is None:
        return []
    read = _told_of(gate, "gate.extended")
    names = people(said["actor"] for _, said in read)
    return [
        Extension(
            at,
            names.get(said["actor"]["id"], "somebody"),
            datetime.fromisoformat(said["data"]["expires_at"]),
            said["data"]["note"],
        )
        for at, said in read
    ]


def _told_of(gate: Gate, kind: str) -> list[tuple[datetime, Any]]:
    """Return the latest entries of that kind about the gate up to a bound, the oldest first."""
    rows = JournalEntry.objects.filter(stream=gate.run_id, kind=kind, text__contains=str(gate.pk))
    found = list(rows.order_by("-seq").values_list("at", "text")[:MOST_NAMED])[::-1]
    return [(at, json.loads(text)) for at, text in found]


def _similar(gate: Gate) -> list[Gate]:
    """Return the latest settled gates of this tool, with what was decided of them."""
    past = Gate.objects.filter(tool=gate.tool_id, state__in=sorted(FINAL_GATES))
    related = (
        past.exclude(pk=gate.pk)
        .select_related("step")
        .prefetch_related("decisions__user", "decisions__acting_for")
    )
    large = ("why", "what_could_go_wrong", "preview", "step__proposal")
    return list(related.defer(*large).order_by("-id")[:MOST_SIMILAR])


def record(gate: Gate) -> Record:
    said = Decision.objects.filter(gate=gate).select_related("user", "acting_for")
    decisions = said.order_by("id")
    attempts = Attempt.objects.filter(step=gate.step_id).order_by("id")
    receipts = Receipt.objects.filter(step=gate.step_id).order_by("id")
    asked = Question.objects.filter(gate=gate.pk).select_related("by").order_by("id")
    return Record(list(decisions), list(attempts), list(receipts), list(asked))


def seen(gate_id: UUID, decision_id: UUID) -> tuple[Decision, View | None]:
    """Return a decision and what its person was shown, where a page or the API showed it."""
    related = Decision.objects.select_related("user", "gate", "acting_for")
    decision = related.get(pk=decision_id, gate=gate_id)
    shown = View.objects.filter(gate=gate_id, user=decision.user_id, digest=decision.digest)
    return decision, shown.first()


def latest_approvals(gate_ids: Sequence[UUID], user_id: UUID) -> Mapping[UUID, Decision]:
    """Return the person's latest approval of each of these gates that has one, with the gate."""
    found = Decision.objects.filter(gate__in=gate_ids, user=user_id, verdict=Verdict.APPROVE)
    related = found.select_related("gate__run__agent", "gate__step")
    return {one.gate_id: one for one in related.order_by("id")}


def headlines(gate_ids: Sequence[UUID]) -> Mapping[UUID, str]:
    return dict(Gate.objects.filter(pk__in=gate_ids).values_list("pk", "headline"))


def edits(decision: Decision) -> Any:
    """Return the arguments that the decision put in the place of those shown; None where none."""
    if decision.edits is None:
        return None
    return bodies([decision.edits]).get(bytes(decision.edits))


def snapshot_of(gate: Gate, viewer: UUID, digest: str) -> Mapping[str, Any] | None:
    """Return what the viewer was shown of the gate under that digest; None where they were not."""
    views = View.objects.filter(gate=gate, user=viewer, digest=digest)
    snapshot: Mapping[str, Any] | None = views.values_list("snapshot", flat=True).first()
    return snapshot


def starts_at(step_id: UUID) -> datetime | None:
    """Return until when an approved step is held back, if it is."""
    held = Step.objects.filter(
        pk=step_id, status=StepStatus.READY, attempts=0, due_at__isnull=False
    )
    return held.values_list("due_at", flat=True).first()
