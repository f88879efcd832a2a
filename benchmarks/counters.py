"""Statements, commits, WAL and round trips of a block of work, as the server counted them."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from benchmarks.wire import PORT, Wire

# A backend publishes its counts at the end of a command once this long has passed since it last
# did, or when its session ends.
PUBLISHED_AFTER = 1.1
# Not statements of the client: what only frames a transaction, and the foreign keys that the server
# looks up itself when it commits (those it looks up within a statement are not told apart either).
NOT_COUNTED = (
    r"^\s*(begin|start transaction|commit|end|rollback|savepoint|release)\y"
    r"|^SELECT (1|\$\d+) FROM ONLY .* FOR KEY SHARE OF x$"
)

READ = """
SELECT (SELECT coalesce(sum(calls), 0)::bigint
          FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
         WHERE d.datname = %(database)s AND query !~* %(not_counted)s),
       (SELECT xact_commit FROM pg_stat_database WHERE datname = %(database)s),
       (SELECT wal_bytes::bigint FROM pg_stat_wal),
       (pg_current_wal_flush_lsn() - '0/0')::bigint
"""
# Only a transaction that wrote something leaves a commit record, and waits for the disk.
COMMIT_RECORDS = """
SELECT count(*) FROM pg_get_wal_records_info('0/0'::pg_lsn + %s, '0/0'::pg_lsn + %s)
 WHERE resource_manager = 'Transaction' AND record_type LIKE 'COMMIT%%'
"""
NAME = "bench"
MEASURED = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND application_name = %s"


def server_folder() -> Path:
    """Return the folder of the socket of the server that is measured (``BENCH_SOCKETS``)."""
    return Path(os.environ["BENCH_SOCKETS"])


def dsn(database: str, folder: Path | None = None) -> str:
    """Return the libpq connection text for a database of the measured server."""
    host = folder or server_folder()
    user = os.environ["BENCH_USER"]
    return f"host={host} port={PORT} user={user} dbname={database} application_name={NAME}"


@dataclass(slots=True)
class Count:
    """What a block of work cost; exact once the block has ended.

    ``commits`` are the server's transactions that ended well, empty ones included;
    ``written_commits`` those among them that wrote, and so waited for the disk.
    """

    statements: int = 0
    round_trips: int = 0
    commits: int = 0
    written_commits: int = 0
    wal_bytes: int = 0

    def each(self, operations: int) -> dict[str, float]:
        """Return the cost of one of so many like operations."""
        return {name: total / operations for name, total in asdict(self).items()}


class Reading(NamedTuple):
    """The server's counts at one moment; ``flushed`` is a place in the write-ahead log."""

    statements: int
    commits: int
    wal_bytes: int
    flushed: int


Admin = psycopg.Connection[tuple[Any, ...]]


def _read(admin: Admin, database: str) -> Reading:
    row = admin.execute(READ, {"database": database, "not_counted": NOT_COUNTED}).fetchone()
    if row is None:
        raise RuntimeError("the server told no counts")
    return Reading(*row)


def _commit_records(admin: Admin, early: Reading, late: Reading) -> int:
    if early.flushed == late.flushed:
        return 0
    row = admin.execute(COMMIT_RECORDS, [early.flushed, late.flushed]).fetchone()
    return 0 if row is None else int(row[0])


def _wait_for_sessions(admin: Admin, database: str, limit: float = 10) -> None:
    """Wait until every measured session has ended, and so published its counts."""
    deadline = time.monotonic() + limit
    while (row := admin.execute(MEASURED, [database, NAME]).fetchone()) and row[0]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{row[0]} sessions of {database} are still open")
        time.sleep(0.005)


@contextmanager
def counted(
    database: str, wire: Wire, *, publish: Callable[[], object] | None = None
) -> Iterator[Count]:
    """Count the block; its sessions are closed at both ends, or ``publish`` makes them tell.

    ``publish`` does one operation like the counted ones on the same sessions: it is called once
    before the block and once at its end. What the sessions did until a call begins is told then,
    so one of the two calls belongs to the count.
    """
    count = Count()
    with psycopg.connect(dsn("postgres"), autocommit=True) as admin:

        def settle() -> None:
            if publish is None:
                _wait_for_sessions(admin, database)
                return
            time.sleep(PUBLISHED_AFTER)
            publish()

        settle()
        early, trips = _read(admin, database), wire.round_trips
        yield count
        settle()
        late = _read(admin, database)
        count.round_trips = wire.round_trips - trips
        count.statements = late.statements - early.statements
        count.commits = late.commits - early.commits
        count.wal_bytes = late.wal_bytes - early.wal_bytes
        count.written_commits = _commit_records(admin, early, late)
