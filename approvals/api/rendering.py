"""What the API shows of a gate, to a person or to the agent whose run it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from approvals.learned import Learned
from approvals.models import OPEN_GATES, Decision, Gate, PolicyVersion, Verdict
from approvals.policy import Verdict as Judged
from approvals.policy.ends import End
from approvals.services.bulk import Told
from approvals.services.simulation import Explained
from approvals.shown import GateShown, StageShown
from interrupts.models import Question
from interrupts.templates import mask
from tenants.api.answers import instant
from tenants.principal import Principal

Shown = dict[str, Any]
_CONSEQUENCES: Final = {
    Verdict.REJECT: "Nothing runs. The agent is told your reason, and the run goes on.",
    Verdict.REQUEST_CHANGES: (
        "Nothing runs. The agent is told your reason and may propose something else."
    ),
    Verdict.RESPOND: "Nothing runs. The agent gets your value as if the call had returned it.",
}


def gate(shown: GateShown, principal: Principal, learned: Learned | None = None) -> Shown:
    """Show a gate; agents are not told who decided, nor what is there to help people decide.

    ``learned`` is what is learned of the person's answers, where one gate is looked at.
    """
    row = shown.gate
    made = {
        "id": row.pk,
        "run": row.run_id,
        "step": row.step_id,
        "interrupt": row.interrupt_id,
        "state": row.state,
        **shown.facts,
        "twin": row.twin,
        "quorum": {"needed": row.quorum, "given": shown.given},
        "approvers": row.approvers,
        "stage": row.stage,
        "stages": [_stage(one) for one in shown.stages],
        "may_decide": shown.may_decide,
        "undecidable": row.undecidable_at is not None and row.state in OPEN_GATES,
        "allowed": _allowed(shown),
        "allowed_decisions": shown.allowed_decisions,
        "reasons": row.reasons if row.state in OPEN_GATES else [],
        "extendable_until": instant(shown.extendable_until),
        "on_expiry": row.on_expiry,
        "escalate_to": row.routing.get("escalate_to"),
        "escalated": "escalated_from" in row.routing,
        "cool_down": row.routing.get("cool_down", 0),
        "opened_at": instant(row.opened_at),
        "settled_at": instant(row.settled_at),
        "decisions": [_decision(one, shown, principal) for one in shown.decisions],
        "questions": [_question(one, principal) for one in shown.questions],
        "state_version": row.run.state_version,
    }
    if principal.is_person:
        made["acting_for"] = shown.acting_for
        made["similar"] = shown.similar and shown.similar._asdict()
        made["why_asked"] = learned and learned.why
        made["delegation_offer"] = learned and learned.offer
    return made


def _stage(one: StageShown) -> Shown:
    return {
        "number": one.number,
        "state": one.state,
        "approvers": list(one.approvers),
        "quorum": {"needed": one.quorum, "given": one.given},
        "decisions": [vote.pk for vote in one.votes],
        **_end(one.end),
        "expires_at": instant(one.ends_at),
    }


def _end(end: End) -> Shown:
    """Show the end that a stage has of its own; all null where it has none."""
    return {
        "expires_in": end.expires_in,
        "on_expiry": end.on_expiry,
        "escalate_to": end.escalate_to,
    }


def told(one: Told) -> Shown:
    """Show what became of one of several gates that were to be approved."""
    made: Shown = {"gate": one.gate, "status": one.status}
    if one.problem is not None:
        problem = one.problem
        made["problem"] = {
            "code": problem.code,
            "title": problem.title,
            "detail": problem.detail,
        }
    return made


def _allowed(shown: GateShown) -> list[Shown]:
    """Return the verdicts that may be given now, with what each does in plain words."""
    said = {Verdict.APPROVE: _approval(shown.gate, shown.given), **_CONSEQUENCES}
    return [
        {"verdict": verdict.value, "consequence": consequence}
        for verdict, consequence in said.items()
        if verdict in shown.allowed_decisions
    ]


def _approval(row: Gate, given: int) -> str:
    runs = f"{row.step.tool_name} runs once, with exactly what is shown."
    if cool_down := row.routing.get("cool_down"):
        runs = (
            f"{runs} Not before {cool_down} seconds have passed; until then it can be taken back."
        )
    if row.consequence:
        runs = f"{runs} {row.consequence}"
    missing = row.quorum - given
    if missing <= 1:
        return runs
    of = f", in stage {row.stage} of {len(row.stages)}" if row.stages else ""
    return f"Counts as one of {missing} approvals that are missing{of}; after the last: {runs}"


def _decision(one: Decision, shown: GateShown, principal: Principal) -> Shown:
    edits = shown.bodies.get(bytes(one.edits)) if one.edits is not None else None
    made = {
        "id": one.pk,
        "by": one.user.username,
        "acting_for": one.acting_for.username if one.acting_for else None,
        "delegation": one.delegation,
        "verdict": one.verdict,
        "digest": one.digest,
        "edits": mask(edits, shown.version.sensitive),
        "reason": one.reason,
        "reason_code": one.reason_code,
        "reason_text": one.reason_text,
        "policy_version": one.policy_version,
        "stage": one.stage,
        "counts": one.counts,
        "at": instant(one.at),
        "withdrawn_at": instant(one.withdrawn_at),
    }
    if principal.is_agent:
        del made["by"], made["acting_for"], made["delegation"]
    return made


def _question(one: Question, principal: Principal) -> Shown:
    made = {
        "id": one.pk,
        "text": one.text,
        "at": instant(one.at),
        "answer": one.answer,
        "answered_at": instant(one.answered_at),
    }
    return made if principal.is_agent else {**made, "by": one.by.username}


def asked(one: Question, principal: Principal) -> Shown:
    """Show a question by itself, as it was just asked or answered."""
    made = {
        "id": one.pk,
        "gate": one.gate,
        "text": one.text,
        "asked_at": instant(one.at),
        "answer": one.answer,
        "answered_at": instant(one.answered_at),
        "state_version": one.run.state_version,
    }
    return made if principal.is_agent else {**made, "asked_by": one.by.username}


def policy(row: PolicyVersion | None) -> Shown:
    """Show the policy in force; version 0 is none, by which reads are allowed and the rest asks."""
    if row is None:
        return {
            "policy_version": 0,
            "policy": {"rules": []},
            "digest": None,
            "why": None,
            "published_at": None,
            "published_by": None,
        }
    return {
        "policy_version": row.number,
        "policy": row.document,
        "digest": row.digest,
        "why": row.why or None,
        "published_at": instant(row.published_at),
        "published_by": row.published_by.username if row.published_by else None,
    }


def policy_versions(rows: Sequence[PolicyVersion]) -> list[Shown]:
    return [policy(row) for row in rows]


def stages(verdict: Judged) -> list[Shown]:
    """Show the stages in which a verdict asks people; none where it asks them together."""
    return [
        {"approvers": list(one.approvers), "quorum": one.quorum, **_end(one.end)}
        for one in verdict.stages
    ]


def explained(found: Explained) -> Shown:
    """Show what each rule said of a step."""
    verdict, now = found.verdict, found.now
    return {
        "step": found.step.pk,
        "policy_version": found.policy_version,
        "decided": found.decided,
        "verdict": verdict.verdict if verdict else None,
        "rule": verdict.rule if verdict else None,
        "reason": verdict.reason if verdict else None,
        "rules": None if found.rules is None else [asdict(one) for one in found.rules],
        "stages": stages(verdict) if verdict else [],
        "now": now
        and {
            "policy_version": found.version_now,
            "verdict": now.verdict,
            "rule": now.rule,
            "stages": stages(now),
        },
        "seen": found.step.judged,
    }
