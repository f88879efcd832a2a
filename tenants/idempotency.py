"""Idempotency keys: a request sent twice is worked once, and answered alike.

The first answer is written in the transaction of what it names: `once` opens that transaction
around the whole request, services join it. Meanwhile the key is held by an advisory lock, so that
the same key at the same time is refused at once; the unique constraint on the key is what would
stop a second request that got past the lock.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

from django.db import Error, connection, connections, transaction

from config.errors import IdempotencyKeyReused, RequestInProgress
from tenants.models import IdempotentAnswer
from tenants.scope import current_tenant_id, tenant_scope
from tenants.sealing import seal, unseal
from tenants.statements import prepared

_PURPOSE = "idempotent-answer"
SWEPT_AT_ONCE = 1000
_BEGIN = (
    "SELECT held, fingerprint, status, headers, body"
    " FROM tenants_idempotency_begin(%b::uuid, %b::text, %b::text, %b::bigint, %b::boolean)"
)
_STORE = (
    "INSERT INTO tenants_idempotentanswer"
    " (id, tenant_id, caller, key, fingerprint, status, headers, body)"
    " VALUES (gen_random_uuid(), %b::uuid, %b::text, %b::text, %b::bytea, %b::smallint,"
    " %b::text::jsonb, %b::bytea) RETURNING 1"
)


class Answer(NamedTuple):
    """What a request is answered with: rendered, so that it can be kept and sent again."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class KeyName(NamedTuple):
    """A key of a caller, and the fingerprint of the request that named it."""

    caller: str
    key: str
    fingerprint: bytes

    @property
    def lock(self) -> int:
        """The advisory lock that holds the key while its request is worked."""
        names = json.dumps([str(current_tenant_id()), self.caller, self.key]).encode()
        return int.from_bytes(hashlib.sha256(names).digest()[:8], "big", signed=True)

    def keeping(self, answer: Answer) -> tuple[str, str, bytes, int, str, bytes]:
        """Return what is kept of the answer, in the order of the table's columns."""
        body = seal(answer.body.encode(), _PURPOSE, current_tenant_id(), self.caller, self.key)
        return (*self, answer.status, json.dumps(dict(answer.headers)), body)


@dataclass(slots=True)
class Pending:
    """A request that named a key; ``first`` is the answer it had before, if any."""

    name: KeyName
    in_transaction: bool
    first: Answer | None = None
    stored: bool = False


_pending: ContextVar[Pending | None] = ContextVar("pending_answer", default=None)


def holds_transaction() -> bool:
    """Return whether a request with a key has opened the transaction that services join."""
    pending = _pending.get()
    return pending is not None and pending.in_transaction


@contextmanager
def once(
    caller: str, key: str, fingerprint: bytes, *, in_transaction: bool = True
) -> Iterator[Pending]:
    """Hold ``key`` of ``caller`` for the block, in one transaction with all that is done in it.

    Raises RequestInProgress while another request holds the key, IdempotencyKeyReused where it
    named another request. With ``in_transaction=False`` the services open their own transactions
    and one of them stores the answer; the key is then held by the session.
    """
    pending = Pending(KeyName(caller, key, fingerprint), in_transaction)
    with ExitStack() as stack:
        if in_transaction:
            stack.enter_context(transaction.atomic(durable=True))
        found = _begin(pending)
        if not in_transaction:
            stack.callback(_release, pending.name.lock)
        pending.first = _first(pending, found)
        token = _pending.set(pending)
        stack.callback(_pending.reset, token)
        yield pending


class _Found(NamedTuple):
    """What is stored under a key: all None where nothing is."""

    held: bool
    fingerprint: bytes | None
    status: int | None
    headers: str | None
    body: bytes | None


def _begin(pending: Pending) -> _Found:
    found = _Found(
        *prepared(
            _BEGIN,
            [
                current_tenant_id(),
                pending.name.caller,
                pending.name.key,
                pending.name.lock,
                not pending.in_transaction,
            ],
        )
    )
    if not found.held:
        raise RequestInProgress
    return found


def _first(pending: Pending, found: _Found) -> Answer | None:
    if found.status is None or found.headers is None or found.body is None:
        return None
    caller, key, fingerprint = pending.name
    if found.fingerprint != fingerprint:
        raise IdempotencyKeyReused
    text = unseal(found.body, _PURPOSE, current_tenant_id(), caller, key)
    return Answer(found.status, json.loads(found.headers), text.decode())


def _release(lock: int) -> None:
    """Give the session's key back; a connection that cannot is closed, which gives back all."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [lock])
    except Error:
        connection.close()


def store_answer_within_transaction(status: int, headers: Mapping[str, str], body: str) -> None:
    """Keep the answer of the request being worked; it stands or falls with the transaction.

    Does nothing where the request named no key, has stored its answer, or is refused: only what
    succeeded is sent again.
    """
    pending = _pending.get()
    answer = Answer(status, headers, body)
    if pending is None or pending.stored or not answer.is_success:
        return
    prepared(_STORE, [current_tenant_id(), *pending.name.keeping(answer)])
    pending.stored = True


def sweep_answers() -> int:
    """Remove answers that have been kept for the promised 24 hours; return how many."""
    with connections["sweep"].cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id, array_agg(id) FROM"
            " (SELECT id, tenant_id FROM tenants_idempotentanswer LIMIT %s) due GROUP BY tenant_id",
            [SWEPT_AT_ONCE],
        )
        due = cursor.fetchall()
    removed = 0
    for tenant_id, ids in due:
        with tenant_scope(tenant_id):
            removed += IdempotentAnswer.objects.filter(pk__in=ids).delete()[0]
    return removed
