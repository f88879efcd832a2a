"""What is known around a call when policy judges it: read then, kept, and read again.

Only what the rules and scorers of its tool ask about is looked at. Of that, what may be otherwise
later is kept on the step (``Step.judged``), so that a verdict can be explained by what was so then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import connection

from approvals.policy import CompiledPolicy
from approvals.policy.circumstances import step_facts, time_facts, usage_facts
from interrupts.models import Run, Step
from interrupts.work import Work
from tenants.clock import database_now
from tenants.ids import first_id

Known = Mapping[str, Any]
Memo = dict[Any, Any]
HISTORY: Final = timedelta(days=30)
MOST_RUNS: Final = 200
MOST_STEPS: Final = 2_000
# By what the agent's latest runs hold: found by indexes that are there, however many steps it made.
_HISTORY: Final = """
SELECT count(*) FILTER (WHERE status IN ('succeeded', 'compensating', 'compensated')
        AND attempts > 0),
    count(*) FILTER (WHERE status IN ('rejected', 'revised')),
    count(*) FILTER (WHERE status = 'denied'),
    count(*) FILTER (WHERE status = 'failed'),
    count(*) FILTER (WHERE status IN ('compensating', 'compensated')),
    count(*) FILTER (WHERE status = 'unknown')
FROM (
    SELECT made.* FROM (
        SELECT r.id FROM interrupts_run r
        WHERE r.agent_id = %(agent)s AND r.id >= %(first)s
        ORDER BY r.id DESC LIMIT %(runs)s
    ) latest
    CROSS JOIN LATERAL (
        SELECT s.tool_id, s.status, s.attempts FROM interrupts_step s
        WHERE s.run_id = latest.id ORDER BY s.position DESC LIMIT %(steps)s
    ) made
    ORDER BY latest.id DESC LIMIT %(steps)s
) looked_at WHERE tool_id = %(tool)s
"""
_COUNTED: Final = ("performed", "refused", "denied", "failed", "undone", "unknown")


def at_judging(compiled: CompiledPolicy, work: Work, step: Step) -> tuple[Known, dict[str, Any]]:
    """Return what is known now, under the run's lock, and what of it is kept on the step."""
    names = compiled.asks_about(step.tool_name)
    known: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    if "step" in names:
        known["step"] = _step(step)
    if "usage" in names:
        known["usage"] = kept["usage"] = usage_of(work.run, more_steps=work.admitted)
    if "time" in names:
        known["time"] = time_facts(work.now, compiled.time_zone)
        kept["at"] = work.now.isoformat()
    if "history" in names:
        asked = work.memo, work.run.agent_id, step.tool_id, work.now
        known["history"] = kept["history"] = history_of(*asked)
    return known, kept


def at_completion(work: Work, time_zone: str) -> Known:
    """Return what is known of a run that completes: there is no step then."""
    return of_completion(work.run, work.now, time_zone)


def of_completion(run: Run, at: datetime, time_zone: str) -> Known:
    """Return what is known of a run that completes at that time, with what it has used by now."""
    return {"usage": usage_of(run), "time": time_facts(at, time_zone)}


def as_recorded(compiled: CompiledPolicy, step: Step, run: Run, memo: Memo) -> Known:
    """Return what was known when the step was judged last, for a policy that may ask for more.

    What was not kept then, since no rule asked for it, is the time of the proposal, the run's
    usage as it stands, and the history as it stands, which ``memo`` keeps for the next.
    """
    names = compiled.asks_about(step.tool_name)
    kept = step.judged or {}
    known: dict[str, Any] = {}
    if "step" in names:
        known["step"] = _step(step)
    if "usage" in names:
        known["usage"] = kept["usage"] if "usage" in kept else usage_of(run)
    if "time" in names:
        at = datetime.fromisoformat(kept["at"]) if "at" in kept else step.created_at
        known["time"] = time_facts(at, compiled.time_zone)
    if "history" in names:
        kept_then = kept.get("history")
        known["history"] = kept_then or history_of(memo, run.agent_id, step.tool_id)
    return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposed:
    """What a call is supposed to be made under that nobody proposes: the first step of a run."""

    at: datetime
    usage: Mapping[str, Any]
    agent: UUID | None  # a person has no history

    def known(self, compiled: CompiledPolicy, tool: str, tool_id: UUID) -> Known:
        used = self.usage
        history: Known = dict.fromkeys(_COUNTED, 0)
        if self.agent is not None and "history" in compiled.asks_about(tool):
            history = history_of({}, self.agent, tool_id, self.at)
        return {
            "step": step_facts(1, None, parallel=False),
            "usage": usage_facts(
                used.get("steps", 0),
                used.get("tokens", 0),
                Decimal(str(used.get("cost", 0))),
                Decimal(str(used.get("seconds", 0))),
            ),
            "time": time_facts(self.at, compiled.time_zone),
            "history": history,
        }


def history_of(
    memo: Memo, agent: UUID, tool: UUID, until: datetime | None = None
) -> dict[str, int]:
    """Count what became of the agent's calls of the tool in its latest runs; ``memo`` keeps it.

    Of runs begun in the last 30 days the latest 200, and of their steps 2,000: one statement.
    """
    key = agent, tool
    if key not in memo:
        since = (until or database_now()) - HISTORY
        with connection.cursor() as cursor:
            cursor.execute(
                _HISTORY,
                {
                    "agent": agent,
                    "tool": tool,
                    "first": first_id(since),
                    "runs": MOST_RUNS,
                    "steps": MOST_STEPS,
                },
            )
            memo[key] = dict(zip(_COUNTED, cursor.fetchone(), strict=True))
    found: dict[str, int] = memo[key]
    return found


def usage_of(run: Run, *, more_steps: int = 0) -> dict[str, Any]:
    """Return what the run has used, with ``more_steps`` of the same proposal counted."""
    return usage_facts(
        run.usage_steps + more_steps, run.usage_tokens, run.usage_cost, run.usage_seconds
    )


def _step(step: Step) -> Known:
    return step_facts(step.position, step.key, parallel=step.parallel)
