"""The database as its owner has it: for what the app role may not do, not even in a test."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connections


@contextmanager
def as_owner() -> Iterator[psycopg.Connection[Any]]:
    """A connection of the role that owns every table; each statement is its own commit."""
    parameters = connections["owner"].get_connection_params()
    plain = {k: v for k, v in parameters.items() if k not in {"context", "cursor_factory"}}
    with psycopg.connect(**plain, autocommit=True) as connection:
        yield connection


@contextmanager
def superuser() -> Iterator[psycopg.Connection[Any]]:
    """A connection of the cluster's superuser, as whoever restores a dump has it."""
    with login_as_superuser() as connection:
        yield connection


def login_as_superuser() -> psycopg.Connection[Any]:
    """The same, to be closed by whoever asked for it; each statement is its own commit."""
    owner = connections["owner"].get_connection_params()
    login = {name: owner[name] for name in ("host", "port", "user", "password", "dbname")
             if owner.get(name)}  # fmt: skip
    if "ABEYANCE_TEST_DATABASE_URL" not in os.environ:
        login["user"] = "postgres"
    return psycopg.connect(**login, autocommit=True)


def forget_statistics(connection: psycopg.Connection[Any], tables: Sequence[str]) -> None:
    """Have the planner know nothing of the tables, as where nothing has gathered anything yet.

    What autovacuum made of a table that the tests before had emptied is known of no real one: rows
    of which none are left, on pages that are.
    """
    connection.execute(
        "DELETE FROM pg_statistic WHERE starelid = ANY (%s::text[]::regclass[])", [list(tables)]
    )
    connection.execute(
        "UPDATE pg_class SET relpages = 0, reltuples = -1 FROM pg_index"
        " WHERE indrelid = ANY (%s::text[]::regclass[]) AND pg_class.oid IN (indrelid, indexrelid)",
        [list(tables)],
    )


def rewrite(row: Any, **columns: Any) -> None:
    """Change a row that nobody may change, as somebody would who switched that off first."""
    table = row._meta.db_table
    sets = ", ".join(f"{column} = %s" for column in columns)
    with as_owner() as owner:
        owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        try:
            owner.execute(f"UPDATE {table} SET {sets} WHERE id = %s", [*columns.values(), row.pk])
        finally:
            owner.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def end_backend(pid: int) -> None:
    """End a server process in the middle of what it does, as a restart of the database would.

    It is gone once this returns: one that is only told to end answers once more on a busy machine.
    """
    parameters = connections["default"].get_connection_params()
    login = {k: parameters[k] for k in ("host", "port", "user", "dbname") if parameters.get(k)}
    with psycopg.connect(**login, autocommit=True) as connection:
        assert connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid]).fetchone() == (
            True,
        )
