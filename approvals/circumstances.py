"""What is known around a call when policy judges it: read then, kept, and read again.

Only what the rules and scorers of its tool ask about is looked at. Of that, what may be otherwise
later is kept on the step (``Step.judged``), so that a verdict can be explained by what was so then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from approvals.policy import CompiledPolicy
from approvals.policy.circumstances import step_facts, time_facts, usage_facts
from interrupts.models import Run, Step
from interrupts.work import Work

Known = Mapping[str, Any]


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
    return known, kept


def as_recorded(compiled: CompiledPolicy, step: Step, run: Run) -> Known:
    """Return what was known when the step was judged last, for a policy that may ask for more.

    What was not kept then, since no rule asked for it, is the time of the proposal and the run's
    usage as it stands.
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
    return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposed:
    """What a call is supposed to be made under that nobody proposes: the first step of a run."""

    at: datetime
    usage: Mapping[str, Any]

    def known(self, time_zone: str) -> Known:
        used = self.usage
        return {
            "step": step_facts(1, None, parallel=False),
            "usage": usage_facts(
                used.get("steps", 0),
                used.get("tokens", 0),
                Decimal(str(used.get("cost", 0))),
                Decimal(str(used.get("seconds", 0))),
            ),
            "time": time_facts(self.at, time_zone),
        }


def usage_of(run: Run, *, more_steps: int = 0) -> dict[str, Any]:
    """Return what the run has used, with ``more_steps`` of the same proposal counted."""
    return usage_facts(
        run.usage_steps + more_steps, run.usage_tokens, run.usage_cost, run.usage_seconds
    )


def _step(step: Step) -> Known:
    return step_facts(step.position, step.key, parallel=step.parallel)
