"""What people are owed by e-mail once something became of a decision: rows of the outbox.

They are written in the transaction of what they tell, each once for a person and a thing; what is
in the mail is written when it is sent (services/notices).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from approvals import deciders, selectors, substitutes
from approvals.models import Assignment, Decision, Gate
from interrupts.models import (
    Interrupt,
    InterruptStatus,
    Question,
    Reason,
    Run,
    Step,
    StepStatus,
)
from interrupts.work import Work
from tenants.models import Membership, OutboxMessage, Role
from tenants.queue import tell_soon

VOTE: Final = "notice.vote"  # another decided what the person had approved: about the decision
EXPIRED: Final = "notice.expired"  # nobody decided what had waited for the person: about the gate
ANSWER: Final = "notice.answer"  # the agent has answered what the person asked: about the question
HANDED: Final = "notice.handed"  # another handed it to the person: about the gate
FAILED: Final = "notice.failed"  # what the person approved: about the step
UNKNOWN: Final = "notice.unknown"  # likewise: about the interrupt
RECOVERY: Final = "notice.recovery"  # an operator is to settle it: about the same interrupt
FOUND: Final = "notice.found"  # what was told as unknown is known: about the same interrupt
HELD: Final = "notice.held"  # the person is to answer an interrupt: about it
SUGGESTED: Final = "notice.suggestion"  # a rule is suggested to the person: about the rule
PAUSED: Final = "notice.pause"  # a rule of the person's was paused: about that pause of it
# Interrupts that nothing else tells of: of those with a gate its mails do, who stopped a run knows it.
TOLD: Final = frozenset(
    {
        Reason.VERIFIER_REJECTED,
        Reason.EFFECT_FAILED,
        Reason.BUDGET_EXHAUSTED,
        Reason.CONTEXT_MISSING,
        Reason.INPUT_REQUIRED,
        Reason.AGENT_REQUESTED,
        Reason.OWNER_LOST,
        Reason.MILESTONE,
    }
)
SETTLERS: Final = (Role.OPERATOR, Role.ADMIN)
_ACT: Final = tuple(role for role in Role if role != Role.VIEWER)
# Most lost answers are found out by asking the tool; whom nobody can help is told after that.
PATIENCE: Final = timedelta(minutes=1)


def tell_voters(decision: Decision, voters: Iterable[UUID], now: datetime) -> None:
    """Have those told who had approved what another has now decided, or changed."""
    _owe(VOTE, decision.pk, set(voters) - {decision.user_id}, now)


def tell_of_expiry(gate: Gate, now: datetime) -> None:
    """Have those told for whom the gate had waited, and who might have decided it for them."""
    waited = Assignment.objects.filter(gate=gate, passed_at=None)
    asked = set(waited.values_list("user_id", flat=True))
    _owe(EXPIRED, gate.pk, asked | _standing_in_for(asked, gate), now)


def tell_of_answer(question: Question, now: datetime) -> None:
    """Have whoever asked told that the agent has answered."""
    _owe(ANSWER, question.pk, [question.by_id], now)


def tell_of_handover(gate: Gate, giver: UUID, to: UUID, now: datetime) -> None:
    """Have a person told, once, that somebody has handed them the gate, and who decides for them.

    Not who handed it on, nor a substitute for whom it waits in any case.
    """
    waits = Assignment.objects.filter(gate=gate, passed_at=None)
    told = _standing_in_for({to}, gate) - {giver, *waits.values_list("user_id", flat=True)}
    _owe(HANDED, gate.pk, {to, *told}, now)


def _standing_in_for(people: set[UUID], gate: Gate) -> set[UUID]:
    """Return who may decide the gate now by the authority of one of these that they stand in for."""
    stands = substitutes.standing_in_for(people)
    if not stands:
        return set()
    may = deciders.entitled([gate.pk], {one.substitute_id for one in stands}).get(gate.pk, set())
    return {user for user, holder in may if holder in people and user != holder}


def tell_of_rule(kind: str, about: UUID, person: UUID, now: datetime) -> None:
    """Have a person told, once, what became of a rule of theirs: SUGGESTED or PAUSED."""
    _owe(kind, about, [person], now)


def tell_of_outcome(work: Work, step: Step) -> None:
    """Have those told whom it concerns that a step's outcome is unknown, failed, or found out."""
    if step.status == StepStatus.UNKNOWN:
        _tell_of_unknown(work, step)
        return
    failed = step.status == StepStatus.FAILED
    approvers = _approvers(step) if failed else set()
    if failed:
        _owe(FAILED, step.pk, approvers, work.now)
    unknown = _recoveries(step)
    told = OutboxMessage.objects.filter(
        kind__in=(UNKNOWN, RECOVERY), about__in=[one.pk for one in unknown], attempts__gt=0
    )
    for about, recipient in told.values_list("about", "recipient"):
        if about is not None and recipient is not None and recipient not in approvers:
            _owe(FOUND, about, [recipient], work.now)


def _tell_of_unknown(work: Work, step: Step) -> None:
    recovery = next((r for r in _recoveries(step) if r.status == InterruptStatus.OPEN), None)
    if recovery is None:
        return
    due_at = work.now + PATIENCE if step.ask_at is not None else work.now
    settlers = _in_roles(SETTLERS)
    _owe(RECOVERY, recovery.pk, settlers, due_at)
    _owe(UNKNOWN, recovery.pk, _approvers(step) - settlers, due_at)


def tell_of_interrupt(work: Work, interrupt: Interrupt) -> None:
    """Have those told who are to answer it; a silent agent may come back within a minute."""
    if interrupt.gate is not None or interrupt.reason not in TOLD:
        return
    due_at = work.now + PATIENCE if interrupt.reason == Reason.OWNER_LOST else work.now
    _owe(HELD, interrupt.pk, answerers(interrupt, work.run), due_at)


def answerers(interrupt: Interrupt, run: Run) -> set[UUID]:
    """Return who is to answer the interrupt: not who opened it, and of deciders who approved its step.

    A viewer answers nothing. A run's completion is agreed to neither by whom it is for nor by who
    answers for its agent.
    """
    others: set[UUID] = set()
    if "requester" in interrupt.who and run.requested_by_id is not None:
        others.add(run.requested_by_id)
    if "decider" in interrupt.who and interrupt.step is not None:
        others |= _approvers(Step.objects.get(pk=str(interrupt.step)))
    found = _in_roles([role for role in SETTLERS if role in interrupt.who])
    found |= others and others & _in_roles(_ACT)
    if interrupt.reason == Reason.MILESTONE:
        found -= {run.requested_by_id, run.agent.owner_id}
    return {one for one in found if str(one) != interrupt.opened_by.get("id")}


def _in_roles(roles: Iterable[str]) -> set[UUID]:
    live = Membership.objects.filter(role__in=list(roles), active=True)
    return set(live.values_list("user_id", flat=True))


def _recoveries(step: Step) -> list[Interrupt]:
    rows = Interrupt.objects.filter(run=step.run_id, step=step.pk, reason=Reason.OUTCOME_UNKNOWN)
    return list(rows.order_by("-id"))


def _approvers(step: Step) -> set[UUID]:
    """Return who approved the step, where people did."""
    if step.authorized_gate is None:
        return set()
    said = Decision.objects.filter(gate=step.authorized_gate)
    return {one.user_id for one in said if selectors.is_vote(one)}


def _owe(kind: str, about: UUID, people: Iterable[UUID], due_at: datetime) -> None:
    """Write what these people are owed; who is owed it already is not owed it twice."""
    live = Membership.objects.filter(user__in=list(people), active=True, user__is_active=True)
    owed = [
        OutboxMessage(kind=kind, payload={}, about=about, recipient=user_id, due_at=due_at)
        for user_id in live.exclude(user__email="").values_list("user_id", flat=True)
    ]
    if owed:
        OutboxMessage.objects.bulk_create(owed, ignore_conflicts=True)
        tell_soon()
