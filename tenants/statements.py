"""Statements that are sent so often that Django's way of sending them would show.

Django turns prepared statements off on its connections, and composes the text of each statement in
Python; both are done without here, on Django's own connection and inside its transactions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from django.db import DatabaseError, connection
from psycopg.pq import ExecStatus, TransactionStatus

Row = tuple[Any, ...]


class Statement(NamedTuple):
    """A text with its parameters, in psycopg's binary form (``%b``)."""

    text: str
    parameters: Sequence[Any] = ()


BEGIN = Statement("BEGIN")
COMMIT = Statement("COMMIT")


def prepared(text: str, parameters: Sequence[Any]) -> Row:
    """Return the first row of a statement that the server plans once a connection; () for none."""
    with _preparing() as raw, psycopg.Cursor(raw) as cursor:
        cursor.execute(text, parameters, binary=True)
        return cursor.fetchone() or ()


def together(*statements: Statement) -> list[Row]:
    """Send prepared statements in one round trip; return the first row of each, () for none.

    The server does one after the other, each seeing what was committed before it began. They are
    one transaction unless BEGIN and COMMIT among them say otherwise: where one fails, that is
    raised, and none after it is done.
    """
    with _preparing() as raw:
        cursors = [psycopg.Cursor(raw) for _ in statements]
        with raw.pipeline():
            for cursor, (text, parameters) in zip(cursors, statements, strict=True):
                cursor.execute(text, parameters or None, binary=True)
        return [_first(cursor) for cursor in cursors]


def _first(cursor: psycopg.Cursor[Row]) -> Row:
    result = cursor.pgresult
    return (cursor.fetchone() or ()) if result is not None and result.ntuples else ()


@contextmanager
def transaction_of_statements() -> Iterator[None]:
    """Let BEGIN and COMMIT be sent with other statements; what is not committed is rolled back.

    Not inside a transaction of Django's, which would not know of it.
    """
    try:
        yield
    finally:
        _roll_back()


def _roll_back() -> None:
    raw = connection.connection
    if raw is None or raw.info.transaction_status == TransactionStatus.IDLE:
        return
    try:
        command("ROLLBACK")
    except DatabaseError:
        connection.close()


@contextmanager
def _preparing() -> Iterator[psycopg.Connection[Row]]:
    connection.ensure_connection()
    raw: Any = connection.connection
    raw.prepare_threshold = 0
    try:
        with connection.wrap_database_errors:
            yield raw
    finally:
        raw.prepare_threshold = None


def command(text: str) -> None:
    """Send a command that takes no parameters and returns no rows; DatabaseError if it fails."""
    connection.ensure_connection()
    with connection.wrap_database_errors:
        result = connection.connection.pgconn.exec_(text.encode())
    if result.status != ExecStatus.COMMAND_OK:
        raise DatabaseError(result.get_error_message())
