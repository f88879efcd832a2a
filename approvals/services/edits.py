"""An edit looked at before it is decided: what would run by it, and what it takes to approve it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from approvals import cases, routing
from approvals.cases import BehindTime, Case, Wanted
from approvals.errors import DigestMismatch, GateExpired
from approvals.models import Gate, Verdict
from approvals.policy.stages import Stage
from approvals.services import gates, preview
from approvals.snapshots import Asked, Taken
from config.errors import InvalidBody, PeopleOnly
from interrupts.work import locked
from tenants.principal import Principal

UNCHANGED: Final = "These are the arguments as they stand: change something, or approve them."


@dataclass(frozen=True, slots=True)
class EditShown:
    """A call as a person would change it; nothing of it is recorded."""

    gate: Gate
    asked: Asked
    before: Asked
    stages: Sequence[Stage]  # in which the edit is decided; one: by all together
    preview: Taken | None  # None: its tool offers none


def look_at_edit(principal: Principal, gate_id: UUID, *, digest: str, arguments: Any) -> EditShown:
    """Show what approving these arguments would do; the tool is asked for its preview of them.

    Refuses what ``decide_gate`` would refuse of the edit, but for the ceremony.
    """
    if not principal.is_person:
        raise PeopleOnly
    wanted = Wanted(verdict=Verdict.APPROVE, digest=digest, arguments=arguments)
    run_id = Gate.objects.values_list("run_id", flat=True).get(pk=gate_id)
    try:
        # The lock is held for the look alone, and nothing is written under it.
        with transaction.atomic(durable=True):
            case = cases.open_case(locked(run_id, principal.actor), gate_id, principal, wanted)
            _check(case)
    except BehindTime as behind:
        if behind.by == "expiry":
            raise GateExpired from None
        gates.bring_up_to_date(gate_id)
        raise DigestMismatch from None
    return EditShown(
        gate=case.gate,
        asked=case.asked,
        before=case.shown,
        stages=_stages(case),
        preview=preview.preview_of(case.gate, case.asked),
    )


def _check(case: Case) -> None:
    cases.check_authority(case)
    cases.check_state(case)
    if case.edited is None:
        raise InvalidBody.at("/arguments", UNCHANGED)
    cases.check_choice(case)
    cases.check_edit(case, case.edited)


def _stages(case: Case) -> Sequence[Stage]:
    if case.judged is None:
        return case.gate.all_stages
    return routing.asked_for(case.gate, case.judged)
