"""The places right before and right after each commit that this process makes.

Everything that the service writes is committed in one of three ways: by the end of a transaction,
by one of the hot functions, which is a statement and its own commit, or by a single statement
outside a transaction. Each of them passes here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from django.db import connection

import approvals.hot
import interrupts.hot

READS = ("SELECT", "SET ", "RESET ", "SHOW ")
Place = Callable[[str], None]


@contextmanager
def commits(place: Place) -> Iterator[None]:
    """Call ``place`` with ``before`` and ``after`` around each commit, for the block."""
    connection.ensure_connection()
    committed = connection._commit

    def commit() -> None:
        place("before")
        committed()
        place("after")

    def statement(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        if not connection.get_autocommit() or sql.lstrip().upper().startswith(READS):
            return execute(sql, parameters, many, context)
        place("before")
        made = execute(sql, parameters, many, context)
        place("after")
        return made

    with ExitStack() as stack:
        stack.enter_context(patch.object(connection, "_commit", commit))
        stack.enter_context(connection.execute_wrapper(statement))
        advance = _around(interrupts.hot.prepared, _advances, place)
        stack.enter_context(patch.object(interrupts.hot, "prepared", advance))
        approve = _around(approvals.hot.prepared, _approves, place)
        stack.enter_context(patch.object(approvals.hot, "prepared", approve))
        yield


def _advances(text: str, *_: Any) -> bool:
    return "interrupts_advance(" in text


def _approves(text: str, *_: Any) -> bool:
    return "approvals_approve(" in text


def _around(
    send: Callable[..., Any], commits: Callable[..., bool], place: Place
) -> Callable[..., Any]:
    def run(*given: Any) -> Any:
        if not connection.get_autocommit() or not commits(*given):
            return send(*given)
        place("before")
        rows = send(*given)
        place("after")
        return rows

    return run


class Crash(BaseException):
    """The process is no more: nothing of it runs on, nothing catches it."""


@dataclass
class Crashing:
    """Ends what runs at the ``at``-th commit, as a kill would: the connection is gone with it.

    What was to be done after the commit (a wake, a drain) is not done.
    """

    when: str
    at: int = 1

    def __call__(self, place: str) -> None:
        if place != self.when:
            return
        self.at -= 1
        if self.at == 0:
            connection.close()
            raise Crash
