"""Statements that are sent so often that Django's way of sending them would show.

Django turns prepared statements off on its connections, and composes the text of each statement in
Python; both are done without here, on Django's own connection and inside its transactions.
"""

from __future__ import annotations

from typing import Any

import psycopg
from django.db import DatabaseError, connection
from psycopg.pq import ExecStatus


def prepared(statement: str, parameters: list[Any]) -> tuple[Any, ...]:
    """Return the first row of a statement that the server plans once a connection; () for none."""
    connection.ensure_connection()
    raw: Any = connection.connection
    raw.prepare_threshold = 0
    try:
        with connection.wrap_database_errors, psycopg.Cursor(raw) as cursor:
            cursor.execute(statement, parameters, binary=True)
            return cursor.fetchone() or ()
    finally:
        raw.prepare_threshold = None


def command(text: str) -> None:
    """Send a command that takes no parameters and returns no rows; DatabaseError if it fails."""
    connection.ensure_connection()
    with connection.wrap_database_errors:
        result = connection.connection.pgconn.exec_(text.encode())
    if result.status != ExecStatus.COMMAND_OK:
        raise DatabaseError(result.get_error_message())
