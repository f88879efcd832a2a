"""What is held against the journal of a run that began under a release whose journals said less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interrupts.models import Checkpoint, Interrupt, InterruptStatus, Receipt, Run, Step
from interrupts.transitions.versions import digest_of
from interrupts.verification.faults import Fault, compare, unmatched
from interrupts.verification.told import Told

RECEIPT = ("source", "outcome", "external_id")


def faults(run: Run, told: Told) -> Iterator[Fault]:
    """Yield what differs of the states of run, steps and interrupts, of receipts and checkpoints."""
    stored: dict[str, Any] = {"status": run.status, "epoch": run.epoch, "session": run.session}
    yield from compare(run.pk, "run", stored, {name: getattr(told, name) for name in stored})
    steps = {str(step.pk): step for step in Step.objects.filter(run=run)}
    yield from unmatched(run.pk, "step", set(steps), set(told.steps))
    for pk in steps.keys() & told.steps.keys():
        stored, expected = {"status": steps[pk].status}, {"status": told.steps[pk].status}
        yield from compare(run.pk, f"step {pk}", stored, expected)
    held = Interrupt.objects.filter(run=run, status=InterruptStatus.OPEN)
    rows = {str(pk) for pk in held.values_list("pk", flat=True)}
    yield from unmatched(run.pk, "open interrupt", rows, told.open)
    yield from compare(
        run.pk, "run", {"open_interrupts": run.open_interrupts}, {"open_interrupts": len(rows)}
    )
    yield from _receipts(run, told)
    yield from _checkpoints(run, told)


def _receipts(run: Run, told: Told) -> Iterator[Fault]:
    rows = {str(row.pk): row for row in Receipt.objects.filter(run=run)}
    yield from unmatched(run.pk, "receipt", set(rows), set(told.receipts))
    for pk in rows.keys() & told.receipts.keys():
        row = rows[pk]
        stored = {
            "step": str(row.step_id),
            "attempt": str(row.attempt) if row.attempt else None,
            "result": bytes(row.result).hex() if row.result is not None else None,
            **{name: getattr(row, name) for name in RECEIPT},
        }
        said = {"attempt": None, "external_id": None, **told.receipts[pk].data}
        yield from compare(run.pk, f"receipt {pk}", stored, said)


def _checkpoints(run: Run, told: Told) -> Iterator[Fault]:
    rows = {str(row.pk): row for row in Checkpoint.objects.filter(run=run)}
    yield from unmatched(run.pk, "checkpoint", set(rows), set(told.checkpoints))
    for pk in rows.keys() & told.checkpoints.keys():
        digest = told.checkpoints[pk].data["digest"]
        if (rows[pk].digest, digest_of(rows[pk])) != (digest, digest):
            yield Fault(run.pk, f"checkpoint {pk}", "is not what was taken")
