"""The hot write of a decision: a plain approval in two round trips, sign-in included.

The first reads what the gate holds and shows, and the database's time. From it the answer is made
as it is once the gate is approved at that time. The second is one statement and its own
transaction: under the run's lock it looks whether all of that still stands, and writes the
approval, and the answer where its request named an idempotency key.

Whatever is not plain is left to the long way (services/decisions.py), which is the reference: the
two write the same rows and the same journal, which a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, IntegrityError, models
from django.db.models.base import ModelState

from approvals.models import Decision, Gate, GateState, Verdict
from approvals.shown import GateShown
from config.keys import current_key_id, stream_key
from interrupts import content
from interrupts.models import Checkpoint, Question, Run, Step
from interrupts.transitions import checkpoints
from tenants import scope
from tenants.idempotency import Answer, KeyName
from tenants.ids import uuid7
from tenants.models import User
from tenants.principal import Principal
from tenants.statements import Row, Statement, prepared

M = TypeVar("M", bound=models.Model)
_GATE: Final = Gate._meta.concrete_fields  # noqa: SLF001 - Django's API
_FIELDS: Final = [field.attname for field in _GATE]
_CHECKPOINT: Final = [field.attname for field in Checkpoint._meta.concrete_fields]  # noqa: SLF001 - Django's API
_HELD: Final = 8  # columns before those of the gate
_SHOWN: Final = _HELD + len(_FIELDS)
SEE: Final = f"""
SELECT clock_timestamp(), g.xmin::text,
    (SELECT r.state_version FROM interrupts_run r WHERE r.id = g.run_id),
    (SELECT t.authority_version FROM tenants_tenant t WHERE t.id = g.tenant_id),
    (SELECT s.tool_name FROM interrupts_step s WHERE s.id = g.step_id),
    b.body, b.cipher, EXISTS (SELECT FROM interrupts_question q WHERE q.gate = g.id),
    {", ".join(f"g.{field.column}" for field in _GATE)},
    {", ".join(f"c.{name}" for name in _CHECKPOINT)}
FROM approvals_gate g
LEFT JOIN interrupts_content b ON b.tenant_id = g.tenant_id AND b.digest = g.arguments
LEFT JOIN interrupts_interrupt i ON i.id = g.interrupt_id
LEFT JOIN interrupts_checkpoint c ON c.id = i.checkpoint
WHERE g.id = %b::uuid
"""  # noqa: S608 - names of ours
APPROVE: Final = (
    "SELECT approvals_approve(%b::uuid, %b::uuid, %b::uuid, %b::bigint, %b::bigint,"
    " %b::text::xid, %b::timestamptz, %b::uuid, %b::text, %b::boolean, %b::text, %b::uuid,"
    " %b::text, %b::bytea, %b::bytea, %b::text,"
    " %b::bigint, %b::text, %b::text, %b::bytea, %b::smallint, %b::text::jsonb, %b::bytea,"
    " %b::boolean)"
)
_NO_KEY: Final = (*(None,) * 7, False)
_KEY_NAMES_ONE: Final = "idempotency_key_names_one_answer"


class Approved(NamedTuple):
    """A gate that was approved just now, as its decider is shown it, and the run to be woken."""

    shown: GateShown
    decision: Decision
    tenant: UUID
    run: UUID
    epoch: int


class Seen(NamedTuple):
    """A gate as it was read before its run was locked, and what it holds.

    Which run and checkpoint those are, and what the checkpoint says, never changes.
    """

    at: datetime  # the database's time
    written: str  # the transaction that wrote the gate's row as it is
    state_version: int
    under: int  # the tenant's authority version
    tool_name: str
    body: bytes | None  # the arguments; None where they were erased
    cipher: str | None
    has_questions: bool
    gate: dict[str, Any]
    checkpoint: Checkpoint | None

    @property
    def run(self) -> UUID:
        run: UUID = self.gate["run_id"]
        return run

    @property
    def interrupt(self) -> UUID | None:
        interrupt: UUID | None = self.gate["interrupt_id"]
        return interrupt

    @property
    def is_sound(self) -> bool:
        return self.checkpoint is not None and checkpoints.is_sound(self.checkpoint)


def look(gate_id: UUID) -> Seen:
    """Return a gate with what it holds; Gate.DoesNotExist for an unknown one, or another tenant's."""
    return seen(gate_id, prepared(*looking(gate_id)))


def looking(gate_id: UUID) -> Statement:
    """Return the statement that looks at a gate."""
    return Statement(SEE, [gate_id])


def seen(gate_id: UUID, row: Row) -> Seen:
    """Return what was looked up; Gate.DoesNotExist where there is no such gate."""
    if not row:
        raise Gate.DoesNotExist(f"gate {gate_id}")
    at, written, version, under, tool, body, cipher, asked = row[:_HELD]
    gate = dict(zip(_FIELDS, row[_HELD:_SHOWN], strict=True))
    taken = dict(zip(_CHECKPOINT, row[_SHOWN:], strict=True))
    checkpoint = _row(Checkpoint, taken) if taken["id"] else None
    return Seen(at, written, version, under, tool, body, cipher, asked, gate, checkpoint)


def approve(
    principal: Principal,
    found: Seen,
    digest: str,
    confirmation: str | bool | None,  # noqa: FBT001 - as it was sent
) -> Approved | None:
    """Approve a gate where nothing stands in the way; None: nothing is written, go the long way."""
    approved = _as_approved(principal, found, digest)
    return approved and _written(principal, found, approved, confirmation, _NO_KEY)


def approve_under_key(
    principal: Principal,
    found: Seen,
    digest: str,
    confirmation: str | bool | None,  # noqa: FBT001 - as it was sent
    key: KeyName,
    answer: Callable[[Approved], Answer],
) -> tuple[Approved, Answer] | None:
    """Approve a gate and keep the answer under the request's key, in one transaction of its own.

    None: nothing is written, go the long way; so too where the key is held or was answered.
    """
    approved = _as_approved(principal, found, digest)
    if approved is None:
        return None
    made = answer(approved)
    leaves = scope.may_leave()
    kept = key.lock, *key.keeping(made), leaves
    try:
        written = _written(principal, found, approved, confirmation, kept)
    except IntegrityError as refused:
        if _constraint(refused) != _KEY_NAMES_ONE:
            raise
        return None
    if written is None:
        return None
    if leaves:
        scope.left()
    return written, made


def _written(
    principal: Principal,
    found: Seen,
    approved: Approved,
    confirmation: str | bool | None,  # noqa: FBT001 - as it was sent
    kept: Sequence[Any],
) -> Approved | None:
    decision = approved.decision
    (epoch,) = prepared(
        APPROVE,
        [
            principal.tenant_id,
            decision.gate_id,
            found.run,
            found.state_version,
            found.under,
            found.written,
            found.at,
            principal.id,
            decision.digest,
            confirmation is True,
            confirmation if isinstance(confirmation, str) else None,
            decision.pk,
            *stream_key(found.run, current_key_id()),
            principal.actor.text,
            *kept,
        ],
    )
    return None if epoch is None else approved._replace(epoch=epoch)


def _constraint(refused: IntegrityError) -> str | None:
    return getattr(getattr(refused.__cause__, "diag", None), "constraint_name", None)


def _as_approved(principal: Principal, found: Seen, digest: str) -> Approved | None:
    """Return the gate as it is once it is approved; None where what it is about was erased."""
    if found.body is None or found.cipher is None:
        return None
    run = _row(Run, {"id": found.run, "state_version": found.state_version + 1})
    step = _row(Step, {"id": found.gate["step_id"], "tool_name": found.tool_name})
    columns = {"state": GateState.APPROVED.value, "settled_at": found.at, "due_at": None}
    gate = _row(Gate, {**found.gate, **columns}, run=run, step=step)
    decision = _decision(principal, gate, found.at, digest)
    arguments = json.loads(content.unseal(principal.tenant_id, bytes(found.body), found.cipher))
    shown = GateShown(
        gate=gate,
        decisions=[decision],
        bodies={bytes(gate.arguments): arguments},
        given=1,
        may_decide=True,
        similar=None,
        questions=_questions(gate.pk) if found.has_questions else (),
    )
    return Approved(shown, decision, principal.tenant_id, found.run, epoch=0)


def _decision(principal: Principal, gate: Gate, at: datetime, digest: str) -> Decision:
    return _row(
        Decision,
        {
            **_UNSAID,
            "id": uuid7(),
            "tenant_id": principal.tenant_id,
            "gate_id": gate.pk,
            "user_id": principal.id,
            "verdict": Verdict.APPROVE.value,
            "digest": digest,
            "approves": gate.arguments_digest,
            "policy_version": gate.policy_version,
            "counts": True,
            "at": at,
        },
        user=_row(User, {"id": principal.id, "username": principal.name}),
        acting_for=None,
    )


def _questions(gate_id: UUID) -> list[Question]:
    return list(Question.objects.filter(gate=gate_id).select_related("by").order_by("id"))


def _row(model: type[M], columns: dict[str, Any], **related: Any) -> M:
    """Return a row that was read, of which only these columns were: quicker than Django does."""
    made = model.__new__(model)
    state = ModelState()
    state.adding, state.db, state.fields_cache = False, DEFAULT_DB_ALIAS, related
    made.__dict__.update(columns, _state=state)
    return made


_UNSAID: Final = dict.fromkeys(field.attname for field in Decision._meta.concrete_fields)  # noqa: SLF001 - Django's API
