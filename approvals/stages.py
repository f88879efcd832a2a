"""The stages of gates: whose approvals stand in each, which is open, and who is left for the rest.

An approval is of the stage that was open when it was given, and stands while its person may decide
there, by the authority it was given by. A gate without stages has nothing here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection

from approvals import authority
from approvals.calls import within
from approvals.models import Decision, Gate, Verdict
from approvals.policy.stages import Stage, can_be_filled


class Vote(NamedTuple):
    """An approval that counts, and of which stage it is, from 1."""

    decision: UUID
    user: UUID
    stage: int


def _may(user: str, holder: str) -> str:
    """Return the SQL condition that a person may decide in a stage (`asked`), but for limits.

    Row-level security keeps each table inside the session's tenant.
    """
    refusal = authority.refusal_sql(
        user=user,
        holder=None if holder == user else holder,
        tool="gate.tool_id",
        agent="run.agent_id",
        requester="run.requested_by_id",
    )
    is_named = "asked.stage -> 'approvers' ? named.name"
    named = authority.in_a_group_sql(holder=holder, is_named=is_named)
    return f"""(jsonb_array_length(asked.stage -> 'approvers') = 0 OR {named})
    AND {refusal} IS NULL"""


_HOLDER: Final = "coalesce(vote.acting_for_id, vote.user_id)"
_STANDING: Final = f"""
    SELECT gate.id, vote.id, vote.user_id, coalesce(vote.stage, 1),
        {authority.limits_sql(holder=_HOLDER, tool="gate.tool_id")}
    FROM approvals_gate gate
    JOIN interrupts_run run ON run.id = gate.run_id
    JOIN approvals_decision vote
        ON vote.gate_id = gate.id AND vote.counts AND vote.verdict = '{Verdict.APPROVE}'
    CROSS JOIN LATERAL (SELECT gate.stages -> (coalesce(vote.stage, 1) - 1) AS stage) asked
    WHERE gate.id = ANY(%(gates)s) AND gate.stage IS NOT NULL AND {_may("vote.user_id", _HOLDER)}
    ORDER BY vote.id"""  # noqa: S608 - names of ours
_LEFT: Final = f"""
    SELECT gate.id, asked.number, who.user_id,
        {authority.limits_sql(holder="who.user_id", tool="gate.tool_id")}
    FROM approvals_gate gate
    JOIN interrupts_run run ON run.id = gate.run_id
    CROSS JOIN LATERAL jsonb_array_elements(gate.stages) WITH ORDINALITY asked(stage, number)
    CROSS JOIN tenants_membership who
    WHERE gate.id = ANY(%(gates)s) AND asked.number >= gate.stage AND who.active
        AND {_may("who.user_id", "who.user_id")}
        AND NOT EXISTS (SELECT FROM approvals_decision vote
            WHERE vote.gate_id = gate.id AND who.user_id IN (vote.user_id, {_HOLDER})
                AND vote.counts AND vote.verdict = '{Verdict.APPROVE}')"""  # noqa: S608


def standing(gates: Sequence[Gate]) -> Mapping[UUID, list[Vote]]:
    """Return by gate with stages the approvals that stand, in one statement; none: in no statement."""
    found: dict[UUID, list[Vote]] = defaultdict(list)
    for gate, decision, user, stage in _rows(_STANDING, gates):
        found[gate].append(Vote(decision, user, stage))
    return found


def open_stage(stages: Sequence[Stage], votes: Iterable[Vote]) -> int | None:
    """Return the first stage that lacks approvals, from 1; None where none does."""
    given = Counter(one.stage for one in votes)
    lacking = (at for at, one in enumerate(stages, 1) if given[at] < one.quorum)
    return next(lacking, None)


def short_of_people(gates: Sequence[Gate]) -> set[UUID]:
    """Return the gates with stages of which one can't be decided by who is left, as things stand."""
    could: dict[tuple[UUID, int], set[UUID]] = defaultdict(set)
    for gate_id, stage, user in _rows(_LEFT, gates):
        could[gate_id, stage].add(user)
    votes = standing(gates)
    return {gate.pk for gate in gates if gate.stages and not _can_be_decided(gate, could, votes)}


def _can_be_decided(
    gate: Gate,
    could: Mapping[tuple[UUID, int], set[UUID]],
    votes: Mapping[UUID, Sequence[Vote]],
) -> bool:
    given = Counter(one.stage for one in votes.get(gate.pk, ()))
    places = [
        (max(stage.quorum - given[at], 0), could.get((gate.pk, at), ()))
        for at, stage in enumerate(gate.all_stages, 1)
        if gate.stage is not None and at >= gate.stage
    ]
    return can_be_filled(places)


def behind(gates: Sequence[Gate]) -> set[UUID]:
    """Return the gates with stages whose row says otherwise than the approvals that stand."""
    staged = [gate for gate in gates if gate.stages]
    if not staged:
        return set()
    counting = Decision.objects.filter(gate__in=staged, counts=True, verdict=Verdict.APPROVE)
    said = Counter(counting.values_list("gate_id", flat=True))
    votes = standing(staged)
    return {
        gate.pk
        for gate in staged
        if len(votes.get(gate.pk, ())) != said[gate.pk]
        or open_stage(gate.all_stages, votes.get(gate.pk, ())) != gate.stage
    }


def _rows(statement: str, gates: Sequence[Gate]) -> list[Any]:
    staged = [gate.pk for gate in gates if gate.stages]
    if not staged:
        return []
    with connection.cursor() as cursor:
        cursor.execute(statement, {"gates": staged})
        rows = cursor.fetchall()
    return within(rows)
