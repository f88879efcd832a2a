"""Reads of gates: each a bounded number of statements, whatever the size of the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from approvals import deciders, snapshots, stages, substitutes
from approvals.authority import Capacity
from approvals.models import (
    OPEN_GATES,
    Decision,
    Gate,
    PolicyStatus,
    PolicyVersion,
    Verdict,
)
from approvals.shown import GateShown, Similar, similar_sql
from approvals.snapshots import PreviousStep
from interrupts.models import Question, Run, Step
from interrupts.selectors import bodies
from tenants.models import User
from tenants.statements import prepared_rows


def gates(agent_id: UUID | None = None) -> QuerySet[Gate]:
    """Return the tenant's gates, or those of one agent's runs, with what their rendering reads."""
    found = Gate.objects.select_related("run", "step")
    return found if agent_id is None else found.filter(run__agent_id=agent_id)


def mine(user_id: UUID, *, settled: bool) -> QuerySet[Gate]:
    """Return the gates that wait for the person; with ``settled``, those they had a say in."""
    if settled:
        said = Decision.objects.filter(gate=OuterRef("pk"), user=user_id)
        return gates().filter(Exists(said))
    people = substitutes.stood_for(user_id)
    return gates().filter(substitutes.waits_for(user_id, people), state__in=sorted(OPEN_GATES))


def shown_gates(rows: Sequence[Gate], viewer: UUID | None) -> list[GateShown]:
    """Add to each gate its decisions, questions, bodies and counts, for a person or (None) an agent."""
    if not rows:
        return []
    decisions = _decisions(rows)
    named = [gate.arguments for gate in rows]
    named += [one.edits for of_gate in decisions.values() for one in of_gate if one.edits]
    found = bodies(named)
    entitled = _entitled(rows, decisions, viewer)
    questions = _questions(rows)
    names = _holders(entitled)
    undecided = () if viewer is None else [gate for gate in rows if gate.state in OPEN_GATES]
    similar = _similar({gate.tool_id for gate in undecided}) if undecided else {}
    votes = stages.standing(rows)
    unshown = [gate.step for gate in rows if not gate.keeps_previous]
    previous = previous_steps(unshown, snapshots.MAX_PREVIOUS) if unshown else {}
    return [
        GateShown(
            gate=gate,
            decisions=decisions.get(gate.pk, ()),
            bodies=found,
            given=len(votes.get(gate.pk, ()))
            if gate.stages
            else _given(decisions.get(gate.pk, ()), entitled.get(gate.pk, ())),
            may_decide=any(user == viewer for user, _ in entitled.get(gate.pk, ())),
            acting_for=_acting_for(viewer, entitled.get(gate.pk, ()), names),
            similar=similar.get(gate.tool_id) if gate.state in OPEN_GATES else None,
            questions=questions.get(gate.pk, ()),
            votes=votes.get(gate.pk, ()),
            previous=previous.get(gate.step_id, ()),
        )
        for gate in rows
    ]


def _given(decisions: Iterable[Decision], entitled: Collection[Capacity]) -> int:
    return sum(is_vote(one) and (one.user_id, one.holder_id) in entitled for one in decisions)


def shown_gate(gate: Gate, viewer: UUID | None) -> GateShown:
    return shown_gates([gate], viewer)[0]


def is_vote(decision: Decision) -> bool:
    """Say whether this is an approval that counts, as far as its row says."""
    return decision.counts and decision.verdict == Verdict.APPROVE


def _decisions(rows: Sequence[Gate]) -> Mapping[UUID, list[Decision]]:
    grouped: dict[UUID, list[Decision]] = defaultdict(list)
    found = Decision.objects.filter(gate__in=[gate.pk for gate in rows]).select_related(
        "user", "acting_for"
    )
    for one in found.order_by("id"):
        grouped[one.gate_id].append(one)
    return grouped


def _questions(rows: Sequence[Gate]) -> Mapping[UUID, list[Question]]:
    grouped: dict[UUID, list[Question]] = defaultdict(list)
    found = Question.objects.filter(gate__in=[gate.pk for gate in rows]).select_related("by")
    for one in found.order_by("id"):
        grouped[one.gate].append(one)
    return grouped


def _entitled(
    rows: Sequence[Gate], decisions: Mapping[UUID, list[Decision]], viewer: UUID | None
) -> Mapping[UUID, set[Capacity]]:
    asked = {one.user_id for of_gate in decisions.values() for one in of_gate if is_vote(one)}
    if viewer is not None:
        asked.add(viewer)
    return deciders.entitled([gate.pk for gate in rows], asked) if asked else {}


def _holders(entitled: Mapping[UUID, set[Capacity]]) -> Mapping[UUID, str]:
    """Return the names of those whose authority another has now."""
    ids = {holder for found in entitled.values() for user, holder in found if user != holder}
    if not ids:
        return {}
    return dict(User.objects.filter(pk__in=ids).values_list("pk", "username"))


def _acting_for(
    viewer: UUID | None, may: Collection[Capacity], names: Mapping[UUID, str]
) -> str | None:
    """Return for whom the viewer would decide; None: for themself, or not at all."""
    holders = sorted(holder for user, holder in may if user == viewer)
    return None if not holders or viewer in holders else names[holders[0]]


def _similar(tools: Iterable[UUID]) -> Mapping[UUID, Similar]:
    """Count how the latest settled gates of these tools ended; an edited one was approved too."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id, {similar_sql('id')} FROM unnest(%s::uuid[]) id",  # noqa: S608 - names of ours
            [list(tools)],
        )
        return {tool: Similar(*counts) for tool, counts in cursor.fetchall()}


_PREVIOUS: Final = f"""
SELECT asked.id, {", ".join(f"one.{name}" for name in PreviousStep._fields)}
  FROM unnest(%b::uuid[], %b::uuid[], %b::bigint[]) asked(id, run_id, position)
 CROSS JOIN LATERAL (SELECT * FROM interrupts_step one
    WHERE one.run_id = asked.run_id AND one.position < asked.position
    ORDER BY one.position DESC LIMIT %b::bigint) one
 ORDER BY one.position"""  # noqa: S608 - names of ours


def previous_steps(steps: Collection[Step], limit: int) -> Mapping[UUID, list[PreviousStep]]:
    """Return for each of these the steps of its run before it, the latest ``limit``, oldest first."""
    asked = [(one.pk, one.run_id, one.position) for one in steps]
    found: dict[UUID, list[PreviousStep]] = {one.pk: [] for one in steps}
    for step, *row in prepared_rows(_PREVIOUS, [*map(list, zip(*asked, strict=True)), limit]):
        found[step].append(PreviousStep(*row))
    return found


def database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def tools_of(run: Run) -> list[UUID]:
    """Return the tools of the run's steps."""
    return list(Step.objects.filter(run=run).values_list("tool_id", flat=True).distinct())


def has_question(gate_id: UUID, question_id: UUID) -> bool:
    return Question.objects.filter(pk=question_id, gate=gate_id).exists()


def has_decision(gate_id: UUID, decision_id: UUID) -> bool:
    return Decision.objects.filter(pk=decision_id, gate=gate_id).exists()


def policy_in_force() -> PolicyVersion | None:
    """Return the policy in force; None where none was published."""
    return published_policies().order_by("-number").first()


def published_policies() -> QuerySet[PolicyVersion]:
    """Return the published versions with who published them."""
    published = PolicyVersion.objects.filter(status=PolicyStatus.PUBLISHED)
    return published.select_related("published_by")
