"""Checkpoints: what a run can be resumed from, taken at a boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from config import jsontext
from interrupts import content
from interrupts.models import Checkpoint, Run, Step, StepStatus
from interrupts.work import Work

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class AgentState:
    """The opaque state of an agent's framework: whole, or what was appended to a base's lists."""

    format: str
    version: str
    size: int  # bytes of the whole, canonical
    digest: str  # of the whole, canonical
    body: bytes  # canonical: the whole, or {pointer: [items]}
    base: Checkpoint | None = None


def take(
    work: Work,
    *,
    agent_state: AgentState | None = None,
    pending_gates: Sequence[UUID] | None = None,
    policy_version: int | None = None,
    carried: Checkpoint | None = None,
) -> Checkpoint:
    """Take the run's next checkpoint; the agent's state is carried on where none is given.

    ``carried``: the checkpoint of another run that this one goes on from.
    """
    run = work.run
    last = Checkpoint.objects.filter(run=run).order_by("-sequence").first()
    gates = gates_pending(run) if pending_gates is None else list(pending_gates)
    checkpoint = Checkpoint(
        run=run,
        sequence=last.sequence + 1 if last else 1,
        # The one that this work leaves the run at.
        state_version=run.state_version + work.counts,
        schema_version=SCHEMA_VERSION,
        status=run.status,
        next_step=run.next_step,
        pending_gates=[str(gate) for gate in gates],
        receipts_through=work.journal_seq,
        permissions={
            "authority_version": work.authority_version,
            "policy_version": policy_version,
            "epoch": run.epoch,
            "session": run.session,
        },
        inputs=jsontext.digest(run.inputs),
        created_at=work.now,
    )
    _carry_state(checkpoint, carried or last, agent_state)
    checkpoint.digest = digest_of(checkpoint)
    checkpoint.save(force_insert=True)
    run.checkpoint = checkpoint
    work.note("checkpoint.taken", checkpoint=checkpoint.pk, digest=checkpoint.digest)
    return checkpoint


def _carry_state(checkpoint: Checkpoint, last: Checkpoint | None, state: AgentState | None) -> None:
    if state is not None:
        checkpoint.agent_format = state.format
        checkpoint.agent_version = state.version
        checkpoint.agent_size = state.size
        checkpoint.agent_digest = state.digest
        checkpoint.agent_base = state.base
        checkpoint.agent_body = content.put(state.body)
    elif last is not None and last.agent_format is not None:
        checkpoint.agent_format = last.agent_format
        checkpoint.agent_version = last.agent_version
        checkpoint.agent_size = last.agent_size
        checkpoint.agent_digest = last.agent_digest
        checkpoint.agent_base_id = last.agent_base_id
        checkpoint.agent_body = last.agent_body


def gates_pending(run: Run) -> list[UUID]:
    waiting = Step.objects.filter(run=run, status=StepStatus.WAITING, gate__isnull=False)
    return [gate for gate in waiting.order_by("position").values_list("gate", flat=True) if gate]


def digest_of(checkpoint: Checkpoint) -> str:
    """Return the digest of everything a run is resumed from."""
    body: dict[str, Any] = {
        "run": str(checkpoint.run_id),
        "sequence": checkpoint.sequence,
        "state_version": checkpoint.state_version,
        "schema_version": checkpoint.schema_version,
        "status": str(checkpoint.status),
        "next_step": checkpoint.next_step,
        "pending_gates": checkpoint.pending_gates,
        "receipts_through": checkpoint.receipts_through,
        "permissions": checkpoint.permissions,
        "inputs": checkpoint.inputs,
        "agent_format": checkpoint.agent_format,
        "agent_version": checkpoint.agent_version,
        "agent_digest": checkpoint.agent_digest,
        "agent_base": str(checkpoint.agent_base_id) if checkpoint.agent_base_id else None,
    }
    return jsontext.digest(body)
