"""What follows from a verdict: the run goes on, or a person is asked what is to be done."""

from __future__ import annotations

from typing import Final

from interrupts.effects import Ruling, Says
from interrupts.models import (
    Reason,
    Resolution,
    ResponseKind,
    RunStatus,
    Step,
    Verdict,
    VerdictStatus,
)
from interrupts.transitions import compensation, holds, verdicts, wording
from interrupts.work import Work

WHO: Final = ("operator", "admin", "requester", "decider")
_STATUS: Final = {
    Says.PASSED: VerdictStatus.PASSED,
    Says.REJECTED: VerdictStatus.REJECTED,
    None: VerdictStatus.UNKNOWN,
}


def record(work: Work, step: Step, verdict: Verdict, ruling: Ruling) -> None:
    """Record what is known of an awaited verdict for good; but for `passed` a person is asked.

    In a run that has ended or is being cancelled nothing starts that could be held.
    """
    goes_on = work.run.status in (RunStatus.RUNNING, RunStatus.SUSPENDED)
    interrupts = goes_on and not passes(ruling)
    verdict.status, verdict.recorded_at = _STATUS[ruling.says], work.now
    verdict.words, verdict.error = ruling.words or None, ruling.error
    verdict.ask_at = verdict.asking_until = None
    verdict.save(
        update_fields=["status", "recorded_at", "words", "error", "ask_at", "asking_until"]
    )
    work.run.verdicts_awaited -= 1
    work.note(
        "verdict.recorded",
        verdict=verdict.pk,
        step=step.pk,
        status=verdict.status,
        tries=verdict.tries,
        words=work.imprint_of(verdict.words),
        error=work.imprint_of(verdict.error),
        holds=interrupts,
    )
    if interrupts:
        verdicts.hold(work, verdict)
        holds.open_holds(work, _hold(step, verdict))
    else:
        verdicts.release(work, verdict)


def passes(ruling: Ruling) -> bool:
    """Say whether the verifier passed it; that it said nothing does not."""
    return ruling.says == Says.PASSED


def _hold(step: Step, verdict: Verdict) -> holds.Hold:
    rejected = verdict.status == VerdictStatus.REJECTED
    undoes = (Resolution.COMPENSATE,) if compensation.can_be_undone(step) else ()
    return holds.Hold(
        reason=Reason.VERIFIER_REJECTED,
        kind=ResponseKind.RELEASE,
        question=wording.VERIFIER_REJECTED if rejected else wording.VERDICT_UNKNOWN,
        who=WHO,
        allowed=(Resolution.RESUME, *undoes, Resolution.REVISE, Resolution.CANCEL),
        step=step.pk,
        evidence={
            "verdict": verdict.status,
            "words": verdict.words,
            "error": verdict.error,
            "tries": verdict.tries,
            "tool": step.tool_name,
            "receipt": str(verdict.receipt),
            "external_id": step.external_id,
        },
    )
