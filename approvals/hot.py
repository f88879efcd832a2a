"""The hot write of a decision: a plain approval, and what is shown of it, in one round trip.

Where its request named an idempotency key, a second one keeps the answer and commits.

Whatever is not plain is left to the long way (services/decisions.py), which is the reference: the
two write the same rows and the same journal, which a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, models

from approvals.models import Decision, Gate
from approvals.shown import LOOKED_BACK, GateShown, Similar
from config.keys import current_key_id, stream_key
from interrupts import content
from interrupts.models import Checkpoint, Question, Run, Step
from interrupts.transitions import checkpoints
from tenants.idempotency import Answer, KeyName
from tenants.ids import uuid7
from tenants.models import User
from tenants.principal import Principal
from tenants.statements import (
    BEGIN,
    COMMIT,
    Row,
    Statement,
    prepared,
    together,
    transaction_of_statements,
)

M = TypeVar("M", bound=models.Model)
_GATE = Gate._meta.concrete_fields  # noqa: SLF001 - Django's API
_DECISION = Decision._meta.concrete_fields  # noqa: SLF001 - Django's API
_FIELDS = [field.attname for field in _GATE]
_DECIDED_FIELDS = [field.attname for field in _DECISION]
_CHECKPOINT = [field.attname for field in Checkpoint._meta.concrete_fields]  # noqa: SLF001 - Django's API
HELD_BY = f"""
SELECT g.run_id, g.interrupt_id, {", ".join(f"c.{name}" for name in _CHECKPOINT)}
FROM approvals_gate g
LEFT JOIN interrupts_interrupt i ON i.id = g.interrupt_id
LEFT JOIN interrupts_checkpoint c ON c.id = i.checkpoint
WHERE g.id = %b::uuid
"""  # noqa: S608 - names of ours
APPROVE = (
    "SELECT verdict, run, epoch, resumed FROM approvals_approve("
    "%b::uuid, %b::uuid, %b::uuid, %b::text, %b::boolean, %b::text,"
    " %b::uuid, %b::text, %b::bytea, %b::bytea, %b::text, %b::text, %b::text, %b::bigint)"
)
SHOW = f"""
SELECT {", ".join(f"g.{field.column}" for field in _GATE)},
    {", ".join(f"d.{field.column}" for field in _DECISION)},
    r.state_version, s.tool_name, b.body, b.cipher, asked.*,
    past.approved, past.rejected, past.edited
FROM approvals_gate g
JOIN approvals_decision d ON d.id = %b::uuid
JOIN interrupts_run r ON r.id = g.run_id
JOIN interrupts_step s ON s.id = g.step_id
JOIN interrupts_content b ON b.tenant_id = g.tenant_id AND b.digest = g.arguments
CROSS JOIN LATERAL (
    SELECT array_agg(q.id ORDER BY q.id), array_agg(q.text ORDER BY q.id),
        array_agg(q.at ORDER BY q.id), array_agg(q.answer ORDER BY q.id),
        array_agg(q.answered_at ORDER BY q.id), array_agg(q.by_id ORDER BY q.id),
        array_agg(who.username::text ORDER BY q.id)
    FROM interrupts_question q JOIN tenants_user who ON who.id = q.by_id WHERE q.gate = g.id
) asked
CROSS JOIN LATERAL approvals_similar(g.tool_id, {LOOKED_BACK}) past
WHERE g.id = %b::uuid
"""  # noqa: S608 - names of ours


class Approved(NamedTuple):
    """A gate that was approved just now, as its decider is shown it, and the run to be woken."""

    shown: GateShown
    decision: Decision
    tenant: UUID
    run: UUID
    epoch: int


class Held(NamedTuple):
    """The run that a gate holds, and the checkpoint that it goes on from once it is decided.

    Which one that is, and what it says, never changes: it may be read before the run is locked.
    """

    run: UUID
    interrupt: UUID | None
    checkpoint: Checkpoint | None

    @property
    def is_sound(self) -> bool:
        return self.checkpoint is not None and checkpoints.is_sound(self.checkpoint)


def held_by(gate_id: UUID) -> Held:
    """Return what a gate holds; Gate.DoesNotExist for an unknown one, or another tenant's."""
    return held_found(gate_id, prepared(*asking_held_by(gate_id)))


def asking_held_by(gate_id: UUID) -> Statement:
    """Return the statement that looks up what a gate holds."""
    return Statement(HELD_BY, [gate_id])


def held_found(gate_id: UUID, row: Row) -> Held:
    """Return what was looked up; Gate.DoesNotExist where there is no such gate."""
    if not row:
        raise Gate.DoesNotExist(f"gate {gate_id}")
    run, interrupt, *columns = row
    checkpoint = Checkpoint.from_db(DEFAULT_DB_ALIAS, _CHECKPOINT, columns) if columns[0] else None
    return Held(run, interrupt, checkpoint)


def approve(
    principal: Principal,
    gate_id: UUID,
    run_id: UUID,
    digest: str,
    confirmation: str | bool | None,  # noqa: FBT001 - as it was sent
) -> Approved | None:
    """Approve a gate where nothing stands in the way; None: nothing is written, go the long way."""
    decision = uuid7()
    return _approved(
        principal,
        together(
            _approving(principal, gate_id, run_id, digest, confirmation, decision),
            Statement(SHOW, [decision, gate_id]),
        ),
    )


def approve_under_key(
    principal: Principal,
    gate_id: UUID,
    run_id: UUID,
    digest: str,
    confirmation: str | bool | None,  # noqa: FBT001 - as it was sent
    key: KeyName,
    answer: Callable[[Approved], Answer],
) -> tuple[Approved, Answer] | None:
    """Approve a gate and keep the answer under the request's key, in one transaction of its own.

    None: nothing is written, go the long way; so too where the key is held or was answered.
    """
    decision = uuid7()
    with transaction_of_statements():
        _, *rows = together(
            BEGIN,
            _approving(principal, gate_id, run_id, digest, confirmation, decision, key),
            Statement(SHOW, [decision, gate_id]),
        )
        approved = _approved(principal, rows)
        if approved is None:
            return None
        made = answer(approved)
        together(key.storing(made), COMMIT)
    return approved, made


def _approving(
    principal: Principal,
    gate_id: UUID,
    run_id: UUID,
    digest: str,
    confirmation: str | bool | None,  # noqa: FBT001 - as it was sent
    decision: UUID,
    key: KeyName | None = None,
) -> Statement:
    return Statement(
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
            *((key.caller, key.key, key.lock) if key else (None, None, None)),
        ],
    )


def _approved(principal: Principal, rows: Sequence[Row]) -> Approved | None:
    (verdict, run, epoch, _resumed), row = rows
    if verdict != "approved":
        return None
    shown = _shown(principal, row)
    return Approved(shown, shown.decisions[0], principal.tenant_id, run, epoch)


def _shown(principal: Principal, row: Row) -> GateShown:
    gate_end = len(_FIELDS)
    decided_end = gate_end + len(_DECIDED_FIELDS)
    gate = Gate.from_db(DEFAULT_DB_ALIAS, _FIELDS, row[:gate_end])
    decision = Decision.from_db(DEFAULT_DB_ALIAS, _DECIDED_FIELDS, row[gate_end:decided_end])
    state_version, tool_name, body, cipher = row[decided_end : decided_end + 4]
    *asked, approved, rejected, edited = row[decided_end + 4 :]
    gate.run = _part_of(Run, id=gate.run_id, state_version=state_version)
    gate.step = _part_of(Step, id=gate.step_id, tool_name=tool_name)
    decision.user = _part_of(User, id=principal.id, username=principal.name)
    arguments = json.loads(content.unseal(principal.tenant_id, bytes(body), cipher))
    return GateShown(
        gate=gate,
        decisions=[decision],
        bodies={bytes(gate.arguments): arguments},
        given=1,
        may_decide=True,
        similar=Similar(approved, rejected, edited),
        questions=_questions(asked),
    )


def _questions(columns: Sequence[Sequence[Any] | None]) -> list[Question]:
    """Return what was asked about a gate; each column is None where nothing was."""
    found = []
    for pk, text, at, answer, answered_at, by, name in zip(
        *(column or () for column in columns), strict=True
    ):
        one = _part_of(
            Question, id=pk, text=text, at=at, answer=answer, answered_at=answered_at, by_id=by
        )
        one.by = _part_of(User, id=by, username=name)
        found.append(one)
    return found


def _part_of(model: type[M], **columns: Any) -> M:
    """Return a row of which only these columns were read; no default is made for the others."""
    names = _in_order(model, frozenset(columns))
    return model.from_db(DEFAULT_DB_ALIAS, names, [columns[name] for name in names])


@cache
def _in_order(model: type[models.Model], columns: frozenset[str]) -> list[str]:
    fields = model._meta.concrete_fields  # noqa: SLF001 - Django's API
    return [field.attname for field in fields if field.attname in columns]
