"""Checkpoints: what a run can be resumed from, taken at a boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from config import jsontext
from interrupts import content, imprints
from interrupts.errors import CheckpointVersion, Damaged
from interrupts.models import Checkpoint, Run, Step, StepStatus
from interrupts.transitions import versions
from interrupts.transitions.versions import digest_of
from interrupts.work import Work

SCHEMA_VERSION = versions.CURRENT  # of those that are taken
NOTHING = b"{}"  # the append of a state that did not grow


@dataclass(frozen=True, slots=True)
class AgentState:
    """The opaque state of an agent's framework: whole, or what was appended to a base's lists."""

    format: str
    version: str
    size: int  # bytes of the whole, canonical
    digest: str  # of the whole, or of its base's and what was added (`versions.grown_digest`)
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
    has_state = checkpoint.agent_body is not None
    work.note(
        "checkpoint.taken",
        checkpoint=checkpoint.pk,
        digest=checkpoint.digest,
        state=work.imprint(checkpoint, imprints.STATE) if has_state else None,
    )
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
        _carry_on(checkpoint, last)


def _carry_on(checkpoint: Checkpoint, last: Checkpoint) -> None:
    """Keep the state of an earlier checkpoint as it is kept there.

    One of a version that this release does not know stays of that version, so that what carries it
    on is refused as it would be; one whose digest was made otherwise is the base of the new one.
    """
    checkpoint.agent_format = last.agent_format
    checkpoint.agent_version = last.agent_version
    checkpoint.agent_size = last.agent_size
    checkpoint.agent_digest = last.agent_digest
    checkpoint.agent_base_id = last.agent_base_id
    checkpoint.agent_body = last.agent_body
    if last.schema_version > versions.CURRENT:
        checkpoint.schema_version = last.schema_version
    elif last.agent_base_id and versions.current(last)["agent_digest_of"] == versions.WHOLE:
        checkpoint.agent_base = last
        checkpoint.agent_body = content.put(NOTHING)
        checkpoint.agent_digest = versions.grown_digest(str(last.agent_digest), NOTHING)


def check(checkpoint: Checkpoint, run: Run | None = None) -> None:
    """Refuse a checkpoint that nothing may go on from: not what was taken, or not understood.

    ``run``: what it says must be what that run can have come to. Raises CheckpointVersion, Damaged.
    """
    versions.check_known(checkpoint)
    taken = versions.document_of(checkpoint)
    if jsontext.digest(taken) != checkpoint.digest:
        raise Damaged("The checkpoint is not what was taken.")
    document = versions.current(checkpoint, taken)
    if run is not None:
        versions.check_run(document, run)


def is_sound(checkpoint: Checkpoint) -> bool:
    """Say whether a run may go on from the checkpoint."""
    try:
        check(checkpoint)
    except (CheckpointVersion, Damaged):
        return False
    return True


def gates_pending(run: Run) -> list[UUID]:
    # From the first step that is not settled, or each checkpoint would look through all the others.
    waiting = Step.objects.filter(
        run=run, position__gte=run.next_step, status=StepStatus.WAITING, gate__isnull=False
    )
    return [gate for gate in waiting.order_by("position").values_list("gate", flat=True) if gate]
