"""The latest gates, and how people decided each: the part that every question about them shares.

The gates are found by their ids, which sort by when they were made: from the end of an index, back
to the start of the window, and no more than a bound (``approvals_latest``). What belongs to each is looked up by its id;
``OFFSET 0`` keeps a plan from walking all steps, runs or decisions in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from tenants.ids import first_id
from tenants.scope import current_tenant_id

LOOKED_BACK: Final = timedelta(days=90)
MOST_CONSIDERED = 10_000
_OF_THE_WORKFLOW: Final = """
    CROSS JOIN LATERAL (
        SELECT FROM interrupts_run u
        WHERE u.id = g.run_id AND u.workflow = %(workflow)s OFFSET 0
    ) r"""
# A gate that another took the place of is told of by the other. An approval that was taken back
# and not given again was an approval, and was undone; that it had been enough says the interrupt.
# Edited is what was approved with arguments that an edit put there, whoever's, in whichever gate.
_JUDGED: Final = """
WITH looked_at AS MATERIALIZED (
    SELECT o.id FROM approvals_latest(
        %(tenant)s, %(tool)s, %(first)s, %(since)s, %(most)s + 1
    ) o (id)
), judged AS MATERIALIZED (
    SELECT g.triggers, g.policy_version,
        CASE WHEN jsonb_typeof(s.judged -> 'score') = 'number'
            THEN (s.judged ->> 'score')::numeric END AS score,
        CASE WHEN jsonb_typeof(s.proposal -> 'risk_score') = 'number'
            THEN (s.proposal ->> 'risk_score')::numeric END AS risk_score,
        CASE WHEN jsonb_typeof(s.proposal -> 'confidence') = 'number'
            THEN (s.proposal ->> 'confidence')::numeric END AS confidence,
        CASE
            WHEN NOT said.by_people THEN NULL
            WHEN g.state IN ('rejected', 'changes_requested') THEN 'refused'
            WHEN g.state = 'responded' THEN 'responded'
            WHEN NOT (g.state = 'approved' OR back.approved) THEN NULL
            WHEN changed.edited THEN 'edited'
            ELSE 'as_proposed'
        END AS outcome,
        g.state <> 'approved' OR s.status = 'compensated' AS undone,
        said.reason,
        extract(epoch FROM said.last_at - g.opened_at)::float8 AS seconds
    FROM (SELECT o.id FROM looked_at o ORDER BY o.id DESC LIMIT %(most)s) latest
    CROSS JOIN LATERAL (SELECT o.* FROM approvals_gate o WHERE o.id = latest.id OFFSET 0) g
    CROSS JOIN LATERAL (
        SELECT t.proposal, t.judged, t.status
        FROM interrupts_step t WHERE t.id = g.step_id OFFSET 0
    ) s{of_workflow}
    CROSS JOIN LATERAL (
        SELECT count(*) > 0 AS by_people, max(d.at) AS last_at,
            (array_agg(d.reason_code ORDER BY d.id DESC) FILTER (
                WHERE d.reason_code IS NOT NULL AND d.withdrawn_at IS NULL))[1] AS reason,
            count(d.withdrawn_at) > 0 AND g.state NOT IN ('approved', 'superseded') AS taken_back
        FROM approvals_decision d WHERE d.gate_id = g.id AND d.delegation IS NULL
    ) said
    CROSS JOIN LATERAL (
        SELECT count(*) > 0 AS approved FROM interrupts_interrupt i
        WHERE said.taken_back AND i.run_id = g.run_id AND i.gate = g.id
            AND i.response ->> 'verdict' = 'approve'
    ) back
    CROSS JOIN LATERAL (
        SELECT count(*) > 0 AS edited
        FROM (SELECT e.id FROM approvals_gate e
            WHERE (g.state = 'approved' OR back.approved) AND e.step_id = g.step_id OFFSET 0) e
        CROSS JOIN LATERAL (
            SELECT FROM approvals_decision d
            WHERE d.gate_id = e.id AND d.edits = g.arguments OFFSET 0) d
    ) changed
)
"""


@dataclass(frozen=True, slots=True)
class Window:
    """Which gates are meant: those opened since then, of one tool and in runs of one workflow."""

    since: datetime
    tool: str | None = None
    workflow: str | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """How people decided gates; ``undone`` are approvals, edited or not, that did not stand."""

    decided: int = 0
    as_proposed: int = 0
    edited: int = 0
    refused: int = 0
    responded: int = 0
    undone: int = 0


COUNTED: Final = """
    count(outcome), count(*) FILTER (WHERE outcome = 'as_proposed'),
    count(*) FILTER (WHERE outcome = 'edited'), count(*) FILTER (WHERE outcome = 'refused'),
    count(*) FILTER (WHERE outcome = 'responded'),
    count(*) FILTER (WHERE outcome IN ('as_proposed', 'edited') AND undone)
"""


def asking(window: Window, question: str, **more: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the statement that asks ``question`` of ``judged``, and its parameters.

    Of all gates that were looked at there may be one more than are judged: then there were more.
    """
    judged = _JUDGED.format(of_workflow="" if window.workflow is None else _OF_THE_WORKFLOW)
    named = {
        "tenant": current_tenant_id(),
        "first": first_id(window.since),
        "since": window.since,
        "tool": window.tool,
        "workflow": window.workflow,
        "most": MOST_CONSIDERED,
        **more,
    }
    return judged + question, named


def ask(window: Window, question: str, **more: Any) -> tuple[int, bool, list[tuple[Any, ...]]]:
    """Return how many gates were looked at, whether there were more, and the answer's rows.

    Each row of the question begins with the number looked at; one whose next is null is no answer.
    """
    with connection.cursor() as cursor:
        cursor.execute(*asking(window, question, **more))
        rows = cursor.fetchall()
    found = rows[0][0]
    answered = [tuple(row[1:]) for row in rows if row[1] is not None]
    return min(found, MOST_CONSIDERED), found > MOST_CONSIDERED, answered
