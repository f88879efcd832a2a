"""Interrupts opened on request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from config.errors import AgentsOnly, InvalidBody, PeopleOnly, faults
from interrupts.errors import (
    MayNot,
)
from interrupts.models import (
    InFlight,
    Interrupt,
    Reason,
    Resolution,
    ResponseKind,
)
from interrupts.schemas import check_response_schema
from interrupts.services.acting import (
    OPERATORS,
    as_agent,
    as_person,
    may_stop,
    not_ended,
    role_now,
)
from interrupts.transitions import holds, wording
from interrupts.work import Work
from tenants.conditions import ANY_VERSION, IfMatch
from tenants.principal import Principal

QUESTIONS = {
    Reason.OPERATOR_STOP: wording.OPERATOR_STOP,
    Reason.AGENT_REQUESTED: wording.AGENT_REQUESTED,
    Reason.INPUT_REQUIRED: wording.INPUT_REQUIRED,
    Reason.CONTEXT_MISSING: wording.CONTEXT_MISSING,
}
INPUTS = (Reason.INPUT_REQUIRED, Reason.CONTEXT_MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An interrupt as it was asked for."""

    reason: Reason
    question: str | None = None
    schema: dict[str, Any] | None = None
    in_flight: InFlight = InFlight.FINISH
    evidence: dict[str, Any] | None = None
    expires_in: float | None = None
    on_expiry: str | None = None
    note: str | None = None


def open_interrupt(
    principal: Principal,
    run_id: UUID,
    *,
    asked: Asked,
    session: int | None = None,
    if_match: IfMatch = ANY_VERSION,
) -> tuple[Interrupt, bool]:
    """Interrupt the run; the one that is open with the same reason and question, again (False).

    Agents interrupt their own runs but for ``operator_stop``, which is for people who may stop.
    Raises RunEnded, MayNot, NotYourRun, StaleSession, VersionMismatch, InvalidBody (schema).
    """
    if principal.is_agent:
        if asked.reason == Reason.OPERATOR_STOP:
            raise PeopleOnly("Only people stop a run.")
        scope = as_agent(principal, run_id, session=session, if_match=if_match)
    else:
        if session is not None:
            raise AgentsOnly("Only an agent has a session.")
        scope = as_person(principal, run_id, if_match=if_match)
    with scope as work:
        if principal.is_person:
            _may_interrupt(principal, work, asked.reason)
        not_ended(work.run)
        question = asked.question or QUESTIONS[asked.reason]
        same = holds.open_of(work).filter(reason=asked.reason, question=question).first()
        if same is not None:
            work.state_unchanged()
            return same, False
        if asked.schema is not None and (wrong := check_response_schema(asked.schema)):
            raise InvalidBody("No value can be checked by this.", errors=faults(wrong, "/schema"))
        (made,) = holds.open_holds(work, _hold(work, asked, question))
        return made, True


def _may_interrupt(principal: Principal, work: Work, reason: Reason) -> None:
    allowed = (
        may_stop(principal, work.run)
        if reason == Reason.OPERATOR_STOP
        else role_now(principal) in OPERATORS
    )
    if not allowed:
        raise MayNot("This person may not interrupt the run.")


def _hold(work: Work, asked: Asked, question: str) -> holds.Hold:
    expires_at = None
    if asked.expires_in is not None:
        expires_at = work.now + timedelta(seconds=asked.expires_in)
    stop, wants_input = asked.reason == Reason.OPERATOR_STOP, asked.reason in INPUTS
    revisable = (Resolution.REVISE,) if stop or wants_input else ()
    return holds.Hold(
        reason=asked.reason,
        kind=ResponseKind.INPUT if wants_input else ResponseKind.RELEASE,
        question=question,
        who=(
            ("operator", "admin", "requester", "decider")
            if stop
            else ("operator", "admin", "requester")
            if wants_input
            else ("operator", "admin")
        ),
        allowed=(Resolution.RESUME, *revisable, Resolution.CANCEL),
        schema=asked.schema,
        in_flight=asked.in_flight,
        evidence=asked.evidence or {},
        expires_at=expires_at,
        on_expiry=(asked.on_expiry or "cancel") if expires_at else None,
        note=asked.note,
    )
