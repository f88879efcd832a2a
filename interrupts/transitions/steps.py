"""Steps: authorised, settled without running, answered by a person, gated anew."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast
from uuid import UUID

from interrupts import content, queue
from interrupts.authorizer import Judgement, authorizer
from interrupts.models import (
    OPEN_STEPS,
    Interrupt,
    Outcome,
    Reason,
    Receipt,
    Resolution,
    ResponseKind,
    RunStatus,
    Source,
    Step,
    StepStatus,
)
from interrupts.transitions import holds, needs, reservations
from interrupts.transitions.moves import move_step
from interrupts.work import Work
from tenants.ids import uuid7
from tenants.journal import Actor
from tenants.models import Agent

AGENT_ENDED = "Its agent was deactivated."
STAMP = [
    "status",
    "held_by",
    "reason",
    "authorized_by",
    "authorized_rule",
    "authorized_gate",
    "authorized_digest",
    "authorized_under",
    "authorized_tool_version",
    "authorized_policy_version",
    "authorized_until",
    "judged",
]


def stamp(
    work: Work,
    step: Step,
    *,
    by: str,
    rule: str,
    policy_version: int,
    gate: UUID | None = None,
    valid_until: datetime | None = None,
) -> None:
    """Write on the step what it is authorised by, and the authority that is current now."""
    step.authorized_by = by
    step.authorized_rule = rule
    step.authorized_gate = gate
    step.authorized_digest = step.digest
    step.authorized_under = work.authority_version
    step.authorized_tool_version = step.tool_version_id
    step.authorized_policy_version = policy_version
    step.authorized_until = needs.fresh_for(step, valid_until)
    work.note(
        "step.authorized",
        step=step.pk,
        by=by,
        rule=rule,
        gate=gate,
        policy_version=policy_version,
        digest=step.digest,
        version=step.tool_version_id,
        under=work.authority_version,
        until=step.authorized_until,
    )


def keep_seen(work: Work, step: Step, judgement: Judgement) -> bool:
    """Keep on the step what its judging saw; True: it is other than before, to be saved."""
    if judgement.seen is None or (judgement.seen or None) == step.judged:
        return False
    step.judged = judgement.seen or None
    work.note("step.judged", step=step.pk, seen=step.judged)
    return True


def is_call_authorized(step: Step) -> bool:
    """Whether the step is the very call, by the very version, that its authorization speaks of."""
    return (
        step.authorized_digest == step.digest
        and step.authorized_tool_version == step.tool_version_id
    )


def authorize(
    work: Work,
    step: Step,
    *,
    by: str,
    rule: str,
    policy_version: int,
    gate: UUID | None = None,
    valid_until: datetime | None = None,
) -> None:
    """Let the step start: it is ready, stamped, and a worker is woken."""
    move_step(step, StepStatus.READY)
    step.held_by = None
    stamp(
        work,
        step,
        by=by,
        rule=rule,
        policy_version=policy_version,
        gate=gate,
        valid_until=valid_until,
    )
    step.save(
        update_fields=[
            *STAMP,
            "gate",
            "due_at",
            "arguments",
            "digest",
            "tool_version",
            "tool_number",
        ]
    )
    work.wake()


def settle_without_running(
    work: Work,
    step: Step,
    status: StepStatus,
    reason: str | None = None,
    code: str | None = None,
) -> None:
    """Settle a step that never ran: denied, rejected, revised or cancelled.

    ``code`` is of the declared reason that a person chose, where they chose one.
    """
    move_step(step, status)
    step.reason, step.reason_code = reason, code
    step.held_by = None
    step.settled_at = work.now
    step.save(update_fields=["status", "reason", "reason_code", "held_by", "settled_at", "judged"])
    work.note("step.denied" if status == StepStatus.DENIED else "step.settled", **told(step))
    reservations.give_back(work, step)
    settled(work)


def told(step: Step) -> dict[str, Any]:
    """What the journal says of a settled step."""
    return {
        "step": step.pk,
        "position": step.position,
        "status": step.status,
        "outcome": step.outcome,
        "reason": step.reason,
        **({} if step.reason_code is None else {"reason_code": step.reason_code}),
    }


def settled(work: Work) -> None:
    """Move on ``next_step``, the first position that is not settled; what is next is woken."""
    run = work.run
    unsettled = Step.objects.filter(
        run=run, position__gte=run.next_step, status__in=sorted(OPEN_STEPS)
    )
    first = unsettled.order_by("position").values_list("position", flat=True).first()
    run.next_step = first if first is not None else run.last_position + 1
    if run.status == RunStatus.RUNNING and first is not None:
        work.wake()


def respond(work: Work, step: Step, value: bytes, *, by: Actor, sensitive: bool = False) -> None:
    """Settle the step with a person's answer in place of running it; ``value`` is canonical."""
    move_step(step, StepStatus.SUCCEEDED)
    step.result = content.put(value, sensitive=sensitive)
    step.outcome = Outcome.SUCCEEDED
    step.held_by = None
    step.settled_at = work.now
    step.save(update_fields=["status", "result", "outcome", "held_by", "settled_at"])
    receipt = Receipt.objects.create(
        run=work.run,
        step=step,
        source=Source.PERSON,
        outcome=Outcome.SUCCEEDED,
        result=step.result,
        by=str(by),
        observed_at=work.now,
    )
    work.note(
        "receipt.recorded",
        receipt=receipt.pk,
        step=step.pk,
        source=receipt.source,
        outcome=receipt.outcome,
        result=bytes(step.result).hex(),
        by=None,
    )
    work.note("step.settled", **told(step))
    reservations.give_back(work, step)
    settled(work)


def ask(work: Work, pairs: list[tuple[Step, Judgement]]) -> None:
    """Hold each step by a gate: one suspension, one checkpoint, an interrupt and a gate each."""
    if not pairs:
        return
    gates = [uuid7() for _ in pairs]
    asked = [_hold_for(*pair, gate) for pair, gate in zip(pairs, gates, strict=True)]
    for (step, _), hold in zip(pairs, asked, strict=True):
        if step.status != StepStatus.WAITING:
            move_step(step, StepStatus.WAITING)
        step.held_by, step.gate, step.interrupt = "gate", hold.gate, hold.id
        step.save(update_fields=["status", "held_by", "gate", "interrupt", "twin", "judged"])
    interrupts = holds.open_holds(work, *asked)
    for (step, judgement), gate, interrupt in zip(pairs, gates, interrupts, strict=True):
        authorizer().open_gate(work, step, judgement, gate, interrupt)


def _hold_for(step: Step, judgement: Judgement, gate: UUID) -> holds.Hold:
    return holds.Hold(
        reason=judgement.interrupt_reason,
        kind=ResponseKind.DECISION,
        question=f"May {step.tool_name} run as shown?",
        who=("decider",),
        allowed=(Resolution.RESUME, Resolution.CANCEL),
        step=step.pk,
        gate=gate,
        evidence={"rule": judgement.rule, "policy_version": judgement.policy_version},
        expires_at=judgement.expires_at,
        on_expiry=judgement.on_expiry,
    )


def apply(work: Work, pairs: list[tuple[Step, Judgement]]) -> None:
    """Do what policy says of proposed or held steps: allow, deny, or ask about them together."""
    asked = []
    for step, judgement in pairs:
        keep_seen(work, step, judgement)
        if judgement.verdict == "deny":
            settle_without_running(work, step, StepStatus.DENIED, judgement.reason)
        elif judgement.verdict == "allow":
            _count(work, step)
            _allow(work, step, judgement)
        else:
            _count(work, step)
            asked.append((step, judgement))
    ask(work, asked)


def _allow(work: Work, step: Step, judgement: Judgement) -> None:
    """Authorise a step by policy, or by what else allows it, which then has a gate of its own."""
    with work.speaking(judgement.speaker):
        by_policy = judgement.by == "policy"
        authorize(
            work,
            step,
            by=judgement.by,
            rule=judgement.rule,
            policy_version=judgement.policy_version,
            gate=None if by_policy else authorizer().record(work, step, judgement),
            valid_until=judgement.valid_until,
        )


def is_counted(step: Step) -> bool:
    """Whether the step was let in before, and counts as used already."""
    return step.gate is not None or step.authorized_by is not None


def _count(work: Work, step: Step) -> None:
    if not is_counted(step):
        work.run.usage_steps += 1


def renew(work: Work, step: Step) -> bool:
    """Ask again about an authorised step whose stamp is stale; True where it may still start.

    It is stamped anew, gated anew (the old gate superseded) or denied. What was authorised holds
    for that very call, and no longer than it said: else policy is asked as for a proposal.
    """
    may_hold = is_call_authorized(step) and not _has_run_out(work, step)
    judgement = of_agent(work) or authorizer().reauthorize(work, step, content.get(step.arguments))
    if judgement is None and not may_hold:
        judgement = authorizer().judge(work, step, content.get(step.arguments))
    if judgement is None:
        stamp(
            work,
            step,
            by=step.authorized_by or "policy",
            rule=step.authorized_rule or "",
            policy_version=authorizer().policy_version(),
            gate=step.authorized_gate,
            valid_until=step.authorized_until,
        )
        step.save(update_fields=STAMP)
        return True
    if step.authorized_gate is not None:
        authorizer().close_gate(work, step.authorized_gate, "superseded", "no longer holds")
    if judgement.verdict != "deny" and (missed := needs.lacking(step, work.now)):
        needs.hold(work, step, missed)
        return False
    keep_seen(work, step, judgement)
    if judgement.verdict == "allow":
        stamp(
            work,
            step,
            by="policy",
            rule=judgement.rule,
            policy_version=judgement.policy_version,
            valid_until=judgement.valid_until,
        )
        step.save(update_fields=STAMP)
        return True
    if judgement.verdict == "deny":
        settle_without_running(work, step, StepStatus.DENIED, judgement.reason)
    else:
        move_step(step, StepStatus.WAITING)
        ask(work, [(step, judgement)])
    return False


def _has_run_out(work: Work, step: Step) -> bool:
    return step.authorized_until is not None and step.authorized_until <= work.now


def of_agent(work: Work) -> Judgement | None:
    """What an agent proposed that acts no more is denied; None: it acts still."""
    if Agent.objects.filter(pk=work.run.agent_id, active=True).exists():
        return None
    return Judgement("deny", "agent", authorizer().policy_version(), reason=AGENT_ENDED)


def withdraw(work: Work, step: Step, status: StepStatus, reason: str | None) -> None:
    """Settle a step that has not started, with its gate withdrawn and its interrupt resolved."""
    interrupt = _holding(work, step)
    settle_without_running(work, step, status, reason)
    if step.gate is not None:
        authorizer().close_gate(work, step.gate, "withdrawn", reason or status)
    if interrupt is not None:
        resolution = Resolution.REVISE if status == StepStatus.REVISED else Resolution.CANCEL
        holds.resolve(work, interrupt, resolution, by=work.actor)


def _holding(work: Work, step: Step) -> Interrupt | None:
    """Return the open interrupt that is about this step alone, where there is one."""
    held = holds.open_of(work)
    if step.held_by == "context":
        found = held.filter(step=step.pk, reason=Reason.CONTEXT_MISSING).first()
    else:
        found = held.filter(pk=step.interrupt).first() if step.interrupt else None
    return cast("Interrupt | None", found)


def release_twins(work: Work, step: Step) -> None:
    """Have the runs looked at whose steps wait for this one, once its outcome has committed.

    Not in this transaction: their rows would be locked out of order. A run that holds such a step
    also looks by itself from time to time.
    """
    waiting = Step.objects.filter(twin=step.pk, status=StepStatus.WAITING, held_by="twin")
    runs = set(waiting.values_list("run_id", flat=True)) - {work.run.pk}
    if runs:
        queue.look_soon(sorted(runs))
