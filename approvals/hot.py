"""The hot write of a decision: a plain approval, and what is shown of it, in two round trips.

Whatever is not plain is left to the long way (services/decisions.py), which is the reference: the
two write the same rows and the same journal, which a test compares.
"""

from __future__ import annotations

import json
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from approvals.models import Decision, Gate
from approvals.shown import LOOKED_BACK, GateShown, Similar
from config.keys import current_key_id, stream_key
from interrupts import content
from interrupts.models import Run, Step
from tenants.ids import uuid7
from tenants.models import User
from tenants.principal import Principal
from tenants.statements import prepared

_GATE = Gate._meta.concrete_fields  # noqa: SLF001 - Django's API
_DECISION = Decision._meta.concrete_fields  # noqa: SLF001 - Django's API
_FIELDS = [field.attname for field in _GATE]
_DECIDED_FIELDS = [field.attname for field in _DECISION]
RUN_OF = "SELECT run_id FROM approvals_gate WHERE id = %b::uuid"
APPROVE = (
    "SELECT verdict, run, epoch, resumed FROM approvals_approve("
    "%b::uuid, %b::uuid, %b::uuid, %b::text, %b::boolean, %b::text,"
    " %b::uuid, %b::text, %b::bytea, %b::bytea, %b::text)"
)
SHOW = f"""
SELECT {", ".join(f"g.{field.column}" for field in _GATE)},
    {", ".join(f"d.{field.column}" for field in _DECISION)},
    r.state_version, s.tool_name, b.body, b.cipher, past.approved, past.rejected, past.edited
FROM approvals_gate g
JOIN approvals_decision d ON d.id = %b::uuid
JOIN interrupts_run r ON r.id = g.run_id
JOIN interrupts_step s ON s.id = g.step_id
JOIN interrupts_content b ON b.tenant_id = g.tenant_id AND b.digest = g.arguments
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE p.state = 'approved') AS approved,
        count(*) FILTER (WHERE p.state = 'rejected') AS rejected,
        count(*) FILTER (WHERE p.state = 'approved' AND EXISTS (
            SELECT FROM approvals_decision e
            WHERE e.gate_id = p.id AND e.counts AND e.edits IS NOT NULL)) AS edited
    FROM (SELECT o.id, o.state FROM approvals_gate o
        WHERE o.tool_id = g.tool_id AND o.tenant_id = g.tenant_id
        ORDER BY o.id DESC LIMIT {LOOKED_BACK}) p) past
WHERE g.id = %b::uuid
"""  # noqa: S608 - names of ours


class Approved(NamedTuple):
    """A gate that was approved just now, as its decider is shown it, and the run to be woken."""

    shown: GateShown
    decision: Decision
    tenant: UUID
    run: UUID
    epoch: int


def run_of(gate_id: UUID) -> UUID:
    """Return the run of a gate; Gate.DoesNotExist for an unknown one, or another tenant's."""
    row = prepared(RUN_OF, [gate_id])
    if not row:
        raise Gate.DoesNotExist(f"gate {gate_id}")
    run: UUID = row[0]
    return run


def approve(
    principal: Principal,
    gate_id: UUID,
    run_id: UUID,
    digest: str,
    confirmation: str | bool | None,  # noqa: FBT001 - as it was sent
) -> Approved | None:
    """Approve a gate where nothing stands in the way; None: nothing is written, go the long way."""
    decision = uuid7()
    verdict, run, epoch, _resumed = prepared(
        APPROVE,
        [
            principal.tenant_id,
            gate_id,
            principal.id,
            digest,
            confirmation is True,
            confirmation if isinstance(confirmation, str) else None,
            decision,
            *stream_key(run_id, current_key_id()),
            principal.actor.text,
        ],
    )
    if verdict != "approved":
        return None
    shown = _shown(principal, gate_id, decision)
    return Approved(shown, shown.decisions[0], principal.tenant_id, run, epoch)


def _shown(principal: Principal, gate_id: UUID, decision_id: UUID) -> GateShown:
    row = prepared(SHOW, [decision_id, gate_id])
    gate_end = len(_FIELDS)
    decided_end = gate_end + len(_DECIDED_FIELDS)
    gate = Gate.from_db(connection.alias, _FIELDS, row[:gate_end])
    decision = Decision.from_db(connection.alias, _DECIDED_FIELDS, row[gate_end:decided_end])
    state_version, tool_name, body, cipher, *similar = row[decided_end:]
    gate.run = Run(id=gate.run_id, state_version=state_version)
    gate.step = Step(id=gate.step_id, tool_name=tool_name)
    decision.user = User(id=principal.id, username=principal.name)
    arguments = json.loads(content.unseal(principal.tenant_id, bytes(body), cipher))
    return GateShown(
        gate=gate,
        decisions=[decision],
        bodies={bytes(gate.arguments): arguments},
        given=1,
        may_decide=True,
        similar=Similar(*similar),
    )
