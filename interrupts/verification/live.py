"""What is about to start, held against the journal before it does.

A process remembers how far it has read the journals of the runs it works, so a run that goes on
costs it only the entries that are new.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction

from interrupts import locks
from interrupts.errors import Damaged
from interrupts.models import Run, Step, StepStatus
from interrupts.verification import verifiers
from interrupts.verification.chains import Row, proved
from interrupts.verification.faults import Broken
from interrupts.verification.told import StepTold, Told
from tenants.statements import prepared_rows

KEPT: Final = 64  # runs a process remembers
# One statement, so that journal and steps are of one moment.
_SINCE: Final = """
WITH r AS MATERIALIZED (
    SELECT o.id, o.journal_seq, o.journal_hash, o.damage, (
        SELECT json_agg(json_build_array(s.id, s.status, s.authorized_by, s.authorized_digest,
            s.authorized_under, s.authorized_gate))
        FROM interrupts_step s WHERE s.run_id = o.id AND s.position >= o.next_step
            AND s.status = 'ready' AND s.executor <> 'agent')::text AS ready
    FROM interrupts_run o WHERE o.id = %b::uuid)
SELECT r.journal_seq, r.journal_hash, r.damage,
    CASE WHEN e.seq IS NULL OR e.seq = %b::bigint + 1 THEN r.ready END,  -- once, with the first row
    e.seq, e.kind, e.at, e.text, e.key_id, e.hash
FROM r LEFT JOIN tenants_journalentry e ON e.stream = r.id AND e.seq > %b::bigint ORDER BY e.seq
"""
_known: OrderedDict[UUID, tuple[int, bytes, Told]] = OrderedDict()
_lock = threading.Lock()


class Authorized(NamedTuple):
    """What a step's row says of its authorization."""

    id: str
    status: str
    by: str | None
    digest: str | None
    under: int | None
    gate: str | None

    @classmethod
    def of(cls, step: Step) -> Authorized:
        return cls(
            str(step.pk),
            step.status,
            step.authorized_by,
            step.authorized_digest,
            step.authorized_under,
            str(step.authorized_gate) if step.authorized_gate else None,
        )


def read_on(run_id: UUID) -> tuple[Told, list[Authorized]]:
    """Return what the run's journal says of it by now, and the steps a worker may start.

    Raises Damaged where the chain does not hold; and Run.DoesNotExist.
    """
    with _lock:  # whoever reads on has it alone
        after, link, told = _known.pop(run_id, (0, b"", Told()))
    rows = prepared_rows(_SINCE, [run_id, after, after])
    if not rows:
        raise Run.DoesNotExist(f"run {run_id}")
    seq, head, damage, ready = rows[0][0], bytes(rows[0][1]), rows[0][2], rows[0][3]
    if damage is not None:
        raise Damaged(damage)
    entries = (Row(*row[4:]) for row in rows if row[4] is not None)
    try:
        for said in proved(run_id, entries, after=after, link=link, seq=seq, head=head):
            told.take(said)
    except Broken as broken:
        if after:  # what was read before was taken back since: it is read anew
            return read_on(run_id)
        fault = broken.fault
        raise Damaged(f"The run's history does not verify: {fault.at} {fault.what}.") from None
    with _lock:
        _known[run_id] = (seq, head, told)
        while len(_known) > KEPT:
            _known.popitem(last=False)
    return told, [Authorized(*one) for one in json.loads(ready or "[]")]


def check_ready(run_id: UUID) -> Told:
    """Raise Damaged unless each step that a worker may start is ready by the journal too.

    A step that people decided starts only where their gate and votes are what the journal says.
    """
    with suppress(Damaged):
        return _check_ready(run_id)
    # Gates were read after the journal: under the lock all of it is of one moment.
    with transaction.atomic():
        locks.lock_family(run_id)
        return _check_ready(run_id)


def _check_ready(run_id: UUID) -> Told:
    told, ready = read_on(run_id)
    _check(run_id, told, ready)
    return told


def check_one(run_id: UUID, step: Step) -> None:
    """Raise Damaged unless the step, whose run is locked, is what the journal says of it."""
    told, _ = read_on(run_id)
    if told.verdicts.hold:
        raise Damaged("A verdict holds the run, and its row does not say so.")
    _check(run_id, told, [Authorized.of(step)])


def _check(run_id: UUID, told: Told, steps: Sequence[Authorized]) -> None:
    for step in steps:
        of = told.steps.get(step.id)
        if of is None or of.status != step.status or not _is_authorized(of, step):
            raise Damaged(f"The step {step.id} is {step.status} and the journal does not say so.")
    # Whatever has a gate was decided, by people or by a rule in somebody's name.
    _check_decided(run_id, told, {one.gate for one in steps if one.by != "policy" and one.gate})


def _is_authorized(told: StepTold, step: Authorized) -> bool:
    said = told.authorized
    return (
        said is not None
        and (said["digest"], said["by"], said["gate"]) == (step.digest, step.by, step.gate)
        and said.get("under", step.under) == step.under
    )


def check_undoing(run_id: UUID, step: Step) -> None:
    """Raise Damaged unless the journal says that the step's effect is to be undone."""
    told, _ = read_on(run_id)
    of = told.steps.get(str(step.pk))
    if of is None or not of.undo_wanted or of.status != step.status:
        raise Damaged(f"The step {step.pk} is to be undone and the journal does not say so.")


def may_start(told: Told, step: UUID, digest: str) -> bool:
    """Whether what has been read says that the step is ready, authorised as this call.

    None is while a verdict holds the run.
    """
    of = told.steps.get(str(step))
    if told.verdicts.hold or of is None or of.status != StepStatus.READY or of.authorized is None:
        return False
    return bool(of.authorized["digest"] == digest)


def intended(told: Told, step: UUID, attempt: UUID, digest: str) -> bool:
    """Whether the journal has the intent of this attempt at the call that was authorised then."""
    of = told.attempts.get(str(attempt))
    return of is not None and not of.held and (of.step, of.digest) == (str(step), digest)


def _check_decided(run_id: UUID, told: Told, gates: Collection[str]) -> None:
    if not gates or told.is_older:
        return
    for verify in verifiers():
        fault = next(verify(run_id, told, gates), None)
        if fault is not None:
            raise Damaged(f"The run's history does not verify: {fault.at} {fault.what}.")
