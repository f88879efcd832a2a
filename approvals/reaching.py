"""Which declared milestones a step reaches, by what its run holds: one statement a proposal.

A call happened, or may have, once it was begun and is not known to have failed or not begun. What
stands before a step and may still happen counts as an effect too: judged now, it may run before.
A point was passed where a person approved a step of the run that was asked about by it, and that
approval stands.
"""

from __future__ import annotations

import json
from typing import Any, Final

from django.db import connection

from approvals.circumstances import Memo
from approvals.policy import CompiledPolicy
from approvals.policy.milestones import Point, SoFar, reached
from interrupts.models import Run, Step
from interrupts.work import Work

_SO_FAR: Final = """
SELECT coalesce(array_agg(DISTINCT tool_name) FILTER (WHERE ran), '{}'),
    count(*) FILTER (WHERE ran AND effect <> 'read'),
    coalesce(array_agg(position) FILTER (WHERE is_ahead AND effect <> 'read'), '{}'),
    coalesce(jsonb_agg(jsonb_build_array(position, asked)) FILTER (WHERE approved), '[]')
FROM (
    SELECT s.tool_name, s.effect, s.position, s.judged -> 'asked' AS asked,
        s.attempts > 0 AND s.status IN
            ('executing', 'unknown', 'succeeded', 'compensating', 'compensated') AS ran,
        s.status IN ('proposed', 'waiting', 'ready') AS is_ahead,
        s.authorized_by = 'decision' AND s.judged -> 'asked' IS NOT NULL AND s.status IN
            ('ready', 'executing', 'unknown', 'succeeded', 'failed', 'compensating', 'compensated')
            AS approved
    FROM interrupts_step s
    WHERE s.run_id = %(run)s AND (%(before)s::integer IS NULL OR s.position < %(before)s)
) held
"""


def reached_now(compiled: CompiledPolicy, work: Work, step: Step) -> tuple[Point, ...] | None:
    """Return what the step reaches, under the run's lock; None: no milestone could be reached."""
    milestones = compiled.milestones(step.tool_name, work.run.workflow)
    if not milestones:
        return None
    return reached(milestones, step.tool_name, _so_far(work.memo, work.run, step.position))


def reached_then(compiled: CompiledPolicy, step: Step, run: Run) -> tuple[Point, ...]:
    """Return what a recorded step reaches by this policy, as far as the steps before it tell."""
    milestones = compiled.milestones(step.tool_name, run.workflow)
    if not milestones:
        return ()
    so_far = _so_far({}, run, step.position, before=step.position)
    return reached(milestones, step.tool_name, so_far)


def supposed(compiled: CompiledPolicy, tool: str, workflow: str) -> tuple[Point, ...]:
    """Return what the first step of a run of the workflow reaches."""
    return reached(compiled.milestones(tool, workflow), tool, SoFar())


def points_of(kept: list[list[str]]) -> tuple[Point, ...]:
    """Return points that were kept with a step."""
    return tuple(Point(*one) for one in kept)


def _so_far(memo: Memo, run: Run, position: int, before: int | None = None) -> SoFar:
    tools, effects, ahead, passed = _held(memo, run, before)
    return SoFar(
        tools=frozenset(tools),
        effects=effects + sum(one < position for one in ahead),
        # Its own approval is asked about anew where it no longer holds.
        passed=frozenset(
            point for at, asked in passed if at != position for point in points_of(asked)
        ),
    )


def _held(memo: Memo, run: Run, before: int | None) -> Any:
    """Read it once for what is judged together: nothing of it starts before all is judged."""
    key = "milestones", run.pk
    if key not in memo:
        with connection.cursor() as cursor:
            cursor.execute(_SO_FAR, {"run": run.pk, "before": before})
            tools, effects, ahead, passed = cursor.fetchone()
        memo[key] = tools, effects, ahead, json.loads(passed)
    return memo[key]
