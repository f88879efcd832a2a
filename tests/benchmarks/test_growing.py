"""How the growth of a database is measured."""

import zlib

import psycopg
import pytest

from benchmarks.counters import dsn
from benchmarks.growing import BYTES, LONG, SHORT, Growth, bytes_per_step, piece, slope

NAME = "bench_growing"
ROW = 1000
HEAVY = "CREATE TABLE heavy (id serial PRIMARY KEY, body text)"


@pytest.fixture
def database(monkeypatch, settings):
    where = settings.DATABASES["owner"]
    monkeypatch.setenv("BENCH_SOCKETS", str(where["HOST"]))
    monkeypatch.setenv("BENCH_USER", where["USER"])
    with psycopg.connect(dsn("postgres"), autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {NAME}")
        admin.execute(f"CREATE DATABASE {NAME}")
        try:
            with psycopg.connect(dsn(NAME), autocommit=True) as inside:
                inside.execute(HEAVY)
                yield inside
        finally:
            admin.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


def test_a_piece_is_a_kilobyte_that_does_not_shrink_and_never_comes_again():
    assert len(piece()) == BYTES
    assert piece() != piece()
    assert len(zlib.compress(piece().encode())) > 0.7 * BYTES


def insert(database, rows):
    for _ in range(rows):
        database.execute("INSERT INTO heavy (body) VALUES (%s)", [piece()])


def test_what_grows_is_counted_with_its_indexes_and_not_what_was_free_before(database):
    growth = Growth(NAME)
    insert(database, 4 * ROW)
    database.execute("DELETE FROM heavy")  # free space, which the next rows would go into
    found = bytes_per_step(growth, ROW, 2, lambda steps: insert(database, steps))
    assert 1.05 * BYTES < found < 1.4 * BYTES


def test_rows_of_a_step_that_are_rewritten_count_as_they_lie_there(database):
    def rewriting(steps):
        insert(database, steps)
        database.execute("UPDATE heavy SET body = body || ''")

    found = bytes_per_step(Growth(NAME), ROW, 1, rewriting)
    assert found > 2 * BYTES


def test_the_slope_is_that_of_a_long_run_over_a_short_one():
    assert slope({SHORT: 100.0, LONG: 150.0}) == {
        "bytes_per_step_100": 100.0,
        "bytes_per_step_1000": 150.0,
        "slope": 1.5,
    }
