"""Deciding a gate, and taking an approval back before its step has started.

A decision is one transaction: decision, gate, step, interrupt, run and journal, or nothing. What
time or a change elsewhere has made of the gate is not the person's doing: it is recorded by the
system in a transaction of its own, and the decision is then looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from approvals import (
    cases,
    deciders,
    hot,
    owed,
    selectors,
    staging,
    substitutes,
    transitions,
)
from approvals.calls import call_of
from approvals.cases import UNSET, BehindTime, Case, Wanted
from approvals.errors import AlreadyDecided, AlreadyStarted, GatePreparing
from approvals.models import OPEN_GATES, Decision, Gate, GateState, Verdict
from approvals.services import gates, preview
from approvals.shown import GateShown
from config import jsontext
from config.errors import Forbidden, PeopleOnly
from interrupts import content, queue, verification
from interrupts.errors import Damaged
from interrupts.models import InterruptStatus, Resolution, StepStatus
from interrupts.services import damage, looking
from interrupts.transitions import checkpoints, holds, steps
from interrupts.work import locked
from tenants import idempotency
from tenants.conditions import ANY_VERSION, IfMatch
from tenants.idempotency import Answer, KeyName
from tenants.principal import Principal

LOOKS: Final = 4  # a decision, and what may have to be brought up to date before it
_ENDS: Final = {
    Verdict.REJECT: (GateState.REJECTED, Resolution.RESUME),
    Verdict.REQUEST_CHANGES: (GateState.CHANGES_REQUESTED, Resolution.REVISE),
    Verdict.RESPOND: (GateState.RESPONDED, Resolution.RESUME),
}


@dataclass(frozen=True, slots=True)
class Decided:
    """The gate after a decision, and whether exactly this had been decided before."""

    gate: Gate
    decision: Decision
    replayed: bool
    shown: GateShown | None = None  # as its decider is shown it, where that was read with it


Render = Callable[[Decided], Answer]


def decide_gate(  # noqa: PLR0913 - a decision has this many members
    principal: Principal,
    gate_id: UUID,
    *,
    verdict: str,
    digest: str,
    arguments: Any = UNSET,
    value: Any = UNSET,
    reason: str | None = None,
    reason_code: str | None = None,
    confirmation: str | bool | None = None,
    hold_seconds: float | None = None,
    bulk: bool = False,
    if_match: IfMatch = ANY_VERSION,
    answer: Render | None = None,
    held: hot.Seen | None = None,
) -> Decided:
    """Decide a gate as a person; the same decision of the same person again is the first one.

    Raises PeopleOnly, NotAnApprover, OwnRequest, BeyondAuthority, NotYourStage, GateExpired,
    AlreadyDecided, GatePreparing, DigestMismatch, VersionMismatch, NotInBulk (with ``bulk`` only),
    DecisionNotAllowed, ConfirmationRequired, UnknownReason, ReasonRequired, InvalidBody,
    InvalidArguments, DeniedByPolicy, Damaged and CheckpointVersion, in this order.
    ``answer`` is kept, in the decision's transaction, as the answer of a request that named an
    idempotency key; ``held`` is what the gate holds, where that is known.
    """
    if not principal.is_person:
        raise PeopleOnly
    wanted = Wanted(
        verdict=Verdict(verdict),
        digest=digest,
        arguments=arguments,
        value=value,
        reason=reason,
        reason_code=reason_code,
        confirmation=confirmation,
        hold_seconds=hold_seconds,
        bulk=bulk,
    )
    held = held or hot.look(gate_id)
    if _is_plain(wanted) and if_match.any and held.is_sound:
        decided = _approve_plainly(principal, held, wanted, answer)
        if decided is not None:
            return decided
    renewed: str | None = None
    for _ in range(LOOKS):
        try:
            with (
                damage.noticed(held.run),
                transaction.atomic(durable=not idempotency.holds_transaction()),
            ):
                work = locked(held.run, principal.actor)
                case = cases.open_case(work, gate_id, principal, wanted)
                return _decide(case, held, if_match, answer, renewed)
        except BehindTime as behind:
            renewed = _bring_up_to_date(behind)
    raise GatePreparing("The gate changes faster than it can be decided.")


def approve_at_once(
    principal: Principal,
    held: hot.Seen,
    key: KeyName,
    body: Mapping[str, Any],
    answer: Render,
) -> Answer | None:
    """Approve a gate for a request with a key, in few round trips; None: nothing is done.

    That is so wherever the decision is more than a plain approval that nothing stands in the way
    of, or the key was named before: `decide_gate` then says what is to be said.
    """
    wanted = Wanted(**body)
    if not _is_plain(wanted) or connection.in_atomic_block or not held.is_sound:
        return None
    made = hot.approve_under_key(
        principal,
        held,
        wanted.digest,
        wanted.confirmation,
        key,
        lambda approved: answer(_decided(approved)),
    )
    if made is None:
        return None
    approved, kept = made
    queue.send_after_commit(approved.tenant, approved.run, approved.epoch)
    return kept


def _decided(approved: hot.Approved) -> Decided:
    shown = approved.shown
    return Decided(shown.gate, approved.decision, replayed=False, shown=shown)


def _is_plain(wanted: Wanted) -> bool:
    """Say whether this is an approval and nothing else, which the hot write may take."""
    nothing_else = wanted.arguments is UNSET and wanted.value is UNSET
    return (
        wanted.verdict == Verdict.APPROVE
        and nothing_else
        and wanted.reason is None
        and wanted.reason_code is None
        and not wanted.hold_seconds
        and not wanted.bulk
    )


def _approve_plainly(
    principal: Principal, held: hot.Seen, wanted: Wanted, answer: Render | None
) -> Decided | None:
    """Approve in one round trip where nothing stands in the way; None: nothing is written."""
    in_transaction = answer is not None or idempotency.holds_transaction()
    with transaction.atomic() if in_transaction else nullcontext():
        approved = hot.approve(principal, held, wanted.digest, wanted.confirmation)
        if approved is None:
            return None
        decided = _decided(approved)
        if answer is not None:
            idempotency.store_answer_within_transaction(*answer(decided))
        queue.send_after_commit(approved.tenant, approved.run, approved.epoch)
    return decided


def _bring_up_to_date(behind: BehindTime) -> str | None:
    """Record what the gate has become; return the digest of a preview that is fresh for this."""
    if behind.by == "preview":
        return preview.renew_preview(behind.gate.pk)
    if behind.by == "expiry":
        looking.look(behind.gate.run_id)
    else:
        gates.bring_up_to_date(behind.gate.pk)
    return None


def _decide(
    case: Case, held: hot.Seen, if_match: IfMatch, answer: Render | None, renewed: str | None
) -> Decided:
    if before := cases.same_decision(case):
        return Decided(case.gate, before, replayed=True)
    cases.check_authority(case)
    cases.check_state(case)
    if_match.check(case.work.run.state_version)
    cases.check_content(case)
    if renewed != case.gate.digest:
        cases.check_freshness(case)
    verification.check_history(case.work.run)
    if held.interrupt is not None:
        if held.checkpoint is None:
            raise Damaged("The checkpoint is gone.")
        checkpoints.check(held.checkpoint, case.work.run)
    decided = Decided(case.gate, _record(case), replayed=False)
    case.work.finish()
    if answer is not None:
        idempotency.store_answer_within_transaction(*answer(decided))
    return decided


def _record(case: Case) -> Decision:
    wanted, gate = case.wanted, case.gate
    voters = [one.user_id for one in case.decisions if selectors.is_vote(one)]
    _forget_own_votes(case)
    chosen = case.chosen  # of those that were shown: what policy asks for now may offer others
    edits = _take_up(case)
    value = None
    if wanted.value is not UNSET:
        value = content.put(jsontext.canonical(wanted.value), sensitive=case.is_sensitive)
    decision = Decision.objects.create(
        gate=gate,
        user_id=case.principal.id,
        acting_for_id=case.acting_for,
        verdict=wanted.verdict,
        digest=wanted.digest,
        approves=gate.arguments_digest,
        edits=edits,
        value=value,
        reason=wanted.reason,
        reason_code=wanted.reason_code,
        reason_text=chosen["text"] if chosen else None,
        policy_version=case.number,
        stage=gate.stage,
        bulk=wanted.bulk,
        at=case.work.now,
    )
    case.work.note(
        "gate.decided",
        gate=gate.pk,
        step=gate.step_id,
        decision=decision.pk,
        verdict=wanted.verdict,
        digest=wanted.digest,
        approves=gate.arguments_digest,
        edits=edits.hex() if edits else None,
        policy_version=case.number,
        **_more(case, decision, value),
    )
    if wanted.verdict != Verdict.APPROVE or edits is not None:
        queue.learn_soon()
    if wanted.verdict == Verdict.APPROVE:
        _approve(case, decision)
    else:
        _end(case, decision)
    owed.tell_voters(decision, voters, case.work.now)
    return decision


def _more(case: Case, decision: Decision, value: bytes | None) -> dict[str, Any]:
    """What the journal tells of a decision that is more than an approval of what was shown."""
    more = {
        "value": value.hex() if value is not None else None,
        "reason": case.work.imprint_of(case.wanted.reason),
        "acting_for": str(case.acting_for) if case.acting_for is not None else None,
        "reason_code": decision.reason_code,
        "reason_text": case.work.imprint_of(decision.reason_text),
        "bulk": case.wanted.bulk or None,
        # Whatever of the gate the decision has changed: an edit, or what policy asks for now.
        "imprint": case.work.imprint(case.gate, transitions.IMPRINT) if case.judged else None,
        **transitions.stage_of(case.gate),
    }
    return {name: said for name, said in more.items() if said is not None}


def _forget_own_votes(case: Case) -> None:
    """A person has one vote on what is shown, and one with whom they stand in for: the newest."""
    own = {one.user_id for one in case.decisions if one.counts and _is_own(case, one)}
    if own:
        transitions.discount(case.work, case.gate, own)


def _is_own(case: Case, one: Decision) -> bool:
    """Say whether it was by the person who decides now, or whoever they stand in for, or for them."""
    return not one.people.isdisjoint({case.principal.id, case.acting_for})


def _take_up(case: Case) -> bytes | None:
    """Write on the gate what the decision makes of it: an edit, and what policy asks for now."""
    judged = case.judged
    if judged is None:
        return None
    if case.edited is not None:
        return transitions.edit(case.work, case.gate, case.asked, case.edited, judged)
    if judged.verdict == "approve" and case.wanted.verdict == Verdict.APPROVE:
        transitions.ask_more(case.work, case.gate, judged)
    return None


def _approve(case: Case, decision: Decision) -> None:
    gate, work, step = case.gate, case.work, case.gate.step
    if not _is_enough(case):
        if case.edited is not None:
            transitions.ask_about_edit(work, gate)
        return
    held = max(case.wanted.hold_seconds or 0, gate.routing.get("cool_down", 0))
    if held:
        step.due_at = work.now + timedelta(seconds=held)
        work.due(step.due_at)
    transitions.settle(work, gate, GateState.APPROVED)
    steps.authorize(
        work,
        step,
        by="decision",
        rule=gate.rule,
        policy_version=case.number,
        gate=gate.pk,
        valid_until=_valid_until(case, decision),
    )
    _resolve(case, decision, Resolution.RESUME)


def _is_enough(case: Case) -> bool:
    """Count the approvals with the one just given; of stages, the next is opened where it fits."""
    if case.gate.stages:
        return staging.count(case.work, case.gate)
    return 1 + _votes_before(case) >= case.gate.quorum


def _valid_until(case: Case, decision: Decision) -> datetime | None:
    """Return when the first substitution ends by which it is approved; None: by none.

    What has not started by then is looked at again.
    """
    votes = [decision] if case.edited is not None else [decision, *_others(case)]
    pairs = [(one.user_id, one.acting_for_id) for one in votes if one.acting_for_id is not None]
    return (substitutes.first_end(pairs) or case.work.now) if pairs else None


def _others(case: Case) -> list[Decision]:
    return [one for one in case.decisions if selectors.is_vote(one) and not _is_own(case, one)]


def _votes_before(case: Case) -> int:
    """Count the other approvals of what is shown, by people who may still decide."""
    if case.edited is not None:
        return 0
    votes = _others(case)
    if not votes:
        return 0
    gate, run = case.gate, case.work.run
    call = call_of(gate, run, case.body)
    lost = deciders.lost(votes, gate.tool_id, run, case.approvers, call)
    if lost:
        transitions.discount(case.work, gate, lost)
    return len(votes) - len(lost)


def _end(case: Case, decision: Decision) -> None:
    """End the gate by one verdict other than ``approve``, whatever its quorum."""
    wanted, gate, work = case.wanted, case.gate, case.work
    state, resolution = _ENDS[wanted.verdict]
    transitions.settle(work, gate, state)
    if wanted.verdict == Verdict.RESPOND:
        value = jsontext.canonical(wanted.value)
        steps.respond(work, gate.step, value, by=case.principal.actor, sensitive=case.is_sensitive)
    else:
        rejects = wanted.verdict == Verdict.REJECT
        status = StepStatus.REJECTED if rejects else StepStatus.REVISED
        code = decision.reason_code
        steps.settle_without_running(work, gate.step, status, decision.said_why, code)
    _resolve(case, decision, resolution)


def _resolve(case: Case, decision: Decision, resolution: Resolution) -> None:
    interrupt = case.gate.interrupt
    if interrupt is None or interrupt.status != InterruptStatus.OPEN:
        return
    response = {
        "gate": str(case.gate.pk),
        "decision": str(decision.pk),
        "verdict": decision.verdict,
        "resolution": resolution.value,
        "note": decision.reason,
        **({} if decision.reason_code is None else {"reason_code": decision.reason_code}),
    }
    holds.resolve(case.work, interrupt, resolution, by=case.principal.actor, response=response)


def withdraw_decision(
    principal: Principal,
    gate_id: UUID,
    decision_id: UUID,
    *,
    if_match: IfMatch = ANY_VERSION,
) -> Gate:
    """Take one's own approval back before the step starts; taken back already, it changes nothing.

    A gate that it had approved asks again, and holds the run again; one with stages in the stage
    that the approval was of, and those after it begin anew. Raises PeopleOnly, Forbidden (another
    person's), AlreadyDecided (it does not count any more), AlreadyStarted.
    """
    if not principal.is_person:
        raise PeopleOnly
    run_id = Gate.objects.values_list("run_id", flat=True).get(pk=gate_id)
    with transaction.atomic(durable=not idempotency.holds_transaction()):
        work = locked(run_id, principal.actor)
        decision = Decision.objects.get(pk=decision_id, gate=gate_id)
        gate = Gate.objects.select_related("step", "interrupt").get(pk=gate_id)
        gate.run = gate.step.run = work.run
        if decision.user_id != principal.id:
            raise Forbidden("Only who decided takes it back.")
        if decision.withdrawn_at is not None:
            return gate
        _check_withdrawal(gate, decision)
        if_match.check(work.run.state_version)
        decision.counts, decision.withdrawn_at = False, work.now
        decision.save(update_fields=["counts", "withdrawn_at"])
        work.note("gate.decision_withdrawn", gate=gate.pk, decision=decision.pk)
        queue.learn_soon()
        if gate.state == GateState.APPROVED:
            gates.ask_again(work, gate)
        if gate.stages:
            staging.count(work, gate)
        work.finish()
    return gate


def can_withdraw(principal: Principal, gate: Gate, decision: Decision) -> bool:
    """Say whether the person could take this decision back, as far as the rows that were read."""
    if decision.user_id != principal.id:
        return False
    try:
        _check_withdrawal(gate, decision)
    except (AlreadyDecided, AlreadyStarted):
        return False
    return True


def _check_withdrawal(gate: Gate, decision: Decision) -> None:
    if decision.verdict != Verdict.APPROVE:
        raise AlreadyDecided("Only an approval can be taken back.")
    if not decision.counts:
        raise AlreadyDecided("The approval counts no more.")
    held = gate.state == GateState.APPROVED and gate.step.status == StepStatus.READY
    if gate.state not in OPEN_GATES and not (held and gate.step.attempts == 0):
        raise AlreadyStarted
