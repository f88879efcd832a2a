"""What the engine asks of authorization, with rules: what policy asks one person about, a rule of
that person's may decide in their name.

Order: policy's denial, the tenant's floor, the person's "ask me", then rules that were begun or let
go on since policy last began to deny the tool. Nothing else than what policy asks exactly one person
about, for no other cause than its rule or its default, is looked at.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final, NamedTuple
from uuid import UUID

from approvals import authority, judging
from approvals.authorizer import NEWER_VERSION, PolicyAuthorizer, adopt_current, asked_anew
from approvals.calls import call_of
from config.keys import derive
from config.memo import Memo
from delegation import calls, locks, speaking
from delegation.canonical import Canonical, Unclear, canonical
from delegation.learner import coin
from delegation.models import (
    Delegation,
    DelegationDay,
    DelegationStatus,
)
from delegation.modes import ORDINARY, Mode, Modes, modes
from delegation.speaking import Question, Speaker
from delegation.transitions import approving, checks, days
from delegation.transitions.approving import BY, Allowed
from delegation.transitions.checks import Check
from interrupts import catalogue
from interrupts.authorizer import Judgement
from interrupts.models import Interrupt, Reason, RunStatus, Step
from interrupts.work import Work
from tenants.scope import current_tenant_id

_ALLOWED: Final = "allowed"
_CHECK: Final = "spot_check"
_MODES: Memo[Modes] = Memo(512)
_TOOLS: Memo[frozenset[UUID]] = Memo(4096)


class DelegatingAuthorizer(PolicyAuthorizer):
    """Judges by policy; where it asks one person, looks whether a rule of theirs decides."""

    def judge(self, work: Work, step: Step, arguments: bytes) -> Judgement:
        """Say what policy says of the step, or what a rule says where policy asks about a proposal."""
        judgement = super().judge(work, step, arguments)
        if not _is_proposal(step) or not may_be_delegated(work, judgement):
            return judgement
        return _by_rule(work, step, arguments, judgement) or judgement

    def reauthorize(self, work: Work, step: Step, arguments: bytes) -> Judgement | None:
        """Judge an authorised step whose stamp is stale; None: its authorization still holds.

        What a rule decided holds while that rule would still allow it, as it is now; what of the day
        is used by then counts no more, since this call was counted.
        """
        if step.authorized_by != BY:
            return super().reauthorize(work, step, arguments)
        held = adopt_current(work, step, arguments)
        if held is not None and held.verdict == "deny":
            return held
        now = super().judge(work, step, arguments)
        if now.verdict != "approve":
            return now
        if held is not None:
            return asked_anew(now, NEWER_VERSION)
        return None if _still_allows(work, step, arguments, now) else now

    def record(self, work: Work, step: Step, judgement: Judgement) -> UUID:
        """Write down the decision of the rule that allows a step; return its gate."""
        allowed: Allowed = judgement.detail[_ALLOWED]
        return approving.record(work, step, allowed)

    def open_gate(
        self, work: Work, step: Step, judgement: Judgement, gate_id: UUID, interrupt: Interrupt
    ) -> None:
        """Open the gate ``gate_id``; a spot check is told from no other, and kept beside it."""
        super().open_gate(work, step, judgement, gate_id, interrupt)
        check: Check | None = judgement.detail.get(_CHECK)
        if check is not None:
            checks.keep(work, gate_id, check)


def _is_proposal(step: Step) -> bool:
    """Whether the step was neither asked about nor authorised before, and is like no unknown one."""
    return step.gate is None and step.authorized_by is None and step.twin is None


def may_be_delegated(work: Work, judgement: Judgement) -> bool:
    """Say whether policy asks one person, about the call alone, in a run where nothing is open."""
    detail = judgement.detail
    return (
        judgement.verdict == "approve"
        and work.run.status == RunStatus.RUNNING
        and not work.run.count_unknown
        and judgement.interrupt_reason == Reason.APPROVAL_REQUIRED
        and detail.get("quorum") == 1
        and not detail.get("stages")
        and not (detail.get("routing") or {}).get("cool_down")
        and {one["trigger"] for one in detail.get("triggers", ())} <= ORDINARY
    )


@dataclass(frozen=True, slots=True)
class _Looked:
    """A call that rules may be asked about."""

    step: Step
    body: bytes
    call: Canonical
    shape: str
    same: str
    mode: Mode
    approvers: tuple[str, ...]


def _by_rule(work: Work, step: Step, body: bytes, asked: Judgement) -> Judgement | None:
    """Return the judgement by a rule that covers the call; None: a person is asked."""
    looked = _look(work, step, body, asked)
    checked: dict[str, UUID] = work.memo.setdefault(Check, {})
    if looked is None or checked.get(looked.same, step.pk) != step.pk:
        return None
    drawn = _of_one_person(work, looked)
    for rule in drawn.rules:
        if drawn.again or coin(_key(), str(step.pk)) < rule.check_share:
            # What is proposed together with it sees no row of it yet.
            checked[looked.same] = step.pk
            check = Check(rule, looked.shape, looked.same, drawn.again)
            return dataclasses.replace(asked, detail={**asked.detail, _CHECK: check})
        day = _day(work, rule)
        if day is None or calls.refusal(rule.predicate, looked.call, day.spent) is not None:
            continue
        days.count(day, looked.call)
        return Judgement(
            verdict="allow",
            rule=str(rule.pk),
            policy_version=asked.policy_version,
            valid_until=rule.expires_at,
            detail={_ALLOWED: Allowed(rule, body, day, asked)},
            seen=asked.seen,
            by=BY,
            speaker=approving.speaker(rule),
        )
    return None


def _look(work: Work, step: Step, body: bytes, asked: Judgement) -> _Looked | None:
    """Return the call where its tool may be delegated, has rules, and the floor lets them speak."""
    version = catalogue.version(current_tenant_id(), step.tool_version_id)
    in_force = _modes(work)
    mode, tool = in_force.of(version.risk), calls.tool_of(version)
    if mode is Mode.OFF or tool is None or step.tool_id not in _tools(work):
        return None
    if in_force.never and _is_forbidden(work, step, body, in_force):
        return None
    told = calls.Asked(
        str(step.pk),
        work.now.timestamp(),
        judging.agent_name(work),
        work.run.workflow,
        str(judging.agent_identity(work)),
    )
    try:
        request = calls.request_of(told, tool, body)
        call = canonical(request)
    except Unclear:
        return None
    shape, people = calls.shape_of(tool, call), tuple(asked.detail.get("approvers") or ())
    return _Looked(step, body, call, shape, calls.same_of(shape, request), mode, people)


def _is_forbidden(work: Work, step: Step, body: bytes, in_force: Modes) -> bool:
    facts = call_of(step, work.run, body)()
    return facts is None or in_force.forbids(step.tool_name, facts)


class Drawn(NamedTuple):
    """The rules of one person that cover a call; ``again``: a check of it has no answer yet."""

    rules: Sequence[Delegation]
    again: bool = False


def _of_one_person(work: Work, looked: _Looked) -> Drawn:
    """Return the rules that cover the call, of the one person who is drawn for it.

    Where several have rules for the tool, one of those who may decide the call is drawn, whatever
    their rules say of it: else what any of them allows would run, and each one's errors add up.
    Whoever has not answered a check of it comes first, where a rule of theirs still covers it; it
    is asked again whoever is drawn.
    """
    for one in _speakers(work, looked):
        if _may(work, looked, one):
            covering = [rule for rule in one.rules if _covers(rule, looked)]
            if covering or not one.owes:
                return Drawn(covering, _is_asked_again(one))
    return Drawn(())


def _is_asked_again(speaker: Speaker) -> bool:
    return speaker.again


def _speakers(work: Work, looked: _Looked) -> Iterator[Speaker]:
    """Yield those whose rules may be asked, in the order drawn for the step."""
    like = looked.shape, looked.same
    asked = _question(work, looked)
    return speaking.drawn(asked, like, work.authority_version, _key(), looked.step.pk)


def _question(work: Work, looked: _Looked) -> Question:
    """Return what rules are asked; learned ones speak only where policy lets them."""
    return Question(
        tool=looked.step.tool_id,
        tool_number=looked.step.tool_number,
        learned=looked.mode is Mode.AUTOMATIC,
        denied_in=_denied_in(work, looked.step),
        run=work.run,
        approvers=looked.approvers,
        now=work.now,
    )


def _covers(rule: Delegation, looked: _Looked) -> bool:
    return calls.refusal(rule.predicate, looked.call) is None


def _may(work: Work, looked: _Looked, speaker: Speaker) -> bool:
    """Say whether the person may decide the call themself, by nobody else's authority."""
    if speaker.refusal is not None or not speaker.inside:
        return False
    call = call_of(looked.step, work.run, looked.body)
    return authority.beyond(speaker.limits, call) is None


def _day(work: Work, rule: Delegation) -> DelegationDay | None:
    """Return the rule's day, locked; what is judged together counts in one row.

    None: it comes before one that is held already, and others hold it: two that wait for each
    other's days would both fail, so the person is asked instead.
    """
    days_held: dict[UUID, DelegationDay] = work.memo.setdefault(DelegationDay, {})
    if rule.pk not in days_held:
        today = work.now.astimezone(UTC).date()
        in_order = all(held < rule.pk for held in days_held)
        day = (locks.lock_day if in_order else locks.try_day)(rule.pk, today)
        if day is None:
            return None
        days_held[rule.pk] = day
    return days_held[rule.pk]


def _still_allows(work: Work, step: Step, body: bytes, now: Judgement) -> bool:
    """Say whether the rule that a step was decided by would decide it so today."""
    if not may_be_delegated(work, now):
        return False
    looked = _look(work, step, body, now)
    if looked is None:
        return False
    found = speaking.of_rule(_question(work, looked), UUID(step.authorized_rule))
    if found is None or not _may(work, looked, found):
        return False
    return any(_covers(rule, looked) for rule in found.rules)


def _key() -> bytes:
    return derive("spot-checks", current_tenant_id())


def _modes(work: Work) -> Modes:
    number = judging.number_under(work.authority_version)
    return _MODES.get((current_tenant_id(), number), lambda: modes(judging.policy(number).document))


def _denied_in(work: Work, step: Step) -> int:
    """Return which policy version last began to deny the step's tool; 0: none did."""
    number = judging.number_under(work.authority_version)
    return judging.denials(number).of(step.tool_name)


def _tools(work: Work) -> frozenset[UUID]:
    """Return the tools with rules that speak: none is the usual, and costs nothing once known."""
    return _TOOLS.get((current_tenant_id(), work.authority_version), _read_tools)


def _read_tools() -> frozenset[UUID]:
    rows = Delegation.objects.filter(status=DelegationStatus.ACTIVE)
    return frozenset(rows.values_list("tool", flat=True).distinct())
