"""Whether what is stored is what happened: chains, receipts, bodies and states, proved again.

A run's journal is read as an auditor reads it: each link is computed anew with a key that lives
outside the database, and what the journal alone says of the run is compared with its rows.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from config.keys import content_key, current_key_id, derive
from interrupts import content
from interrupts.digests import step_digest
from interrupts.errors import Damaged
from interrupts.models import (
    Checkpoint,
    Content,
    Interrupt,
    InterruptStatus,
    Receipt,
    Run,
    RunStatus,
    Step,
    StepStatus,
)
from interrupts.transitions.versions import digest_of
from tenants.models import JournalEntry, Tenant
from tenants.scope import current_tenant_id
from tenants.sealing import SealBroken

CHUNK: Final = 2000


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not what it was: of which stream, at which entry or row, and how."""

    stream: UUID
    at: str
    what: str

    def __str__(self) -> str:
        return f"{self.stream} {self.at}: {self.what}"


# Chains


def chain_fault(stream: UUID, seq: int, head: bytes) -> Fault | None:
    """Return the first entry that is not what was written, or a head that is not the last's."""
    link, expected = b"", 0
    for entry in JournalEntry.objects.filter(stream=stream).order_by("seq").iterator(CHUNK):
        expected += 1
        link, wrong = _link(entry, expected, link)
        if wrong:
            return Fault(stream, f"entry {expected}", wrong)
    if (expected, link) != (seq, head):
        return Fault(stream, f"entry {expected}", f"the head says {seq} entries and another hash")
    return None


def _link(entry: JournalEntry, expected: int, before: bytes) -> tuple[bytes, str | None]:
    if entry.seq != expected:
        return before, f"is missing: the next there is {entry.seq}"
    try:
        key = derive("journal", entry.stream, key_id=entry.key_id)
    except KeyError:
        return before, f"is under the key {entry.key_id!r}, which nobody has"
    link = hmac.digest(key, before + entry.text.encode(), "sha256")
    if link != bytes(entry.hash):
        return link, "its hash is not its text's, under its key, after the entry before"
    said = json.loads(entry.text)
    if (said["seq"], said["kind"]) != (entry.seq, entry.kind):
        return link, "its columns are not what its text says"
    return link, None


def of_tenant() -> Iterator[Fault]:
    """Yield what is wrong with the tenant's own stream."""
    tenant = Tenant.objects.get(pk=current_tenant_id())
    fault = chain_fault(tenant.pk, tenant.journal_seq, bytes(tenant.journal_hash))
    if fault:
        yield fault


# Runs


def run_chain_fault(run: Run) -> Fault | None:
    return chain_fault(run.pk, run.journal_seq, bytes(run.journal_hash))


def check_history(run: Run) -> None:
    """Raise Damaged where the run's journal does not verify: nothing goes on from it."""
    if fault := run_chain_fault(run):
        raise Damaged(f"The run's history does not verify: {fault.at} {fault.what}.")


def of_run(run: Run) -> Iterator[Fault]:
    """Yield everything of a run that is not what its journal says; what is not readable is too."""
    broken = run_chain_fault(run)
    if broken:
        yield broken
        return  # nothing can be rebuilt from it
    told = Told.of(run)
    yield from _state_faults(run, told)
    yield from _receipt_faults(run, told)
    yield from _checkpoint_faults(run, told)
    yield from _body_faults(run)


@dataclass(slots=True)
class Told:
    """What a run's journal alone says of it."""

    status: str = ""
    epoch: int = 1
    session: int = 0
    steps: dict[str, str] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    receipts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    checkpoints: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> Told:
        told = cls()
        for entry in JournalEntry.objects.filter(stream=run.pk).order_by("seq").iterator(CHUNK):
            told.take(entry.kind, json.loads(entry.text)["data"])
        return told

    def take(self, kind: str, data: Mapping[str, Any]) -> None:
        self.status = _RUN.get(kind, self.status)
        self.epoch = data.get("epoch", self.epoch)
        if kind in _STEP:
            self.steps[data["step"]] = _STEP[kind]
        elif kind in ("step.settled", "step.denied"):
            self.steps[data["step"]] = data["status"]
        else:
            self._take_rest(kind, data)

    def _take_rest(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "run.claimed":
            self.session = data["session"]
        elif kind == "interrupt.opened":
            self.open.add(data["interrupt"])
        elif kind in ("interrupt.resolved", "interrupt.expired"):
            self.open.discard(data["interrupt"])
        elif kind == "receipt.recorded":
            self.receipts[data["receipt"]] = data
        elif kind == "checkpoint.taken":
            self.checkpoints[data["checkpoint"]] = data["digest"]


_RUN: Final = {
    "run.started": RunStatus.RUNNING.value,
    "run.resumed": RunStatus.RUNNING.value,
    "run.suspended": RunStatus.SUSPENDED.value,
    "run.cancelling": RunStatus.CANCELLING.value,
    "run.completed": RunStatus.COMPLETED.value,
    "run.failed": RunStatus.FAILED.value,
    "run.cancelled": RunStatus.CANCELLED.value,
}
_STEP: Final = {
    "step.proposed": StepStatus.WAITING.value,
    "step.authorized": StepStatus.READY.value,
    "gate.opened": StepStatus.WAITING.value,
    "gate.reopened": StepStatus.WAITING.value,
    "attempt.started": StepStatus.EXECUTING.value,
    "step.unknown": StepStatus.UNKNOWN.value,
    "step.retried": StepStatus.READY.value,
    "compensation.started": StepStatus.COMPENSATING.value,
    "compensation.left": StepStatus.SUCCEEDED.value,
}


def _state_faults(run: Run, told: Told) -> Iterator[Fault]:
    stored: dict[str, Any] = {"status": run.status, "epoch": run.epoch, "session": run.session}
    for name, value in stored.items():
        if value != getattr(told, name):
            yield Fault(run.pk, name, f"is {value}, and the journal says {getattr(told, name)}")
    steps = {
        str(pk): status for pk, status in Step.objects.filter(run=run).values_list("pk", "status")
    }
    for pk in steps.keys() | told.steps.keys():
        if steps.get(pk) != told.steps.get(pk):
            yield Fault(
                run.pk, f"step {pk}", f"is {steps.get(pk)}, the journal says {told.steps.get(pk)}"
            )
    held = Interrupt.objects.filter(run=run, status=InterruptStatus.OPEN)
    rows = {str(pk) for pk in held.values_list("pk", flat=True)}
    for pk in rows ^ told.open:
        yield Fault(run.pk, f"interrupt {pk}", "is open in one of row and journal only")
    if run.open_interrupts != len(rows):
        yield Fault(run.pk, "open_interrupts", f"is {run.open_interrupts}, there are {len(rows)}")


def _receipt_faults(run: Run, told: Told) -> Iterator[Fault]:
    rows = {str(row.pk): row for row in Receipt.objects.filter(run=run)}
    for pk in told.receipts.keys() - rows.keys():
        yield Fault(run.pk, f"receipt {pk}", "is gone")
    for pk, row in rows.items():
        said = told.receipts.get(pk)
        if said is None:
            yield Fault(run.pk, f"receipt {pk}", "was never recorded")
            continue
        stored = {
            "step": str(row.step_id),
            "attempt": str(row.attempt) if row.attempt else None,
            "source": row.source,
            "outcome": row.outcome,
            "result": bytes(row.result).hex() if row.result is not None else None,
            "external_id": row.external_id,
        }
        for name, value in stored.items():
            if said.get(name) != value:
                yield Fault(run.pk, f"receipt {pk}", f"its {name} is not what was recorded")


def _checkpoint_faults(run: Run, told: Told) -> Iterator[Fault]:
    rows = {str(row.pk): row for row in Checkpoint.objects.filter(run=run)}
    for pk in told.checkpoints.keys() ^ rows.keys():
        yield Fault(run.pk, f"checkpoint {pk}", "is in one of row and journal only")
    for pk, row in rows.items():
        if digest_of(row) != row.digest or told.checkpoints.get(pk, row.digest) != row.digest:
            yield Fault(run.pk, f"checkpoint {pk}", "is not what was taken")


def _body_faults(run: Run) -> Iterator[Fault]:
    """Bodies are what their digests name, and each step is the call that its digest names."""
    for step in Step.objects.filter(run=run).order_by("position").iterator(CHUNK):
        for name in ("arguments", "result"):
            fault = _body_fault(run, step, name)
            if fault:
                yield fault
        body = _body(step.arguments)
        if body is not None and step.digest != step_digest(step.tool_name, step.tool_number, body):
            yield Fault(run.pk, f"step {step.pk}", "its digest is not its call's")


def _body(digest: bytes | memoryview | None) -> bytes | None:
    if digest is None:
        return None
    try:
        return content.get(digest)
    except (Content.DoesNotExist, SealBroken):
        return None


def _body_fault(run: Run, step: Step, name: str) -> Fault | None:
    digest = getattr(step, name)
    if digest is None:
        return None
    row = Content.objects.filter(tenant_id=current_tenant_id(), digest=digest).first()
    if row is None:
        return None  # a body may be erased: the journal keeps its keyed digest
    try:
        body = content.unseal(current_tenant_id(), bytes(row.body), row.cipher)
    except SealBroken:
        return Fault(run.pk, f"step {step.pk}", f"its {name} can't be opened")
    key = content_key(current_tenant_id(), current_key_id())
    if hmac.digest(key, body, "sha256") != bytes(digest) and not _under_older_key(body, digest):
        return Fault(run.pk, f"step {step.pk}", f"its {name} is not the body that was stored")
    return None


def _under_older_key(body: bytes, digest: bytes) -> bool:
    """A body keeps the digest of the key that was current when it came."""
    return any(
        hmac.digest(content_key(current_tenant_id(), key_id), body, "sha256") == bytes(digest)
        for key_id in settings.ABEYANCE_MASTER_KEYS
    )
