"""A fork: an ended run goes on only as a new run, from one of its checkpoints, by a person's word."""

from __future__ import annotations

from uuid import UUID

from config.errors import DomainError, InvalidBody
from interrupts import imprints, verification
from interrupts.authorizer import authorizer
from interrupts.errors import MayNot
from interrupts.models import Checkpoint, Run
from interrupts.services import damage
from interrupts.services.acting import OPERATORS, as_person, role_now
from interrupts.services.runs import limits_in_force, owner_silent_at
from interrupts.transitions import checkpoints
from interrupts.work import Work
from tenants.ids import uuid7
from tenants.journal import Entry, append_to_tenant
from tenants.principal import Principal


class RunNotEnded(DomainError):
    """Only an ended run is forked; one that has not ended goes on by itself."""

    code = "run-not-ended"


def fork_run(principal: Principal, run_id: UUID, *, checkpoint: UUID) -> Run:
    """Start a new run of the same agent from a checkpoint of an ended one.

    It has the checkpoint's agent state, no steps and no usage yet, and shares the names of steps:
    what succeeded under a key is not done again. Raises MayNot, RunNotEnded, InvalidBody,
    Damaged, CheckpointVersion.
    """
    with damage.noticed(run_id), as_person(principal, run_id) as work:
        if role_now(principal) not in OPERATORS:
            raise MayNot("Operators and admins fork a run.")
        origin = work.run
        if not origin.ended:
            raise RunNotEnded(f"The run is {origin.status}.")
        verification.check_history(origin)
        start = _start(origin, checkpoint)
        fork = _fork(origin, work)
        made = Work(fork, work.now, principal.actor, work.authority_version)
        made.note(
            "run.started",
            workflow=fork.workflow,
            parent=None,
            forked_from=origin.pk,
            budget={name: str(limit) for name, limit in fork.budget.items()},
            imprint=made.imprint(fork, imprints.RUN),
        )
        made.note("run.forked", forked_from=origin.pk, checkpoint=start.pk)
        made.state_unchanged()  # it starts at the first version
        checkpoints.take(made, carried=start)
        made.due(owner_silent_at(fork))
        made.finish()
        append_to_tenant(
            principal.actor, Entry("run.forked", {"run": fork.pk, "forked_from": origin.pk})
        )
        work.state_unchanged()
    return fork


def _start(origin: Run, checkpoint: UUID) -> Checkpoint:
    found = Checkpoint.objects.filter(pk=checkpoint, run=origin).first()
    if found is None:
        raise InvalidBody.at("/checkpoint", "is no checkpoint of this run")
    checkpoints.check(found, origin)
    return found


def _fork(origin: Run, work: Work) -> Run:
    fork = Run(
        id=uuid7(),
        agent_id=origin.agent_id,
        workflow=origin.workflow,
        goal=origin.goal,
        inputs=origin.inputs,
        labels=origin.labels,
        requested_by_id=origin.requested_by_id,
        forked_from=origin,
        key_scope=origin.key_scope,
        idle_after_seconds=origin.idle_after_seconds,
        last_seen_at=work.now,
        created_at=work.now,
        updated_at=work.now,
    )
    fork.root = fork.pk
    fork.budget = limits_in_force(origin.budget, authorizer().limits(fork), None)
    fork.save(force_insert=True)
    return fork
