"""What is about to start, held against the journal before it does.

A process remembers how far it has read the journals of the runs it works, so a run that goes on
costs it only the entries that are new.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from uuid import UUID

from django.db import connection, transaction

from interrupts import locks
from interrupts.errors import Damaged
from interrupts.models import Executor, Run, Step, StepStatus
from interrupts.verification import verifiers
from interrupts.verification.chains import Row, proved
from interrupts.verification.faults import Broken
from interrupts.verification.told import StepTold, Told

KEPT: Final = 64  # runs a process remembers
_SINCE: Final = """
SELECT r.journal_seq, r.journal_hash, r.next_step, r.damage,
    e.seq, e.kind, e.at, e.text, e.key_id, e.hash
FROM interrupts_run r LEFT JOIN tenants_journalentry e ON e.stream = r.id AND e.seq > %s
WHERE r.id = %s ORDER BY e.seq
"""
_known: OrderedDict[UUID, tuple[int, bytes, Told]] = OrderedDict()
_lock = threading.Lock()


def read_on(run_id: UUID) -> tuple[Told, int]:
    """Return what the run's journal says of it by now, and its first position that may be open.

    Raises Damaged where the chain does not hold, or is not the one that was read before; and
    Run.DoesNotExist.
    """
    with _lock:  # whoever reads on has it alone
        after, link, told = _known.pop(run_id, (0, b"", Told()))
    with connection.cursor() as cursor:
        cursor.execute(_SINCE, [after, run_id])
        rows = cursor.fetchall()
    if not rows:
        raise Run.DoesNotExist(f"run {run_id}")
    seq, head, first, damage = rows[0][0], bytes(rows[0][1]), rows[0][2], rows[0][3]
    if damage is not None:
        raise Damaged(damage)
    entries = (Row(*row[4:]) for row in rows if row[4] is not None)
    try:
        for said in proved(run_id, entries, after=after, link=link, seq=seq, head=head):
            told.take(said)
    except Broken as broken:
        fault = broken.fault
        raise Damaged(f"The run's history does not verify: {fault.at} {fault.what}.") from None
    with _lock:
        _known[run_id] = (seq, head, told)
        while len(_known) > KEPT:
            _known.popitem(last=False)
    return told, first


def check_ready(run_id: UUID) -> Told:
    """Raise Damaged unless each step that a worker may start is ready by the journal too.

    A step that people decided starts only where their gate and votes are what the journal says.
    """
    with suppress(Damaged):
        return _check_ready(run_id)
    # Journal and rows were read one after the other: under the lock they are of one moment.
    with transaction.atomic():
        locks.lock_family(run_id)
        return _check_ready(run_id)


def _check_ready(run_id: UUID) -> Told:
    told, first = read_on(run_id)
    ready = Step.objects.filter(run=run_id, position__gte=first, status=StepStatus.READY)
    steps = list(ready.exclude(executor=Executor.AGENT))
    for step in steps:
        check_step(told, step)
    _check_decided(told, steps)
    return told


def check_one(run_id: UUID, step: Step) -> None:
    """Raise Damaged unless the step, whose run is locked, is what the journal says of it."""
    told, _ = read_on(run_id)
    check_step(told, step)
    _check_decided(told, [step])


def check_step(told: Told, step: Step) -> None:
    of = told.steps.get(str(step.pk))
    if of is None or of.status != step.status or not _is_authorized(of, step):
        raise Damaged(f"The step {step.pk} is {step.status} and the journal does not say so.")


def _is_authorized(told: StepTold, step: Step) -> bool:
    said = told.authorized
    return (
        said is not None
        and said["digest"] == step.authorized_digest
        and said["by"] == step.authorized_by
        and said.get("under", step.authorized_under) == step.authorized_under
    )


def check_undoing(run_id: UUID, step: Step) -> None:
    """Raise Damaged unless the journal says that the step's effect is to be undone."""
    told, _ = read_on(run_id)
    of = told.steps.get(str(step.pk))
    if of is None or not of.undo_wanted or of.status != step.status:
        raise Damaged(f"The step {step.pk} is to be undone and the journal does not say so.")


def may_start(told: Told, step: UUID, digest: str) -> bool:
    """Whether what has been read says that the step is ready, authorised as this call."""
    of = told.steps.get(str(step))
    return of is not None and of.status == StepStatus.READY and _is_call(of, digest)


def intended(told: Told, step: UUID, attempt: UUID | None, digest: str) -> bool:
    """Whether the journal has the intent of this attempt at the call that was authorised.

    None: a read, which has no intent.
    """
    of = told.steps.get(str(step))
    if of is None or not _is_call(of, digest):
        return False
    return attempt is None or str(attempt) in told.attempts


def _is_call(told: StepTold, digest: str) -> bool:
    return told.authorized is not None and told.authorized["digest"] == digest


def _check_decided(told: Told, steps: Sequence[Step]) -> None:
    if not any(step.authorized_by == "decision" for step in steps):
        return
    run = Run.objects.get(pk=steps[0].run_id)
    for verify in verifiers():
        fault = next(verify(run, told), None)
        if fault is not None:
            raise Damaged(f"The run's history does not verify: {fault.at} {fault.what}.")
