"""What the engine asks of approvals (interrupts.authorizer.Authorizer), under the run's lock."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

from approvals import (
    authority,
    deciders,
    judging,
    owed,
    routing,
    selectors,
    staging,
    substitutes,
    transitions,
)
from approvals.authority import Call
from approvals.calls import call_of
from approvals.models import OPEN_GATES, Decision, Gate, GateState
from approvals.policy.stages import Stage
from interrupts import catalogue
from interrupts.authorizer import Judgement
from interrupts.errors import UnknownTool
from interrupts.models import Interrupt, Run, Step, ToolVersion
from interrupts.transitions import holds
from interrupts.work import Work
from tenants.scope import current_tenant_id

NEWER_VERSION = "Its tool has a newer version."
RETIRED = "The tool was retired."
CHANGED = "The tool has changed, and the arguments do not fit it any more."


class PolicyAuthorizer:
    """Judges by the tenant's declared policy, and asks people where it says so."""

    def judge(self, work: Work, step: Step, arguments: bytes) -> Judgement:
        """Say what policy says of the step, as a call of the version in force of its tool.

        What waited under an older version becomes a call of the newer, or is denied.
        """
        taken_up = adopt_current(work, step, arguments)
        if taken_up is not None and taken_up.verdict == "deny":
            return taken_up
        version = catalogue.version(current_tenant_id(), step.tool_version_id)
        return judging.judge(work, step, version, arguments)

    def judge_completion(self, work: Work) -> Judgement:
        """Say what policy says of the run's completion."""
        return judging.judge_completion(work)

    def reauthorize(self, work: Work, step: Step, arguments: bytes) -> Judgement | None:
        """Judge an authorised step whose stamp is stale; None: its authorization still holds.

        A newer version of its tool is taken up, and whatever was approved of the older is asked
        anew. Votes of people who may not decide any more count no longer.
        """
        held = adopt_current(work, step, arguments)
        if held is not None and held.verdict == "deny":
            return held
        now = self.judge(work, step, arguments)
        if step.authorized_by != "decision" or now.verdict == "deny":
            return now
        if held is not None:
            return asked_anew(now, NEWER_VERSION)
        if now.verdict == "allow":
            return None
        votes = _votes(step)
        if not _approved_enough(work, step, votes, now, arguments):
            return now
        _end_with_substitutions(step, votes)
        return None

    def open_gate(
        self, work: Work, step: Step, judgement: Judgement, gate_id: UUID, interrupt: Interrupt
    ) -> None:
        """Open the gate ``gate_id`` that ``judgement`` (an ``approve``) asks for."""
        transitions.open_gate(work, step, judgement, gate_id, interrupt)

    def record(self, work: Work, step: Step, judgement: Judgement) -> UUID:
        """Refuse: nothing but policy allows a step here."""
        raise ValueError(f"{judgement.by} allows nothing of step {step.pk} of run {work.run.pk}")

    def close_gate(
        self, work: Work, gate_id: UUID, state: Literal["withdrawn", "superseded"], why: str
    ) -> None:
        """Close an open gate without a verdict; one that is final stays as it is.

        An approval that no longer holds is final and may yet be superseded.
        """
        gate = Gate.objects.get(pk=gate_id)
        if transitions.can_close(gate, GateState(state)):
            transitions.close(work, gate, GateState(state), why)

    def expire_gate(self, work: Work, gate_id: UUID) -> tuple[bool, str]:
        """Say whether the gate has expired by ``work.now`` and what its expiry does; mark it.

        One that others are asked about next has not: it goes on, and they are asked.
        """
        gate = Gate.objects.get(pk=gate_id)
        then = gate.on_expiry or "reject"
        if gate.state not in OPEN_GATES or gate.expires_at is None or gate.expires_at > work.now:
            return False, then
        if then == "escalate" and gate.interrupt is not None:
            _escalate(work, gate, gate.interrupt)
            return False, then
        owed.tell_of_expiry(gate, work.now)
        transitions.close(work, gate, GateState.EXPIRED, "nobody decided in time")
        return True, then

    def tell_of_outcome(self, work: Work, step: Step) -> None:
        """Have those told who approved the step, and where it is unknown those who settle it."""
        owed.tell_of_outcome(work, step)

    def tell_of_interrupt(self, work: Work, interrupt: Interrupt) -> None:
        """Have those told who are to answer it, where no gate and no other mail asks them."""
        owed.tell_of_interrupt(work, interrupt)

    def may_decide_any(self, user_id: UUID, run: Run) -> bool:
        """Say whether the person may decide a tool of one of the run's steps."""
        return authority.may_decide_any(user_id, selectors.tools_of(run), run)

    def limits(self, run: Run) -> dict[str, Any]:  # noqa: ARG002 - the same for every run today
        """Return the tenant's budget limits now in force."""
        return dict(judging.policy(judging.number_now()).document.get("budgets") or {})

    def daily_limits(self, work: Work) -> dict[str, Any]:
        """Return what the run's agent may use in a day, all its runs together; empty: anything."""
        return judging.daily_limits(work)

    def policy_version(self) -> int:
        """Return the number of the policy version in force."""
        return judging.number_now()

    def allowed_hosts(self) -> Sequence[str]:
        """Return the `host:port` pairs with private addresses that tools may call."""
        document = judging.policy(judging.number_now()).document
        return tuple(document.get("allowed_hosts") or ())


def _escalate(work: Work, gate: Gate, interrupt: Interrupt) -> None:
    transitions.escalate(work, gate)
    if gate.stages:
        staging.count(work, gate)
    holds.ask_otherwise(work, interrupt, expires_at=gate.expires_at, on_expiry=gate.on_expiry)
    work.due(gate.expires_at)


def adopt_current(work: Work, step: Step, arguments: bytes) -> Judgement | None:
    """Make the step a call of its tool's version in force; None: it is one already.

    Denied where the tool was retired, or the arguments do not fit it any more.
    """
    version = current_version(work, step)
    if version is not None and version.pk == step.tool_version_id:
        return None
    denial = unfit(version, arguments)
    if version is None or denial is not None:
        return Judgement("deny", "tool", judging.number_under(work.authority_version), denial)
    transitions.adopt(work, step, version)
    return Judgement("approve", "tool", judging.number_under(work.authority_version))


def current_version(work: Work, step: Step) -> ToolVersion | None:
    """Return the version in force of the step's tool; None where it was retired."""
    try:
        return catalogue.current_version(step.tool_name, work.authority_version)
    except UnknownTool:
        return None


def unfit(version: ToolVersion | None, arguments: bytes) -> str | None:
    """Say why these arguments are no call of that version; None: they are one."""
    if version is None:
        return RETIRED
    faults = catalogue.validator(current_tenant_id(), version.pk).validate(json.loads(arguments))
    return CHANGED if faults else None


def asked_anew(now: Judgement, why: str) -> Judgement:
    """Ask about what a person had approved, whatever policy would allow by itself."""
    if now.verdict == "approve":
        return now
    trigger = {"rule": now.rule, "trigger": "default", "explanation": why}
    return dataclasses.replace(now, verdict="approve", detail={"triggers": [trigger]})


def _votes(step: Step) -> list[Decision]:
    found = Decision.objects.filter(gate=step.authorized_gate)
    return [one for one in found if selectors.is_vote(one)]


def _end_with_substitutions(step: Step, votes: Sequence[Decision]) -> None:
    """Have the authorization end no later than the first substitution of those that run by now."""
    pairs = {(one.user_id, one.acting_for_id) for one in votes if one.acting_for_id is not None}
    ends = (substitutes.first_end([pair]) for pair in pairs)
    until = (one for one in (step.authorized_until, *ends) if one is not None)
    step.authorized_until = min(until, default=None)


def _approved_enough(
    work: Work, step: Step, votes: list[Decision], now: Judgement, arguments: bytes
) -> bool:
    """Say whether the approvals given still make up what policy asks for, by people who may."""
    gate = Gate.objects.get(pk=str(step.authorized_gate))
    stages = routing.asked_for(gate, now)
    if len(stages) == 1:
        approvers = tuple(routing.approvers(gate, now) or gate.approvers)
        stages = [Stage(approvers, stages[0].quorum)]
    call = call_of(step, work.run, arguments)
    return all(_given(work, gate, votes, at, one, call) for at, one in enumerate(stages, 1))


def _given(
    work: Work, gate: Gate, votes: list[Decision], number: int, stage: Stage, call: Call
) -> bool:
    """Say whether one stage has what it takes; approvals of who may not decide it now end."""
    said = [one for one in votes if (one.stage or 1) == number]
    lost = deciders.lost(said, gate.tool_id, work.run, stage.approvers, call)
    if lost:
        transitions.discount(work, gate, lost)
    return len(said) - len(lost) >= stage.quorum
