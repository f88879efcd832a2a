"""A run's completion, which a person lets go on where policy asks about a milestone before it."""

from __future__ import annotations

from typing import Any

from config import jsontext
from interrupts.authorizer import Judgement, authorizer
from interrupts.errors import CompletionDenied, MayNot
from interrupts.models import Interrupt, Reason, Resolution, ResponseKind, Run, RunStatus
from interrupts.transitions import holds, runs, wording
from interrupts.work import Work
from tenants.models import Agent
from tenants.principal import Principal


def complete(work: Work, output: Any) -> None:
    """End the run as completed, or hold it till a person agrees to this very output.

    Raises CompletionDenied. Nothing of the run is open.
    """
    judgement = authorizer().judge_completion(work)
    if judgement.verdict == "deny":
        raise CompletionDenied(judgement.reason)
    if judgement.verdict == "approve" and not _is_agreed(work, judgement, output):
        holds.open_holds(work, _hold(judgement, output))
        return
    work.run.output = output
    runs.end(work, RunStatus.COMPLETED)


def of_completion(interrupt: Interrupt) -> bool:
    """Say whether the interrupt holds its run's completion, and no step."""
    return interrupt.reason == Reason.MILESTONE and interrupt.step is None


def check_agrees(principal: Principal, run: Run) -> None:
    """Raise MayNot for whom the run is made for, and for who answers for its agent."""
    if may_not_agree(principal, run):
        raise MayNot(
            "Whoever asked for the run, or answers for its agent, does not let it complete."
        )


def may_not_agree(principal: Principal, run: Run) -> bool:
    own = run.requested_by_id == principal.id
    return own or Agent.objects.filter(pk=run.agent_id, owner=principal.id).exists()


def go_on(work: Work, interrupt: Interrupt) -> None:
    """Complete a run whose completion a person agreed to, unless something else holds it.

    Its agent then completes it once it runs again: what was agreed to is not asked again.
    """
    if work.run.status == RunStatus.RUNNING and not runs.outstanding(work.run):
        work.finish()  # it runs first: no run goes from suspended to completed
        complete(work, interrupt.evidence["output"])


def _is_agreed(work: Work, judgement: Judgement, output: Any) -> bool:
    """Say whether people agreed to every milestone that is asked about, with this output."""
    answered = Interrupt.objects.filter(
        run=work.run, reason=Reason.MILESTONE, step=None, resolution=Resolution.RESUME
    )
    same = jsontext.canonical(output)
    agreed = [
        point
        for evidence in answered.values_list("evidence", flat=True)
        if jsontext.canonical(evidence["output"]) == same
        for point in evidence["milestones"]
    ]
    return all(point in agreed for point in judgement.detail["points"])


def _hold(judgement: Judgement, output: Any) -> holds.Hold:
    return holds.Hold(
        reason=Reason.MILESTONE,
        kind=ResponseKind.RELEASE,
        question=wording.MAY_COMPLETE,
        allowed=(Resolution.RESUME, Resolution.REVISE, Resolution.CANCEL),
        evidence={
            "milestones": judgement.detail["points"],
            "rule": judgement.rule,
            "reason": judgement.reason,
            "policy_version": judgement.policy_version,
            "triggers": judgement.detail["triggers"],
            "output": output,
        },
    )
