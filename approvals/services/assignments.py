"""Handing a gate to another of those who may decide it: who is asked changes, never who may."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from approvals import cases, deciders, owed
from approvals.calls import call_of
from approvals.models import Assignment, Gate
from config.errors import Forbidden, InvalidBody, PeopleOnly
from interrupts.services.acting import OPERATORS, role_now
from interrupts.work import Work, working
from tenants.conditions import ANY_VERSION, IfMatch
from tenants.models import User
from tenants.principal import Principal

MAX_NOTE: Final = 2_000


def reassign_gate(
    principal: Principal,
    gate_id: UUID,
    *,
    to: str,
    note: str | None = None,
    if_match: IfMatch = ANY_VERSION,
) -> Gate:
    """Put an open gate first into the inbox of ``to``, and out of the caller's; again is no change.

    Whoever else may decide it still may, and the caller too. Raises PeopleOnly, Forbidden,
    NotAnApprover, OwnRequest, BeyondAuthority, NotYourStage, GateExpired, AlreadyDecided;
    InvalidBody for one who may not decide by themself.
    """
    if not principal.is_person:
        raise PeopleOnly
    if note is not None and len(note) > MAX_NOTE:
        raise InvalidBody.at("/note", f"Must have {MAX_NOTE} characters at most.")
    run_id = Gate.objects.values_list("run_id", flat=True).get(pk=gate_id)
    with working(run_id, principal.actor) as work:
        work.state_unchanged()
        gate = Gate.objects.select_related("run", "step").get(pk=gate_id)
        rows = {one.user_id: one for one in Assignment.objects.filter(gate=gate)}
        own = rows.get(principal.id)
        is_operator = role_now(principal) in OPERATORS
        if not is_operator:
            deciders.check_gate(principal.id, gate, work.run, call_of(gate, work.run))
        cases.check_is_open(gate, work.now)
        person = _recipient(work, gate, to)
        theirs = rows.get(person)
        is_theirs = theirs is not None and theirs.handed_at is not None and theirs.passed_at is None
        holds = own is not None and own.passed_at is None and person != principal.id
        if is_theirs and not holds:
            return gate
        if not is_operator and (own is None or own.passed_at is not None):
            raise Forbidden("It does not wait for you.")
        if_match.check(work.run.state_version)
        _hand_over(work, gate, principal.id, person, note)
    return gate


def _recipient(work: Work, gate: Gate, username: str) -> UUID:
    found: UUID | None = User.objects.filter(username=username).values_list("pk", flat=True).first()
    if found is not None:
        refusals = deciders.gate_refusals([found], gate, work.run, call_of(gate, work.run))
        if refusals[found, found] is None:
            return found
    raise InvalidBody.at("/to", "Nobody of this name may decide it.")


def _hand_over(work: Work, gate: Gate, giver: UUID, to: UUID, note: str | None) -> None:
    if giver != to:
        Assignment.objects.filter(gate=gate, user=giver).update(passed_at=work.now, handed_at=None)
    Assignment.objects.update_or_create(
        gate=gate,
        user_id=to,
        defaults={"handed_at": work.now, "passed_at": None},
        create_defaults={"assigned_at": work.now, "handed_at": work.now},
    )
    work.note(
        "gate.reassigned",
        gate=gate.pk,
        step=gate.step_id,
        to={"kind": "user", "id": str(to)},
        **({} if note is None else {"note": note}),
    )
    if giver != to:
        owed.tell_of_handover(gate, giver, to, work.now)
