"""Statements that are sent so often that Django's way of sending them would show.

Django turns prepared statements off on its connections, and composes the text of each statement in
Python. psycopg's cursors, made for more than one row of known types, take about twice as long as
libpq's own calls. All of it is done without here, on Django's own connection and inside its
transactions. Other threads go on while the server is waited for.
"""

from __future__ import annotations

import re
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import abc
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

Row = tuple[Any, ...]


class Statement(NamedTuple):
    """A text with its parameters, in psycopg's binary form (``%b``)."""

    text: str
    parameters: Sequence[Any] = ()


_PLACE = re.compile("%b")
_DONE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
# By connection: the server's names of what was prepared there, by text and types of parameters.
_named: WeakKeyDictionary[Any, dict[tuple[str, tuple[int, ...]], bytes]] = WeakKeyDictionary()
_numbers = count(1)  # never one twice: what broke off may have been prepared all the same


class _Bound(NamedTuple):
    """A statement as it is sent: its name on the server and its parameters' bytes."""

    name: bytes
    values: Sequence[Any]
    formats: Sequence[Format]
    adapted: abc.Transformer

    def rows(self, result: PGresult) -> list[Row]:
        """Return all rows of what came of it."""
        self.adapted.set_pgresult(result)
        return self.adapted.load_rows(0, result.ntuples, tuple)

    def row(self, result: PGresult) -> Row:
        """Return the first row of what came of it; () for none."""
        if not result.ntuples:
            return ()
        self.adapted.set_pgresult(result)
        return self.adapted.load_row(0, tuple) or ()


def prepared(text: str, parameters: Sequence[Any]) -> Row:
    """Return the first row of a statement that the server plans once a connection; () for none."""
    with _using() as raw:
        one = _bind(raw, text, parameters)
        return one.row(_execute(raw, one))


def prepared_rows(text: str, parameters: Sequence[Any]) -> list[Row]:
    """Return all rows of a statement that the server plans once a connection."""
    with _using() as raw:
        one = _bind(raw, text, parameters)
        return one.rows(_execute(raw, one))


def _execute(raw: psycopg.Connection[Row], one: _Bound) -> PGresult:
    return _done(raw, raw.pgconn.exec_prepared(one.name, one.values, one.formats, Format.BINARY))


def together(*statements: Statement) -> list[Row]:
    """Send prepared statements in one round trip; return the first row of each, () for none.

    The server does one after the other, each seeing what was committed before it began. They are
    one transaction: where one fails, that is raised, and none after it is done.
    """
    with _using() as raw:
        sent = [_bind(raw, *statement) for statement in statements]
        with _pipeline(raw.pgconn) as pipeline:
            for one in sent:
                pipeline.send(one)
            results = pipeline.results()
        # One more than were sent is what the commit failed for.
        done = [_done(raw, result) for result in results]
        return [one.row(result) for one, result in zip(sent, done, strict=True)]


def _bind(raw: psycopg.Connection[Row], text: str, parameters: Sequence[Any]) -> _Bound:
    adapted = Transformer.from_context(raw)
    values = adapted.dump_sequence(parameters, [PyFormat.BINARY] * len(parameters))
    types = adapted.types or ()
    names = _named.setdefault(raw, {})
    name = names.get((text, types))
    if name is None:
        name = b"abeyance_%d" % next(_numbers)
        _done(raw, raw.pgconn.prepare(name, _numbered(text), types))
        names[text, types] = name
    return _Bound(name, values, adapted.formats or (), adapted)


@cache
def _numbered(text: str) -> bytes:
    """Return the text with its places as the server knows them: $1, $2, …."""
    number = count(1)
    return _PLACE.sub(lambda _: f"${next(number)}", text).encode()


def _done(raw: psycopg.Connection[Row], result: PGresult) -> PGresult:
    """Return the result of what was done; the server's error otherwise."""
    if result.status in _DONE:
        return result
    if raw.closed:  # libpq's own calls tell of a lost connection as of any failed statement
        raise psycopg.OperationalError(result.get_error_message().strip())
    raise error_from_result(result, encoding=raw.info.encoding)


class _Pipeline:
    """Statements on their way together: libpq's own waiting would keep other threads waiting."""

    def __init__(self, pgconn: PGconn) -> None:
        self.pgconn = pgconn
        self.socket = select.poll()
        self.socket.register(pgconn.socket)

    def send(self, one: _Bound) -> None:
        self.pgconn.send_query_prepared(one.name, one.values, one.formats, Format.BINARY)

    def results(self) -> list[PGresult]:
        """Return what came of each, up to and with the first that failed."""
        self.pgconn.pipeline_sync()
        found: list[PGresult] = []
        while (result := self._next()).status != ExecStatus.PIPELINE_SYNC:
            if result.status != ExecStatus.PIPELINE_ABORTED:
                found.append(result)
        return found

    def _next(self) -> PGresult:
        for _ in range(2):  # the end of a statement is told by a None
            while (unsent := self.pgconn.flush()) or self.pgconn.is_busy():
                self._wait(select.POLLIN | (select.POLLOUT if unsent else 0))
            result = self.pgconn.get_result()
            if result is not None:
                return result
        raise psycopg.OperationalError("the connection was lost while a pipeline was on its way")

    def _wait(self, wanted: int) -> None:
        self.socket.modify(self.pgconn.socket, wanted)
        self.socket.poll()
        self.pgconn.consume_input()


@contextmanager
def _pipeline(pgconn: PGconn) -> Iterator[_Pipeline]:
    """Work in libpq's pipeline mode; a connection that is left in the middle of it is closed."""
    pgconn.enter_pipeline_mode()
    try:
        yield _Pipeline(pgconn)
        pgconn.exit_pipeline_mode()
    except BaseException:
        connections[DEFAULT_DB_ALIAS].close()
        raise


@contextmanager
def _using() -> Iterator[psycopg.Connection[Row]]:
    database = _connected()
    with database.wrap_database_errors:
        _begin(database.connection)
        yield database.connection


def _connected() -> Any:
    """Return Django's connection, looked up once: the lookup is a thread's and a task's."""
    database = connections[DEFAULT_DB_ALIAS]
    # A connection that is replaced only later has lost what is set now.
    database.close_if_health_check_failed()
    database.ensure_connection()
    return database


def _begin(raw: psycopg.Connection[Row]) -> None:
    """Begin the transaction that Django has opened: psycopg does so at its first statement."""
    if not raw.autocommit and raw.pgconn.transaction_status == TransactionStatus.IDLE:
        _done(raw, raw.pgconn.exec_(b"BEGIN"))


def command(text: str) -> None:
    """Send a command that takes no parameters and returns no rows; DatabaseError if it fails."""
    database = _connected()
    with database.wrap_database_errors:
        _done(database.connection, database.connection.pgconn.exec_(text.encode()))
