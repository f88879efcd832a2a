"""Which tenant this thread of work belongs to: queries without one fail closed.

Entered in three places only: the API's and the pages' sign-in, the task base, and commands. The
variable is set for the session of the connection in use, since one that is local to a transaction
would leave autocommit reads with no rows and no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar
from uuid import UUID

from django.db import DatabaseError, Error, connection, models

from tenants import statements

VARIABLE = "abeyance.tenant_id"
_tenant_id: ContextVar[UUID | None] = ContextVar("tenant_id", default=None)
M = TypeVar("M", bound=models.Model)


class NoTenant(RuntimeError):
    """A tenant-owned table was queried outside ``tenant_scope``."""


@contextmanager
def tenant_scope(tenant_id: UUID, *, variable_set: bool = False) -> Iterator[None]:
    """Work for one tenant until the block ends; scopes do not nest for different tenants.

    ``variable_set``: the sign-in function has set the session's variable already.
    """
    outer = _tenant_id.get()
    if outer is not None and outer != tenant_id:
        if variable_set:
            _set_variable(outer)
        raise NoTenant(f"already working for another tenant than {tenant_id}")
    token = _tenant_id.set(tenant_id)
    try:
        if not variable_set:
            _set_variable(tenant_id)
        yield
    finally:
        _tenant_id.reset(token)
        if outer is None:
            leave()


def leave() -> None:
    """Take the tenant off the connection; a connection that does not forget it is closed."""
    if connection.connection is None:
        return
    try:
        if connection.in_atomic_block and connection.needs_rollback:
            raise DatabaseError("the transaction is broken and cannot forget its tenant")
        statements.command(f"RESET {VARIABLE}")
    except Error:
        if not connection.in_atomic_block:
            connection.close()


def renew_connection() -> None:
    """Go on with a new connection in the place of one that was lost, for the same tenant."""
    connection.close()
    _set_variable(current_tenant_id())


def _set_variable(tenant_id: UUID) -> None:
    statements.command(f"SET {VARIABLE} = '{tenant_id}'")


def current_tenant_id() -> UUID:
    if (tenant_id := _tenant_id.get()) is None:
        raise NoTenant(NoTenant.__doc__)
    return tenant_id


class TenantManager(models.Manager[M]):
    def get_queryset(self) -> models.QuerySet[M]:
        return super().get_queryset().filter(tenant_id=current_tenant_id())
