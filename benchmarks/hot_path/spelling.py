"""What a promise costs that is spelt out in a CHECK or a trigger's WHEN, beside a function's call.

Prints ``{spelling: [{"commits_per_s", "cpu_ms"} of each round]}``. The database is copied once for
each spelling, with the same runs in it; the engine's own prepared statement is what is timed. Its
commits do not wait for the disk here, so that the server's processor time is all there is to see.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
from django.db import connections

from benchmarks.counters import dsn
from benchmarks.figures import report
from benchmarks.hot_path.commits import WARMING
from benchmarks.hot_path.ground import Course, app_connection, begin, ground
from benchmarks.hot_path.rounds import Actor, Admin, take_turns
from benchmarks.hot_path.ways import NotCommitted, function_parameters
from config.database import NAME
from interrupts.hot import ADVANCE
from tenants.ids import uuid7

# The CHECKs and the triggers of legal moves that call a function of ours, with its text.
CHECKS = """
SELECT c.conrelid::regclass::text, c.conname, p.prosrc FROM pg_constraint c
  JOIN pg_proc p ON p.proname = c.conname WHERE c.contype = 'c'
"""
TRIGGERS = """
SELECT t.tgrelid::regclass::text, t.tgname, p.prosrc FROM pg_trigger t
  JOIN pg_proc p ON p.oid = t.tgfoid WHERE p.proname = t.tgname AND NOT t.tgisinternal
"""
HOLDS = re.compile(r"BEGIN RETURN (?P<condition>.*); END", re.DOTALL)
MOVES = re.compile(r"IF (?P<condition>OLD\..*?)\s+THEN", re.DOTALL)
COLUMN = re.compile(r"OLD\.(\w+)")


def spell_checks(admin: Admin) -> int:
    """Put the condition itself in the place of each CHECK's call; return how many there were."""
    found = admin.execute(CHECKS).fetchall()
    for table, name, source in found:
        condition = _part(HOLDS, source)
        admin.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}".encode())
        admin.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({condition})".encode())
    return len(found)


def spell_triggers(admin: Admin) -> int:
    """Put the condition of each trigger of legal moves into its WHEN; return how many."""
    found = admin.execute(TRIGGERS).fetchall()
    for table, name, source in found:
        condition = _part(MOVES, source)
        (column, *_) = COLUMN.findall(condition)
        admin.execute(f"DROP TRIGGER {name} ON {table}".encode())
        admin.execute(
            f"CREATE TRIGGER {name} BEFORE UPDATE OF {column} ON {table} FOR EACH ROW"
            f" WHEN ({condition}) EXECUTE FUNCTION {name}()".encode()
        )
    return len(found)


def drop_both(admin: Admin) -> int:
    """Take away what the others keep, to show what keeping it costs at all."""
    checks, triggers = admin.execute(CHECKS).fetchall(), admin.execute(TRIGGERS).fetchall()
    for table, name, _ in checks:
        admin.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}".encode())
    for table, name, _ in triggers:
        admin.execute(f"DROP TRIGGER {name} ON {table}".encode())
    return len(checks) + len(triggers)


def _part(pattern: re.Pattern[str], source: str) -> str:
    if (found := pattern.search(source)) is None:
        raise ValueError(f"no condition in {source}")
    return found["condition"]


SPELLINGS = {
    "functions, as migrated": (),
    "CHECKs spelt out": (spell_checks,),
    "triggers' WHEN spelt out": (spell_triggers,),
    "both spelt out": (spell_checks, spell_triggers),
    "neither kept": (drop_both,),
}


def copy(admin: Admin, name: str, changes: Any) -> None:
    """Copy the service's database as ``name`` and change the copy."""
    admin.execute(f"CREATE DATABASE {name} TEMPLATE {NAME}".encode())
    with psycopg.connect(dsn(name), autocommit=True) as owner:
        for change in changes:
            if not change(owner):
                raise ValueError(f"{change.__name__} found nothing to change")
        owner.execute("ANALYZE")
    admin.execute("CHECKPOINT")


def advance(connection: Admin, course: Course) -> None:
    """Make one commit."""
    attempt = uuid7()
    parameters = function_parameters(course, attempt)
    row = connection.execute(ADVANCE, parameters, prepare=True, binary=True).fetchone()
    if row is None or row[3] != course.steps[course.at + 1]:
        raise NotCommitted
    course.goes_on(attempt)


def play(
    courses: Mapping[str, Course], tenant: UUID, commits: int, admin: Admin, *, first: int
) -> dict[str, dict[str, float]]:
    """Let each database take so many commits, by turns; return what one of them took."""
    with ExitStack() as stack:
        actors = {}
        for database, course in courses.items():
            connection = stack.enter_context(app_connection(tenant, database))
            connection.execute("SET synchronous_commit = off")
            act = partial(advance, connection, course)
            actors[database] = Actor(act, connection.info.backend_pid)
            for _ in range(WARMING):
                act()
        return take_turns(actors, commits, admin, first=first)


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser()
    for name in ("rounds", "commits"):
        arguments.add_argument(name, type=int)
    given = arguments.parse_args()
    databases = {f"spelling_{number}": name for number, name in enumerate(SPELLINGS)}
    figures: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    with ground() as place, psycopg.connect(dsn("postgres"), autocommit=True) as admin:
        # One round more than is told: the first warms the copies' pages.
        rounds = [
            {database: begin(place, WARMING + given.commits) for database in databases}
            for _ in range(1 + given.rounds)
        ]
        connections.close_all()
        for database, name in databases.items():
            copy(admin, database, SPELLINGS[name])
        for number, courses in enumerate(rounds):
            played = play(courses, place.tenant, given.commits, admin, first=number)
            for database, figure in played.items():
                figures[databases[database]].append(figure)
    report({name: rounds[1:] for name, rounds in figures.items()})


if __name__ == "__main__":
    main()
