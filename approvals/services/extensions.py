"""Giving a gate more time, as a person who may decide it: up to what policy allows, and never less."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from approvals import cases, clocks, deciders, judging, routing, transitions
from approvals.calls import call_of
from approvals.errors import NotExtendable
from approvals.models import Gate
from config.errors import InvalidBody, PeopleOnly
from interrupts import catalogue, content
from interrupts.authorizer import Judgement
from interrupts.transitions import holds
from interrupts.work import Work, working
from tenants.conditions import ANY_VERSION, IfMatch
from tenants.principal import Principal
from tenants.scope import current_tenant_id

MAX_NOTE: Final = 2_000


def extend_gate(
    principal: Principal,
    gate_id: UUID,
    *,
    expires_at: datetime,
    note: str,
    if_match: IfMatch = ANY_VERSION,
) -> Gate:
    """Have an open gate expire later, at ``expires_at``; at the same time again is no change.

    It never expires sooner, nor later than policy in force allows, and what its expiry does stays.
    Raises PeopleOnly, NotAnApprover, OwnRequest, BeyondAuthority, NotYourStage, GateExpired,
    AlreadyDecided, NotExtendable; InvalidBody for a time that is out of bounds.
    """
    if not principal.is_person:
        raise PeopleOnly
    _check_note(note)
    run_id = Gate.objects.values_list("run_id", flat=True).get(pk=gate_id)
    with working(run_id, principal.actor) as work:
        gate = Gate.objects.select_related("step", "interrupt").get(pk=gate_id)
        gate.run = gate.step.run = work.run
        judged = _judged_anew(work, gate)
        _check_person(principal, gate, judged)
        cases.check_is_open(gate, work.now)
        if gate.expires_at == expires_at:
            return gate
        latest = routing.extendable_until(gate, judged)
        if latest is None:
            raise NotExtendable
        if_match.check(work.run.state_version)
        _check_time(gate, expires_at, latest)
        _extend(work, gate, expires_at, note)
    return gate


def _check_person(principal: Principal, gate: Gate, judged: Judgement | None) -> None:
    """Hold the person to who decides the gate, and to who does by what policy says now."""
    call = call_of(gate, gate.run)
    if gate.stages:
        deciders.check_gate(principal.id, gate, gate.run, call)
    if not gate.stages or judged is not None:
        approvers = _approvers(gate, judged)
        deciders.check(principal.id, gate.tool_id, gate.run, approvers, call)


def _approvers(gate: Gate, judged: Judgement | None) -> Sequence[str]:
    """Return who decides by what policy says now: of stages, of the one that is open."""
    if judged is None or not routing.has_stages(gate, judged):
        return routing.approvers(gate, judged)
    return routing.asked_for(gate, judged)[(gate.stage or 1) - 1].approvers


def _extend(work: Work, gate: Gate, expires_at: datetime, note: str) -> None:
    before, gate.expires_at = gate.expires_at, expires_at
    clocks.extend(gate, expires_at)
    gate.save(update_fields=["expires_at", "routing"])
    if gate.interrupt is not None:
        holds.ask_otherwise(work, gate.interrupt, expires_at=expires_at)
    work.due(expires_at)
    work.note(
        "gate.extended",
        gate=gate.pk,
        step=gate.step_id,
        before=before,
        expires_at=expires_at,
        note=note,
        imprint=work.imprint(gate, transitions.IMPRINT),
    )
    deciders.remind_anew(gate.pk, work.now)


def _judged_anew(work: Work, gate: Gate) -> Judgement | None:
    """Return what policy says of the gate's call where it has changed since and still asks."""
    if gate.policy_version == judging.number_under(work.authority_version):
        return None
    version = catalogue.version(current_tenant_id(), gate.tool_version_id)
    judged = judging.judge(work, gate.step, version, content.get(gate.arguments))
    return judged if judged.verdict == "approve" else None


def _check_time(gate: Gate, expires_at: datetime, latest: datetime) -> None:
    if gate.expires_at is not None and expires_at < gate.expires_at:
        raise InvalidBody.at("/expires_at", "It never expires sooner than it was to.")
    if expires_at > latest:
        raise InvalidBody.at("/expires_at", f"Policy allows {latest.isoformat()} at most.")


def _check_note(note: str) -> None:
    if not note.strip():
        raise InvalidBody.at("/note", "Say why it needs more time.")
    if len(note) > MAX_NOTE:
        raise InvalidBody.at("/note", f"Must have {MAX_NOTE} characters at most.")
