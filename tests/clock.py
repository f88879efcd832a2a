"""The database's clock, set forward: whoever asks it for the time is told a later one.

Rows and journals keep what was written, so what is found of a run under a clock that was moved
verifies as anywhere else. Functions of a schema that is searched first stand in for PostgreSQL's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections

from tests.database import as_owner, superuser

STANDS_IN = """
CREATE SCHEMA IF NOT EXISTS later;
CREATE TABLE IF NOT EXISTS later.clock (by interval NOT NULL);
CREATE OR REPLACE FUNCTION later.by() RETURNS interval LANGUAGE sql STABLE
    AS 'SELECT c.by FROM later.clock c';
CREATE OR REPLACE FUNCTION later.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT pg_catalog.clock_timestamp() + later.by()';
CREATE OR REPLACE FUNCTION later.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT pg_catalog.statement_timestamp() + later.by()';
CREATE OR REPLACE FUNCTION later.now() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT pg_catalog.now() + later.by()';
GRANT USAGE ON SCHEMA later TO public;
GRANT SELECT, UPDATE ON later.clock TO public;
TRUNCATE later.clock;
INSERT INTO later.clock VALUES (interval '0');
"""


@contextmanager
def movable() -> Iterator[None]:
    """Have every connection that is made from now on ask the clock that `move` moves."""
    name = connections["owner"].ops.quote_name(connections["owner"].settings_dict["NAME"])
    with superuser() as connection:
        connection.execute(STANDS_IN)
        connection.execute(f"ALTER DATABASE {name} SET search_path = later, public, pg_catalog")
        _begin_anew()
        try:
            yield
        finally:
            connection.execute(f"ALTER DATABASE {name} RESET search_path")
            connection.execute("DROP SCHEMA later CASCADE")
            _begin_anew()


@pytest.fixture(autouse=True, scope="module")
def moving_clock(django_db_setup: None) -> Iterator[None]:
    """For the tests of whatever folder imports it."""
    with movable():
        yield


def _begin_anew() -> None:
    for connection in connections.all(initialized_only=True):
        connection.close()


def move(seconds: float) -> None:
    """Let so much time pass."""
    with as_owner() as owner:
        owner.execute("UPDATE later.clock SET by = by + %s * interval '1 second'", [seconds])
