"""What a rule allows, written in the step's own transaction: as a person's decision is, in their name.

The gate is final as it opens: nobody is asked, nothing is suspended, and there is no interrupt.
"""

from __future__ import annotations

import json
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
from tenants.records import as_record, insert_sql
from tenants.statements import prepared

BY: Final = "delegation"
# All that is kept of it in one statement: each is of a table of its own.
_WRITE: Final = f"""
WITH gate AS ({insert_sql(Gate)}),
    decision AS ({insert_sql(Decision)}),
    used AS ({insert_sql(DelegationUse)})
UPDATE delegation_delegationday SET calls = %b::bigint, sums = %b::jsonb
 WHERE id = %b::uuid RETURNING calls"""  # noqa: S608 - names of ours


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
    rule, day = allowed.rule, allowed.day
    gate = _gate(work, step, allowed)
    decision = _decision(work, gate, rule)
    use = DelegationUse(
        delegation=rule, version=rule.version, decision=decision.pk, step=step.pk, at=work.now
    )
    written = [as_record(one) for one in (gate, decision, use)]
    if not prepared(_WRITE, [*written, day.calls, json.dumps(day.sums), day.pk]):
        raise DelegationDay.DoesNotExist(f"{day} is not there any more")
    gates.tell_opened(work, gate)
    _tell(work, decision, gate, rule)
    step.gate = gate.pk  # kept with its authorization
    return gate.pk


def _gate(work: Work, step: Step, allowed: Allowed) -> Gate:
    gate = gates.made_gate(work, step, allowed.asked, uuid7(), None, body=allowed.body)
    gate.pattern, gate.state, gate.settled_at = Pattern.ALLOWLIST, GateState.APPROVED, work.now
    gate.expires_at = gate.on_expiry = None
    return gate


def _decision(work: Work, gate: Gate, rule: Delegation) -> Decision:
    return Decision(
        gate=gate,
        user_id=rule.user_id,
        delegation=rule.pk,
        verdict=Verdict.APPROVE,
        digest=gate.digest,
        approves=gate.arguments_digest,
        policy_version=gate.policy_version,
        bulk=False,
        at=work.now,
    )


def _tell(work: Work, decision: Decision, gate: Gate, rule: Delegation) -> None:
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
