"""Journals, read as an auditor reads them: the chain recomputed, the states rebuilt from it."""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from config.keys import derive
from interrupts.models import Interrupt, Run, Step
from tenants.models import JournalEntry


def entries(stream: UUID) -> list[JournalEntry]:
    return list(JournalEntry.objects.filter(stream=stream).order_by("seq"))


def broken_link(stream: UUID) -> int | None:
    """The first entry that is out of sequence, or whose hash is not its chain's; None: no such.

    RFC 2104 anew, with the key that lives outside the database.
    """
    head = b""
    for expected, entry in enumerate(entries(stream), 1):
        key = derive("journal", stream, key_id=entry.key_id)
        head = hmac.digest(key, head + entry.text.encode(), "sha256")
        said = json.loads(entry.text)
        if (entry.seq, said["seq"], said["kind"]) != (expected, expected, entry.kind):
            return expected
        if bytes(entry.hash) != head:
            return expected
    return None


def assert_history_holds(run: Run) -> None:
    """The run's journal is gap-free, its chain verifies, and its row is the chain's head."""
    run = Run.objects.get(pk=run.pk)
    assert broken_link(run.pk) is None
    last = entries(run.pk)[-1]
    assert (run.journal_seq, bytes(run.journal_hash)) == (last.seq, bytes(last.hash))


@dataclass
class Rebuilt:
    """What a run's journal alone says of it."""

    status: str = ""
    epoch: int = 1
    session: int = 0
    steps: dict[str, str] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)


_RUN = {
    "run.started": "running",
    "run.resumed": "running",
    "run.suspended": "suspended",
    "run.cancelling": "cancelling",
    "run.completed": "completed",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
}
_STEP = {
    "step.proposed": "waiting",
    "step.authorized": "ready",
    "gate.opened": "waiting",
    "attempt.started": "executing",
    "step.unknown": "unknown",
    "step.retried": "ready",
}


def rebuilt(run: Run) -> Rebuilt:
    made = Rebuilt()
    for entry in entries(run.pk):
        _take(made, entry.kind, json.loads(entry.text)["data"])
    return made


def _take(made: Rebuilt, kind: str, data: dict[str, Any]) -> None:
    made.status = _RUN.get(kind, made.status)
    made.epoch = data.get("epoch", made.epoch)
    if kind in _STEP:
        made.steps[data["step"]] = _STEP[kind]
    elif kind in ("step.settled", "step.denied"):
        made.steps[data["step"]] = data["status"]
    elif kind == "run.claimed":
        made.session = data["session"]
    elif kind == "interrupt.opened":
        made.open.add(data["interrupt"])
    elif kind in ("interrupt.resolved", "interrupt.expired"):
        made.open.remove(data["interrupt"])


def as_stored(run: Run) -> Rebuilt:
    run = Run.objects.get(pk=run.pk)
    steps = Step.objects.filter(run=run).values_list("pk", "status")
    held = Interrupt.objects.filter(run=run, status="open").values_list("pk", flat=True)
    return Rebuilt(
        status=run.status,
        epoch=run.epoch,
        session=run.session,
        steps={str(pk): status for pk, status in steps},
        open={str(pk) for pk in held},
    )


def assert_states_are_rebuilt(run: Run) -> None:
    assert rebuilt(run) == as_stored(run)
