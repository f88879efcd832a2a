"""What a rule allows, written in the step's own transaction: as a person's decision is, in their name.

The gate is final as it opens: nobody is asked, nothing is suspended, and there is no interrupt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from approvals import transitions as gates
from approvals.models import Decision, Gate, GateState, Pattern, Verdict
from delegation.models import Delegation, DelegationDay, DelegationUse
from interrupts.authorizer import Judgement
from interrupts.models import Step
from interrupts.work import Work
from tenants.ids import uuid7
from tenants.journal import Actor

BY: Final = "delegation"


@dataclass(frozen=True, slots=True)
class Allowed:
    """A call that a rule allows, what policy said of it, and the day that it counts in."""

    rule: Delegation
    body: bytes
    day: DelegationDay
    asked: Judgement


def speaker(rule: Delegation) -> Actor:
    """Return who speaks in the journal where a rule decides."""
    return Actor(BY, str(rule.pk))


def record(work: Work, step: Step, allowed: Allowed) -> UUID:
    """Write the gate, the decision in the person's name, the use and the day; return the gate's id."""
    rule = allowed.rule
    gate = gates.made_gate(work, step, allowed.asked, uuid7(), None, allowed.body)
    gate.pattern, gate.state, gate.settled_at = Pattern.ALLOWLIST, GateState.APPROVED, work.now
    gate.expires_at = gate.on_expiry = None
    gate.save(force_insert=True)
    gates.tell_opened(work, gate)
    decision = _decide(work, gate, rule)
    DelegationUse.objects.create(
        delegation=rule, version=rule.version, decision=decision.pk, step=step.pk, at=work.now
    )
    allowed.day.save(update_fields=["calls", "sums"])
    step.gate = gate.pk  # kept with its authorization
    return gate.pk


def _decide(work: Work, gate: Gate, rule: Delegation) -> Decision:
    decision = Decision.objects.create(
        gate=gate,
        user_id=rule.user_id,
        delegation=rule.pk,
        verdict=Verdict.APPROVE,
        digest=gate.digest,
        approves=gate.arguments_digest,
        policy_version=gate.policy_version,
        at=work.now,
    )
    work.note(
        "gate.decided",
        gate=gate.pk,
        step=gate.step_id,
        decision=decision.pk,
        verdict=decision.verdict,
        digest=decision.digest,
        approves=decision.approves,
        edits=None,
        policy_version=decision.policy_version,
        delegation=rule.pk,
        delegation_version=rule.version,
        delegation_sha256=rule.sha256,
    )
    return decision
