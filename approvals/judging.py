"""The policy in force, compiled once a version, and what it says of one call.

Publishing a policy raises the tenant's authority version in its own transaction, so the version in
force is remembered for one authority version, as the catalogue remembers tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import JSONField, Max
from django.db.models.expressions import RawSQL

from approvals import circumstances, reaching
from approvals.models import PolicyStatus, PolicyVersion
from approvals.policy import (
    DEFAULT,
    CompiledPolicy,
    Denials,
    Subject,
    Verdict,
    compile_policy,
    offered,
)
from approvals.policy import judge_completion as judge_completion_by
from approvals.policy.ends import NEVER, End, joined_end
from approvals.policy.milestones import Point
from config.memo import Memo
from interrupts.authorizer import Judgement
from interrupts.models import Reason, Run, Step, ToolVersion
from interrupts.work import Work
from tenants.models import Agent
from tenants.scope import current_tenant_id

NO_POLICY: Final = 0  # the number of the version in force before the first is published
_REASONS: Final[Mapping[str, Reason]] = {
    "risk": Reason.RISK_THRESHOLD,
    "confidence": Reason.CONFIDENCE_THRESHOLD,
    "milestone": Reason.MILESTONE,
}


class Policy(NamedTuple):
    """A published version: its document, and what judges by it."""

    number: int
    document: Mapping[str, Any]
    compiled: CompiledPolicy


_POLICIES: Memo[Policy] = Memo(512)
_NUMBERS: Memo[int] = Memo(4096)
_DENIALS: Memo[Denials] = Memo(512)
_THAT_DENY: Final = """jsonb_path_query_array(document, '$.rules[*] ? (@.then == "deny")')"""


def number_now() -> int:
    """Read which version is in force; 0 where none was published."""
    published = PolicyVersion.objects.filter(status=PolicyStatus.PUBLISHED)
    return published.aggregate(number=Max("number"))["number"] or NO_POLICY


def number_under(authority_version: int) -> int:
    """Return which version is in force under an authority version that was read under the lock."""
    # No policy at all is falsy to the memory, and so is read again each time.
    return _NUMBERS.get((current_tenant_id(), authority_version), number_now)


def policy(number: int) -> Policy:
    return _POLICIES.get((current_tenant_id(), number), lambda: _read(number))


def _read(number: int) -> Policy:
    document: Mapping[str, Any] = {}
    if number != NO_POLICY:
        document = PolicyVersion.objects.get(number=number, status=PolicyStatus.PUBLISHED).document
    return Policy(number, document, compile_policy(document))


def denials(number: int) -> Denials:
    """Return which of the versions published up to ``number`` began to deny what."""
    return _DENIALS.get((current_tenant_id(), number), lambda: Denials(_that_deny(number)))


def _that_deny(number: int) -> list[tuple[int, list[dict[str, Any]]]]:
    published = PolicyVersion.objects.filter(status=PolicyStatus.PUBLISHED, number__lte=number)
    that_deny = RawSQL(_THAT_DENY, (), output_field=JSONField())  # noqa: S611 - no value is in it
    return list(published.order_by("number").values_list("number", that_deny))


def reasons(number: int, tool: str) -> list[dict[str, Any]]:
    """Return the reasons that a policy version declares for deciding calls of the tool."""
    declared = policy(number).document.get("reasons")
    return offered(declared, tool) if declared else []


@lru_cache(maxsize=10_000)
def _agent(
    tenant: UUID,  # noqa: ARG001
    agent: UUID,
    authority_version: int,  # noqa: ARG001
) -> tuple[str, Mapping[str, Any], UUID]:
    """Return the agent's name, what is declared of its own that it may use in a day, and which of
    those that had its name it is."""
    found = Agent.objects.only("name", "daily_budget", "begun_again_at").get(pk=agent)
    return found.name, found.daily_budget, found.identity


def agent_name(work: Work) -> str:
    """Return the name of the run's agent."""
    return _agent(work.run.tenant_id, work.run.agent_id, work.authority_version)[0]


def agent_identity(work: Work) -> UUID:
    """Return which agent the run's is, among those that have or had its name."""
    return _agent(work.run.tenant_id, work.run.agent_id, work.authority_version)[2]


def daily_limits(work: Work) -> dict[str, Any]:
    """Return what the run's agent may use in a day: its own limits, else those of every agent."""
    run = work.run
    return dict(_daily_limits(run.tenant_id, run.agent_id, work.authority_version))


@lru_cache(maxsize=10_000)
def _daily_limits(tenant: UUID, agent: UUID, authority_version: int) -> Mapping[str, Any]:
    of_all = policy(number_under(authority_version)).document.get("daily_budget") or {}
    return {**of_all, **_agent(tenant, agent, authority_version)[1]}


def subject(
    tool: str,
    version: ToolVersion,
    arguments: Any,
    said: Mapping[str, Any],
    known: Mapping[str, Any],
    reached: tuple[Point, ...],
    *,
    agent: str,
    workflow: str,
    depth: int = 0,
) -> Subject:
    """Return a call as policy sees it; ``said`` are the agent's own words about it.

    ``known`` are its circumstances, those that the policy asks about, ``reached`` the declared
    milestones at which it stands.
    """
    return Subject(
        tool=tool,
        effect=version.effect,
        risk=version.risk,
        arguments=arguments,
        agent=agent,
        workflow=workflow,
        confidence=said.get("confidence"),
        risk_score=said.get("risk_score"),
        milestone=said.get("milestone"),
        depth=depth,
        known=known,
        reached=reached,
    )


def judge(work: Work, step: Step, version: ToolVersion, arguments: bytes) -> Judgement:
    """Say what the policy in force says of the step with these arguments, canonical JSON."""
    run: Run = work.run
    in_force = policy(number_under(work.authority_version))
    known, seen = circumstances.at_judging(in_force.compiled, work, step)
    reached = reaching.reached_now(in_force.compiled, work, step)
    verdict = in_force.compiled.judge(
        subject(
            step.tool_name,
            version,
            json.loads(arguments),
            step.proposal,
            known,
            reached or (),
            agent=_agent(run.tenant_id, run.agent_id, work.authority_version)[0],
            workflow=run.workflow,
            depth=len(run.path),
        )
    )
    if reached is not None:
        seen["milestones"] = [list(point) for point in reached]
    return judgement(work, verdict, in_force.number, _seen(step, verdict, seen))


def judge_completion(work: Work) -> Judgement:
    """Say what the policy in force says of the run's completion."""
    run: Run = work.run
    in_force = policy(number_under(work.authority_version))
    if not in_force.compiled.declared:
        return Judgement("allow", DEFAULT, in_force.number)
    agent = _agent(run.tenant_id, run.agent_id, work.authority_version)[0]
    known = circumstances.at_completion(work, in_force.compiled.time_zone)
    verdict = judge_completion_by(in_force.compiled, completing(run, agent, known))
    made = judgement(work, verdict, in_force.number)
    made.detail["points"] = [list(point) for point in verdict.points]
    return made


def completing(run: Run, agent: str, known: Mapping[str, Any]) -> Subject:
    """Return a run that completes as policy sees it: there is no call."""
    return Subject(
        tool="",
        effect="",
        risk="",
        arguments=None,
        agent=agent,
        workflow=run.workflow,
        depth=len(run.path),
        known=known,
    )


def through_an_edit(step: Step, judged: Judgement) -> Judgement:
    """Return what is kept of an edit's judging: what was asked about stays asked about."""
    before = (step.judged or {}).get("asked", [])
    asked = (judged.seen or {}).get("asked", [])
    both = [*before, *(one for one in asked if one not in before)]
    return replace(judged, seen={**(judged.seen or {}), "asked": both}) if both else judged


def _seen(step: Step, verdict: Verdict, kept: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a judging; the score that was given first stays: of what was proposed."""
    if verdict.points:
        kept = {**kept, "asked": [list(point) for point in verdict.points]}
    score = (step.judged or {}).get("score", verdict.score)
    return kept if score is None else {**kept, "score": score}


def judgement(
    work: Work, verdict: Verdict, number: int, seen: dict[str, Any] | None = None
) -> Judgement:
    first = _first_end(verdict)
    expires_at = None
    if first.expires_in is not None:
        expires_at = work.now + timedelta(seconds=first.expires_in)
    triggers = [dict(one) for one in verdict.triggers]
    return Judgement(
        verdict=verdict.verdict,
        rule=verdict.rule,
        policy_version=number,
        reason=verdict.reason,
        interrupt_reason=_reason(verdict.rule, triggers),
        expires_at=expires_at,
        on_expiry=(first.on_expiry or "reject") if expires_at else None,
        detail={
            "triggers": triggers,
            "quorum": verdict.quorum,
            "stages": [one.document() for one in verdict.stages],
            "approvers": list(verdict.approvers),
            "routing": _routing(verdict),
            "end": verdict.end.document(),  # of the whole decision, beside those of stages
        },
        seen=seen,
    )


def _first_end(verdict: Verdict) -> End:
    """Return when people are asked no longer at first: by the first stage, or the whole decision."""
    stages = (one.end for one in verdict.stages[:1])
    return joined_end([verdict.end, *stages]) if verdict.verdict == "approve" else NEVER


def _routing(verdict: Verdict) -> dict[str, Any]:
    """Return who is asked when, beyond the first, and how long an approval waits to take effect."""
    said = {
        "escalate_to": verdict.escalate_to,
        "escalate_in": verdict.expires_in if verdict.escalate_to else None,
        "warn_before": verdict.warn_before,
        "cool_down": verdict.cool_down or None,
        "extendable_to": verdict.extendable_to,
    }
    return {name: value for name, value in said.items() if value is not None}


def _reason(rule: str, triggers: list[dict[str, Any]]) -> Reason:
    """By the trigger of the rule that won; one that asks by action or default is a plain approval."""
    won = next((one["trigger"] for one in triggers if one["rule"] == rule), "default")
    return _REASONS.get(won, Reason.APPROVAL_REQUIRED)
