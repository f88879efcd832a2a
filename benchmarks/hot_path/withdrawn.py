"""An intent that waits for its run's lock while its permission is withdrawn.

Prints ``{way: {"tries", "started_after_withdrawal", "started_after_answer"}}``. The schedule is
forced, so that it comes out the same each time: somebody holds the run; the worker's commit waits
for it; the tenant's authority is raised, committed and drained; the run is let go.
"""

import argparse
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks.counters import dsn
from benchmarks.figures import report
from benchmarks.hot_path.ground import Course, Ground, app_connection, begin, ground
from benchmarks.hot_path.statement import statement
from benchmarks.hot_path.ways import function_parameters, statement_parameters
from config.database import NAME
from interrupts.hot import ADVANCE
from tenants.authority import DRAIN
from tenants.ids import uuid7

LIMIT_SECONDS = 10
RAISE = (
    "UPDATE tenants_tenant SET authority_version = authority_version + 1 WHERE id = %s"
    " RETURNING authority_version"
)
Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Came:
    """What came of it: whether an effect was started, and when."""

    started_after_withdrawal: bool
    started_after_answer: bool


def by_statement(connection: Connection, course: Course) -> bool:
    """Commit with one statement, the drain lock before the run's."""
    parameters = statement_parameters(course, uuid7())
    row = connection.execute(statement().encode(), parameters).fetchone()
    return row is not None and row[1] is not None


def by_statement_run_first(connection: Connection, course: Course) -> bool:
    """Commit with one statement, the run's lock before the drain lock."""
    parameters = statement_parameters(course, uuid7())
    row = connection.execute(statement("run lock first").encode(), parameters).fetchone()
    return row is not None and row[1] is not None


def by_function(connection: Connection, course: Course) -> bool:
    """Commit with the engine's function."""
    row = connection.execute(ADVANCE, function_parameters(course, uuid7())).fetchone()
    return row is not None and row[3] is not None and row[1] in ("intended", "read")


WAYS: dict[str, Callable[[Connection, Course], bool]] = {
    "one statement, drain lock first": by_statement,
    "one statement, run lock first": by_statement_run_first,
    "our function": by_function,
}


def withdraw_while_it_waits(
    way: Callable[[Connection, Course], bool],
    course: Course,
    *,
    connect: Callable[[], Connection],
    admin: Connection,
) -> Came:
    """Withdraw the authority under which a step would start while its commit waits for the run.

    ``connect`` opens a connection as the app role in the tenant's scope; ``admin`` sees locks.
    """
    started: list[bool] = []
    answered, done = threading.Event(), threading.Event()

    def work() -> None:
        with connect() as connection:
            started.append(way(connection, course))
        done.set()

    def withdraw() -> None:
        with connect() as connection:
            tenant = str(course.ground.tenant)
            connection.execute(RAISE, [tenant])
            with connection.transaction():
                connection.execute(
                    "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [DRAIN, tenant]
                )
        answered.set()

    worker, withdrawer = threading.Thread(target=work), threading.Thread(target=withdraw)
    with connect() as holder:
        before = _version(admin, course)
        with holder.transaction():
            holder.execute(
                "SELECT 1 FROM interrupts_run WHERE id = %s FOR NO KEY UPDATE", [course.run]
            )
            worker.start()
            _until(lambda: _waits_for(admin, holder.info.backend_pid))
            withdrawer.start()
            _until(lambda: _version(admin, course) > before)
            # It answers at once, or waits until the worker's commit is over.
            _until(lambda: answered.is_set() or _waits_for_drain(admin))
            answered_first = answered.is_set()
    worker.join(LIMIT_SECONDS)
    withdrawer.join(LIMIT_SECONDS)
    if not (done.is_set() and answered.is_set()):
        raise TimeoutError("a lock was never let go")
    return Came(started[0], started[0] and answered_first)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("the schedule did not come about")
        time.sleep(0.002)


def _waits_for(admin: Connection, pid: int) -> bool:
    row = admin.execute(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid)))", [pid]
    ).fetchone()
    return bool(row and row[0])


def _waits_for_drain(admin: Connection) -> bool:
    row = admin.execute(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = %s"
        " AND mode = 'ExclusiveLock' AND NOT granted)",
        [DRAIN],
    ).fetchone()
    return bool(row and row[0])


def _version(admin: Connection, course: Course) -> int:
    row = admin.execute(
        "SELECT authority_version FROM tenants_tenant WHERE id = %s", [course.ground.tenant]
    ).fetchone()
    return int(row[0]) if row else 0


def main() -> None:
    """Try each way so often and print."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("tries", type=int)
    tries = arguments.parse_args().tries
    figures: dict[str, dict[str, int]] = {}
    with psycopg.connect(dsn(NAME), autocommit=True) as admin:
        for name, way in WAYS.items():
            seen = [_try(way, admin) for _ in range(tries)]
            figures[name] = {
                "tries": tries,
                "started_after_withdrawal": sum(came.started_after_withdrawal for came in seen),
                "started_after_answer": sum(came.started_after_answer for came in seen),
            }
    report(figures)


def _try(way: Callable[[Connection, Course], bool], admin: Connection) -> Came:
    with ground() as place:
        return withdraw_while_it_waits(
            way, begin(place, 1), connect=lambda: _connect(place), admin=admin
        )


def _connect(place: Ground) -> Connection:
    return app_connection(place.tenant)


if __name__ == "__main__":
    main()
