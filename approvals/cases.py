"""The case of a decision: a gate under its run's lock, and all that a decision is held to.

Checked in this order, each before anything is written: exactly this decided already; authority;
expired, final, preparing, another digest; ceremony, reason and the rest of what was sent. What time
or a change elsewhere has made of the gate is `BehindTime`: it is brought up to date first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from approvals import deciders, judging, routing, stages, transitions
from approvals.authorizer import current_version
from approvals.calls import call_of
from approvals.clocks import is_over
from approvals.errors import (
    AlreadyDecided,
    BeyondAuthority,
    ConfirmationRequired,
    DecisionNotAllowed,
    DeniedByPolicy,
    DigestMismatch,
    GateExpired,
    GatePreparing,
    NotAnApprover,
    NotInBulk,
    NotYourStage,
    OwnRequest,
    ReasonRequired,
    UnknownReason,
)
from approvals.masking import unmasked
from approvals.models import OPEN_GATES, Ceremony, Decision, Gate, GateState, Verdict, View
from approvals.snapshots import Asked
from config import jsontext
from config.errors import InvalidBody, faults
from interrupts import catalogue, content, templates
from interrupts.authorizer import Judgement
from interrupts.errors import InvalidArguments
from interrupts.models import Choice, Risk
from interrupts.transitions import needs
from interrupts.transitions.steps import of_agent
from interrupts.work import Work
from tenants.principal import Principal
from tenants.scope import current_tenant_id

UNSET: Final = object()
MAX_HOLD_SECONDS: Final = 60


class BehindTime(Exception):
    """The gate has to be brought up to date before it can be decided."""

    def __init__(self, by: Literal["expiry", "change", "stage", "preview"], gate: Gate) -> None:
        super().__init__(by)
        self.by, self.gate = by, gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A decision as it was sent."""

    verdict: Verdict
    digest: str
    arguments: Any = UNSET
    value: Any = UNSET
    reason: str | None = None
    reason_code: str | None = None
    confirmation: str | bool | None = None
    hold_seconds: float | None = None
    bulk: bool = False  # one of several that are approved together


@dataclass(slots=True)
class Case:
    """A gate under its run's lock, with whoever decides it and what policy asks for now."""

    work: Work
    gate: Gate
    principal: Principal
    wanted: Wanted
    decisions: list[Decision]
    body: bytes  # the arguments shown, canonical
    edited: bytes | None  # those to run in their place, canonical
    unfilled: list[str]  # where the edit holds a mask with nothing behind it
    number: int  # of the policy in force
    judged: Judgement | None = None  # where policy has changed, or the arguments have
    acting_for: UUID | None = None  # whose authority it is by, where not the person's own

    @property
    def choice(self) -> Choice:
        """What the person chooses: an approval of other arguments than those shown is an edit."""
        return Choice.EDIT if self.edited is not None else Choice(self.wanted.verdict)

    @property
    def chosen(self) -> Mapping[str, Any] | None:
        """The declared reason that was chosen for it; None: none was, or there is no such one."""
        found = (one for one in self.offered if one["code"] == self.wanted.reason_code)
        return next(found, None)

    @property
    def offered(self) -> list[dict[str, Any]]:
        return self.gate.reasons_for(self.choice)

    @property
    def approvers(self) -> list[str]:
        asks = self.judged is not None and self.judged.verdict == "approve"
        return routing.approvers(self.gate, self.judged if asks else None)

    @property
    def asked(self) -> Asked:
        """What would run by this decision."""
        return transitions.asked_about(self.gate, json.loads(self.edited or self.body))

    @property
    def shown(self) -> Asked:
        """What is asked about as it stands."""
        return transitions.asked_about(self.gate, json.loads(self.body))

    @property
    def is_sensitive(self) -> bool:
        return bool(self.asked.sensitive)


def open_case(work: Work, gate_id: UUID, principal: Principal, wanted: Wanted) -> Case:
    """Read the gate and what was decided of it, under the lock."""
    gate = Gate.objects.select_related("step", "interrupt").get(pk=gate_id)
    gate.run = gate.step.run = work.run
    body = content.get(gate.arguments)
    edited, unfilled = _edit_of(gate, body, wanted)
    return Case(
        work=work,
        gate=gate,
        principal=principal,
        wanted=wanted,
        decisions=list(Decision.objects.filter(gate=gate).order_by("id")),
        body=body,
        edited=edited,
        unfilled=unfilled,
        number=judging.number_under(work.authority_version),
    )


def _edit_of(gate: Gate, body: bytes, wanted: Wanted) -> tuple[bytes | None, list[str]]:
    """Return the arguments sent, canonical, where they differ from those shown."""
    if wanted.arguments is UNSET:
        return None, []
    shown = json.loads(body)
    paths = transitions.asked_about(gate, shown).sensitive
    filled, unfilled = unmasked(wanted.arguments, shown, paths)
    sent = jsontext.canonical(filled)
    return (None if sent == body else sent), unfilled


# Has exactly this happened already?


def same_decision(case: Case) -> Decision | None:
    """Return this person's decision that is this one, where it counts still."""
    wanted = case.wanted
    for one in case.decisions:
        alike = (one.user_id, one.verdict, one.digest) == (
            case.principal.id,
            wanted.verdict,
            wanted.digest,
        )
        if alike and one.counts and _same_arguments(case, one) and _same_value(case, one):
            return one
    return None


def _same_arguments(case: Case, one: Decision) -> bool:
    edits = content.get(one.edits) if one.edits is not None else None
    if edits == case.edited:
        return True
    # What is shown after an edit is the edit: sent again, it differs no more.
    return case.edited is None and case.wanted.arguments is not UNSET and edits == case.body


def _same_value(case: Case, one: Decision) -> bool:
    value = content.get(one.value) if one.value is not None else None
    given = case.wanted.value
    return value == (None if given is UNSET else jsontext.canonical(given))


# May this person decide, and may it be decided now?


def check_authority(case: Case) -> None:
    """Raise NotAnApprover, OwnRequest or BeyondAuthority, by what policy asks now of an open gate.

    Of one with stages NotYourStage too, or BehindTime where its row is not as they stand now.
    """
    gate, work = case.gate, case.work
    if gate.state in OPEN_GATES and gate.policy_version != case.number:
        version = catalogue.version(current_tenant_id(), gate.tool_version_id)
        case.judged = judging.judge(work, gate.step, version, case.body)
    if routing.has_stages(gate, case.judged):
        case.acting_for = _check_stage(case)
    else:
        case.acting_for = _check_person(case, case.body, case.approvers)


def _check_person(case: Case, body: bytes, approvers: Sequence[str]) -> UUID | None:
    """Return by whose authority a call with these arguments is decided; None: the person's own."""
    gate, run = case.gate, case.work.run
    call = call_of(gate, run, body)
    return deciders.check(case.principal.id, gate.tool_id, run, approvers, call)


def _check_stage(case: Case) -> UUID | None:
    gate, run, user = case.gate, case.work.run, case.principal.id
    acting_for = _check_person(case, case.body, ())
    decides = gate.state in OPEN_GATES and not is_over(gate, case.work.now)
    if decides and case.judged is not None and case.judged.verdict == "approve":
        raise BehindTime("change", gate)
    if decides and stages.behind([gate]):
        raise BehindTime("stage", gate)
    try:
        return deciders.check_gate(user, gate, run, call_of(gate, run, case.body))
    except NotYourStage:
        # What is final, or over by now, is told as that to whoever was asked at all.
        if decides:
            raise
        return acting_for


def check_state(case: Case) -> None:
    """Raise GateExpired, AlreadyDecided, GatePreparing, DigestMismatch or BehindTime."""
    gate = case.gate
    if is_over(gate, case.work.now):
        raise BehindTime("expiry", gate)
    refuse_final(gate)
    if gate.state == GateState.PREPARING:
        raise GatePreparing
    if gate.digest != case.wanted.digest:
        raise DigestMismatch
    if _has_changed(case):
        raise BehindTime("change", gate)


def _has_changed(case: Case) -> bool:
    """Say whether the tool has a newer version, or what is asked about is denied or stale now."""
    if of_agent(case.work) is not None:
        return True
    approves = case.wanted.verdict == Verdict.APPROVE
    if approves and needs.lacking(case.gate.step, case.work.now):
        return True
    version = current_version(case.work, case.gate.step)
    if version is None or version.pk != case.gate.tool_version_id:
        return True
    return case.judged is not None and case.judged.verdict == "deny"


def check_is_open(gate: Gate, now: datetime) -> None:
    """Refuse a gate that is final, or has expired and was not yet found to have."""
    if is_over(gate, now):
        raise GateExpired
    refuse_final(gate)


def refuse_final(gate: Gate) -> None:
    """Raise GateExpired or AlreadyDecided where the gate is not open any more."""
    if gate.state == GateState.EXPIRED:
        raise GateExpired
    if gate.state not in OPEN_GATES:
        raise AlreadyDecided(f"The gate is {gate.state.replace('_', ' ')}.")


# Is the rest of what was sent in order?


def check_content(case: Case) -> None:
    """Raise NotInBulk, DecisionNotAllowed, ConfirmationRequired, UnknownReason, ReasonRequired,
    InvalidBody, InvalidArguments or DeniedByPolicy."""
    check_bulk(case)
    check_choice(case)
    if case.wanted.verdict == Verdict.APPROVE:
        _check_ceremony(case)
    _check_reason(case)
    _check_members(case.wanted)
    _check_hold(case)
    if case.edited is not None:
        check_edit(case, case.edited)


def check_bulk(case: Case) -> None:
    """Raise NotInBulk where the gate is approved with others and may not be."""
    if case.wanted.bulk and not case.gate.fits_bulk:
        raise NotInBulk


def check_choice(case: Case) -> None:
    """Raise DecisionNotAllowed where the tool's declaration takes this choice from people."""
    if case.choice not in case.shown.version.allowed_decisions:
        at = "/arguments" if case.choice == Choice.EDIT else "/verdict"
        raise DecisionNotAllowed.at(at, f"Its tool does not allow this: {case.choice}.")


def _check_reason(case: Case) -> None:
    """Hold the reason to those declared for the choice; to approve what is shown takes none."""
    wanted, chosen = case.wanted, case.chosen
    codes = ", ".join(one["code"] for one in case.offered)
    if wanted.reason_code is not None and chosen is None:
        told = f"It is one of {codes}." if codes else "No reasons are declared for this decision."
        raise UnknownReason.at("/reason_code", told)
    if chosen is None and codes and case.choice != Choice.APPROVE:
        raise ReasonRequired.at("/reason_code", f"Choose one of {codes}.")
    if chosen is not None and chosen["needs_note"] and not says_why(wanted):
        raise ReasonRequired.at("/reason", "Say more: this reason needs a note.")


def says_why(wanted: Wanted) -> bool:
    return wanted.reason is not None and bool(wanted.reason.strip())


def _check_ceremony(case: Case) -> None:
    ceremony, given = Ceremony(case.gate.ceremony), case.wanted.confirmation
    if ceremony == Ceremony.SINGLE:
        return
    if not _has_seen(case):
        raise ConfirmationRequired("Open what you approve first.")
    if ceremony == Ceremony.EXPLICIT and given is not True:
        raise ConfirmationRequired.at("/confirmation", "Must be true.")
    if ceremony == Ceremony.TYPED:
        required = case.asked.confirmation
        if not isinstance(given, str) or not templates.confirms(given, required):
            raise ConfirmationRequired.at("/confirmation", f"Must be: {required}")


def _has_seen(case: Case) -> bool:
    seen = View.objects.filter(gate=case.gate, user=case.principal.id, digest=case.gate.digest)
    return seen.exists()


def _check_members(wanted: Wanted) -> None:
    approves, responds = wanted.verdict == Verdict.APPROVE, wanted.verdict == Verdict.RESPOND
    is_said = says_why(wanted) or wanted.reason_code is not None
    if not (approves or responds or is_said):
        raise InvalidBody.at("/reason", "Say why: the agent is told.")
    if responds and wanted.value is UNSET:
        raise InvalidBody.at("/value", "This member is missing.")
    if not responds and wanted.value is not UNSET:
        raise InvalidBody.at("/value", "Only `respond` takes a value.")
    if not approves and wanted.arguments is not UNSET:
        raise InvalidBody.at("/arguments", "Only `approve` takes arguments.")
    if not approves and wanted.hold_seconds is not None:
        raise InvalidBody.at("/hold_seconds", "Only `approve` can be held.")


def _check_hold(case: Case) -> None:
    held = case.wanted.hold_seconds
    if held is None:
        return
    if case.gate.risk != Risk.LOW:
        raise InvalidBody.at("/hold_seconds", "Only what is of low risk can be held.")
    if not 0 <= held <= MAX_HOLD_SECONDS:
        raise InvalidBody.at("/hold_seconds", f"Must be from 0 to {MAX_HOLD_SECONDS}.")


def check_edit(case: Case, edited: bytes) -> None:
    """Hold edited arguments to the tool's schema, to policy, and to whom policy asks about them.

    Raises InvalidArguments, DeniedByPolicy, NotAnApprover, OwnRequest, BeyondAuthority.
    """
    gate = case.gate
    if case.unfilled:
        told = [(place, "Give this value anew: it was masked.") for place in case.unfilled]
        raise InvalidArguments(errors=faults(told, "/arguments"))
    version = catalogue.version(current_tenant_id(), gate.tool_version_id)
    wrong = catalogue.validator(current_tenant_id(), version.pk).validate(json.loads(edited))
    if wrong:
        raise InvalidArguments(errors=faults(wrong, "/arguments"))
    case.judged = judging.judge(case.work, gate.step, version, edited)
    if case.judged.verdict == "deny":
        raise DeniedByPolicy(case.judged.reason)
    if routing.has_stages(gate, case.judged):
        case.acting_for = _check_editor(case, edited, case.judged)
    else:
        case.acting_for = _check_person(case, edited, case.approvers)


def _check_editor(case: Case, edited: bytes, judged: Judgement) -> UUID | None:
    """Return by whose authority an edit is made that is decided in stages; None: the person's own.

    In stages others decide it from the first on, whoever has changed it. Where the editor is of the
    first, for themself or for another, it is by that authority, and counts there.
    """
    first = routing.asked_for(case.gate, judged)[0].approvers
    for approvers in (first, case.gate.approvers):
        with suppress(NotAnApprover, OwnRequest, BeyondAuthority):
            return _check_person(case, edited, approvers)
    return _check_person(case, edited, ())


def check_freshness(case: Case) -> None:
    """Raise BehindTime where an approval is based on a preview that may not be true any more."""
    until = case.gate.fresh_until
    approves = case.wanted.verdict == Verdict.APPROVE and case.edited is None
    if approves and until is not None and until <= case.work.now:
        raise BehindTime("preview", case.gate)
