"""Which tenant this thread of work belongs to: queries without one fail closed.

Entered in three places only: the API's and the pages' sign-in, the task base, and commands. The
variable is set for the session of the connection in use, since one that is local to a transaction
would leave autocommit reads with no rows and no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django.db import DatabaseError, Error, connection, models

from tenants import statements

VARIABLE = "abeyance.tenant_id"


@dataclass(slots=True)
class _Scope:
    tenant_id: UUID
    is_outermost: bool
    is_left: bool = False


_scope: ContextVar[_Scope | None] = ContextVar("tenant_scope", default=None)
M = TypeVar("M", bound=models.Model)


class NoTenant(RuntimeError):
    """A tenant-owned table was queried outside ``tenant_scope``."""


@contextmanager
def tenant_scope(tenant_id: UUID, *, variable_set: bool = False) -> Iterator[None]:
    """Work for one tenant until the block ends; scopes do not nest for different tenants.

    ``variable_set``: the sign-in function has set the session's variable already.
    """
    outer = _scope.get()
    if outer is not None and outer.tenant_id != tenant_id:
        if variable_set:
            _set_variable(outer.tenant_id)
        raise NoTenant(f"already working for another tenant than {tenant_id}")
    scope = _Scope(tenant_id, is_outermost=outer is None)
    token = _scope.set(scope)
    try:
        if not variable_set:
            _set_variable(tenant_id)
        yield
    finally:
        _scope.reset(token)
        if scope.is_outermost and not scope.is_left:
            leave()


def may_leave() -> bool:
    """Say whether the scope's last statement may take the tenant off the connection itself."""
    scope = _scope.get()
    return scope is not None and scope.is_outermost and not connection.in_atomic_block


def left() -> None:
    """Know that it has: what is asked in this scope from now on gets nothing."""
    if (scope := _scope.get()) is not None:
        scope.is_left = True


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
    if (scope := _scope.get()) is None:
        raise NoTenant(NoTenant.__doc__)
    return scope.tenant_id


class TenantManager(models.Manager[M]):
    def get_queryset(self) -> models.QuerySet[M]:
        return super().get_queryset().filter(tenant_id=current_tenant_id())
