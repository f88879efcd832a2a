"""Verdicts on what was done: awaited with the receipt, and what of the run they hold meanwhile.

    awaited ──► passed | rejected | unknown      (once; what is said later changes nothing)

A verdict that ``holds`` its run lets none of its steps start, by the run's own count of them. One
that is not `passed` holds it until a person has answered, and where that answer has the effect
undone, until it is.
"""

from __future__ import annotations

from interrupts import queue
from interrupts.models import (
    Interrupt,
    Receipt,
    Resolution,
    RunStatus,
    Step,
    StepStatus,
    Verdict,
    VerdictStatus,
)
from interrupts.transitions.finding import version_of
from interrupts.work import Work


def expect(work: Work, step: Step, receipt: Receipt) -> None:
    """Have the receipt of a success judged, where the tool's version says by whom."""
    declared = version_of(step).verifier
    if declared is None:
        return
    verdict = Verdict.objects.create(
        run=work.run,
        step=step,
        receipt=receipt.pk,
        holds=declared["before_next"],
        ask_at=work.now,
        awaited_since=work.now,
    )
    work.run.verdicts_awaited += 1
    work.run.verdicts_holding += verdict.holds
    work.note(
        "verdict.awaited",
        verdict=verdict.pk,
        step=step.pk,
        receipt=receipt.pk,
        holds=verdict.holds,
    )
    queue.judge(step.pk)
    work.due(work.now + queue.GRACE)


def hold(work: Work, verdict: Verdict) -> None:
    """Let no step of the run start because of this verdict."""
    if not verdict.holds:
        verdict.holds = True
        verdict.save(update_fields=["holds"])
        work.run.verdicts_holding += 1


def release(work: Work, verdict: Verdict) -> None:
    """Let the run start steps again, as far as this verdict goes."""
    if not verdict.holds:
        return
    verdict.holds = False
    verdict.save(update_fields=["holds"])
    work.run.verdicts_holding -= 1
    if work.run.verdicts_holding == 0 and work.run.status == RunStatus.RUNNING:
        work.wake()


def answered(work: Work, interrupt: Interrupt, resolution: Resolution) -> None:
    """Hold the run no more once its interrupt was answered, but until what is to be undone is."""
    step = Step.objects.get(pk=str(interrupt.step))
    undoes = step.undo_wanted or step.status == StepStatus.COMPENSATING
    if resolution != Resolution.COMPENSATE or not undoes:
        release(work, Verdict.objects.get(step=step))


def undone(work: Work, step: Step) -> None:
    """Hold the run no more: the effect was undone, or a person leaves it as it is."""
    if version_of(step).verifier is None:
        return
    recorded = Verdict.objects.filter(step=step).exclude(status=VerdictStatus.AWAITED).first()
    if recorded is not None:
        release(work, recorded)
