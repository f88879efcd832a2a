"""Whether what is stored is what happened: chains, receipts, bodies and states, proved again.

A run's journal is read as an auditor reads it: each link is computed anew with a key that lives
outside the database, every state of the run is rebuilt from what the journal alone says, and the
rows are compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from interrupts.errors import Damaged
from interrupts.models import Run
from interrupts.verification import bodies, chains, rows
from interrupts.verification.chains import Said
from interrupts.verification.faults import Broken, Fault
from interrupts.verification.told import Told
from tenants.models import JournalEntry, Tenant
from tenants.scope import current_tenant_id

__all__ = ["Broken", "Fault", "Said", "Told", "check_history", "of_run", "of_tenant", "tell"]

# Of a run, what its journal says of it, and the gates to look at alone; None: at all of it.
RunVerifier = Callable[[UUID, Told, Collection[str] | None], Iterator[Fault]]


def verifiers() -> list[RunVerifier]:
    """Who else holds rows of a run against its journal: settings.RUN_VERIFIERS."""
    return [import_string(name) for name in settings.RUN_VERIFIERS]


def tell(run: Run) -> Told:
    """Return what the run's journal says of it; Broken where its chain does not hold."""
    told = Told()
    for said in chains.said(run.pk, run.journal_seq, bytes(run.journal_hash)):
        told.take(said)
    return told


def chain_fault(stream: UUID, seq: int, head: bytes) -> Fault | None:
    """Return the first entry that is not what was written, or a head that is not the last's."""
    try:
        for _ in chains.said(stream, seq, head):
            pass
    except Broken as broken:
        return broken.fault
    return None


def of_tenant() -> Iterator[Fault]:
    """Yield what is wrong with the tenant's own stream, and runs that only a journal knows."""
    fault = _tenant_chain_fault()
    if fault:
        yield fault
    begun = JournalEntry.objects.filter(seq=1).exclude(stream=current_tenant_id())
    for stream in begun.exclude(stream__in=Run.objects.values("pk")).values_list("stream"):
        yield Fault(stream[0], "run", "is gone")


def _tenant_chain_fault() -> Fault | None:
    """Return what is wrong with the tenant's stream, which may grow while it is read."""
    looked_at: tuple[int, bytes] | None = None
    fault: Fault | None = None
    while True:
        tenant = Tenant.objects.get(pk=current_tenant_id())
        head = tenant.journal_seq, bytes(tenant.journal_hash)
        # A fault counts where the stream stood still: its head is read before its entries.
        if head == looked_at:
            return fault
        looked_at, fault = head, chain_fault(tenant.pk, *head)
        if fault is None:
            return None


def run_chain_fault(run: Run) -> Fault | None:
    return chain_fault(run.pk, run.journal_seq, bytes(run.journal_hash))


def of_run(run: Run) -> Iterator[Fault]:
    """Yield everything of a run that is not what its journal says; what is not readable is too."""
    yield from of_rows(run)
    if run_chain_fault(run) is None:
        yield from bodies.faults(run)


def of_rows(run: Run) -> Iterator[Fault]:
    """Yield each row of a run that is not what its journal says; a broken chain is all there is."""
    try:
        told = tell(run)
    except Broken as broken:
        yield broken.fault
        return
    yield from rows.faults(run, told)
    if told.is_older:
        return
    for verify in verifiers():
        yield from verify(run.pk, told, None)


def check_history(run: Run) -> None:
    """Raise Damaged where a run's history or its rows do not verify: nothing goes on from it."""
    if run.damage is not None:
        raise Damaged(run.damage)
    fault: Any = next(of_rows(run), None)
    if fault:
        raise Damaged(f"The run's history does not verify: {fault.at} {fault.what}.")
