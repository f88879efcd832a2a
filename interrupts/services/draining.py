"""Drains: from when one has answered, the workers of a host, or of every host, begin nothing.

What is in flight is finished and recorded, proposals and decisions are taken, and what waits is
worked by the workers of other hosts, or once the drain has ended. A drain stands in a row: it ends
where somebody ends it, not with the process that made it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import OperationalError, connection, connections, transaction
from django.db.models.functions import Now

from config.stopping import is_stopping
from interrupts.models import EVERY_HOST, Drain
from tenants import authority
from tenants.models import Tenant

HOST_CHARACTERS: Final = 40  # a receipt names its worker in 60, and a host's name may have 64


class IntentsOutstanding(Exception):
    """A transaction that may not have seen the drain did not end in time."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """A call of a worker that has begun and of which nothing is recorded yet."""

    tenant: str
    run: UUID
    step: UUID
    worker: str
    started_at: datetime | None
    until: datetime


def this_host() -> str:
    """Return the host as its workers name it."""
    return socket.gethostname()[:HOST_CHARACTERS]


def host_of(worker: str) -> str:
    return worker.partition(":")[0]


def is_drained(host: str) -> bool:
    """Say whether the workers of this host are to begin nothing."""
    return Drain.objects.filter(host__in=[host, EVERY_HOST]).exists()


def may_not_begin(worker: str) -> bool:
    """Say, under a run's lock, whether this worker may not begin an effect now."""
    return is_stopping() or is_drained(host_of(worker))


def standing() -> list[Drain]:
    return list(Drain.objects.order_by("since"))


def begin_drain(host: str) -> Drain:
    """Have the workers of the host, or of EVERY_HOST, begin nothing; again it stays the first.

    What intents have not seen it is over only once ``wait_for_intents`` has returned.
    """
    drain, _ = Drain.objects.get_or_create(host=host, defaults={"since": Now()})
    drain.refresh_from_db()
    return drain


def end_drain(host: str) -> bool:
    """Have the workers go on; False where there was no such drain."""
    return Drain.objects.filter(host=host).delete()[0] > 0


def wait_for_intents(seconds_left: Callable[[], float]) -> None:
    """Wait until no transaction is open that may not have seen what was committed before.

    Each intent holds its tenant's drain lock shared before it looks, so having had each alone once
    is enough. Raises IntentsOutstanding when the time is up.
    """
    for tenant in Tenant.objects.values_list("pk", flat=True).order_by("pk"):
        try:
            with transaction.atomic():
                _wait_no_longer_than(seconds_left())
                authority.drain(tenant)
        except OperationalError as fault:
            raise IntentsOutstanding(str(fault).strip()) from fault


def _wait_no_longer_than(seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, true)", [f"{max(1, int(seconds * 1000))}ms"]
        )


# What has begun, under the sweep role: it is of every tenant.

_CALLS: Final = """
SELECT t.slug, a.run_id, a.step_id, a.worker, a.started_at, a.lease_expires_at
FROM interrupts_attempt a JOIN tenants_tenant t ON t.id = a.tenant_id
WHERE a.settled_at IS NULL AND a.lapsed_at IS NULL AND a.worker NOT LIKE 'agent:%%'
    AND a.lease_expires_at > statement_timestamp()
    AND %(host)s IN ('*', split_part(a.worker, ':', 1))
ORDER BY a.started_at
"""
# Whose a read is stands nowhere, so they are followed by name: those that had begun by then.
_READS: Final = """
SELECT t.slug, r.id, r.reading, 'a read', NULL::timestamptz, r.reading_until
FROM interrupts_run r JOIN tenants_tenant t ON t.id = r.tenant_id
WHERE r.ended_at IS NULL AND r.reading_until > statement_timestamp()
    AND (%(known)s::uuid[] IS NULL OR r.reading = ANY (%(known)s))
"""


def calls_in_flight(host: str) -> list[InFlight]:
    """Return the effects that workers of the host have begun; one whose lease is over is none."""
    return _found(_CALLS, {"host": host})


def reads_in_flight(known: Collection[UUID] | None = None) -> list[InFlight]:
    """Return the reads that have begun, whoever makes them, or those of ``known`` steps."""
    return _found(_READS, {"known": None if known is None else list(known)})


def _found(statement: str, parameters: dict[str, Any]) -> list[InFlight]:
    with connections["sweep"].cursor() as cursor:
        cursor.execute(statement, parameters)
        return [InFlight(*row) for row in cursor.fetchall()]
