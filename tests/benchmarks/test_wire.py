"""How round trips are counted, and answers read."""

from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from benchmarks.client import Buffer, request_bytes
from benchmarks.counters import NOT_COUNTED
from benchmarks.wire import Wire


@pytest.fixture
def wire():
    with Wire(Path(settings.DATABASES["default"]["HOST"]), delay=0.02) as wire:
        yield wire


@pytest.fixture
def connection(wire):
    user = settings.DATABASES["default"]["USER"]
    dsn = f"host={wire.folder} port=5432 user={user} dbname=postgres"
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def cost(wire, act):
    before = wire.round_trips
    act()
    return wire.round_trips - before


def test_a_statement_is_one_round_trip(wire, connection):
    assert cost(wire, lambda: connection.execute("SELECT 1")) == 1
    assert cost(wire, lambda: [connection.execute("SELECT 2") for _ in range(4)]) == 4


def test_a_statement_that_is_prepared_first_is_two_round_trips(wire, connection):
    assert cost(wire, lambda: connection.execute("SELECT 1", prepare=True)) == 2
    assert cost(wire, lambda: connection.execute("SELECT 1", prepare=True)) == 1


def test_begin_and_commit_are_round_trips_too(wire, connection):
    def one_transaction():
        with connection.transaction():
            connection.execute("SELECT 1")

    assert cost(wire, one_transaction) == 3


def test_a_pipeline_is_one_round_trip(wire, connection):
    def three_at_once():
        with connection.pipeline():
            for _ in range(3):
                connection.execute("SELECT 1")

    assert cost(wire, three_at_once) == 1


def test_a_farewell_is_waited_for_by_nobody(wire, connection):
    assert cost(wire, connection.close) == 0


def test_what_comes_through_is_what_was_sent(connection):
    text = "é" * 300_000
    assert connection.execute("SELECT %s::text", [text]).fetchone() == (text,)


FOREIGN_KEY = (
    'SELECT {} FROM ONLY "public"."a" x WHERE "id" OPERATOR(pg_catalog.=) $1 FOR KEY SHARE OF x'
)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("BEGIN", False),
        ("begin isolation level read committed", False),
        (" COMMIT", False),
        ("SAVEPOINT a", False),
        (FOREIGN_KEY.format("1"), False),
        (FOREIGN_KEY.format("$2"), False),
        ("SELECT beginning FROM a", True),
        ("INSERT INTO ended VALUES (1)", True),
        ("ENDING", True),
        ('SELECT 1 FROM "public"."a" x FOR KEY SHARE OF x', True),
    ],
)
def test_what_frames_a_transaction_or_a_foreign_key_is_no_statement(connection, text, counts):
    (excluded,) = connection.execute("SELECT %s ~* %s", [text, NOT_COUNTED]).fetchone()
    assert excluded is not counts


def feed_in_pieces(data, size):
    buffer = Buffer()
    answers = [buffer.feed(data[at : at + size]) for at in range(0, len(data), size)]
    assert answers[:-1] == [None] * (len(answers) - 1)
    return answers[-1]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_answer_is_whole_when_its_length_has_come(size):
    data = b'HTTP/1.1 201 Created\r\nContent-Length: 9\r\nX: y\r\n\r\n{"id": 1}'
    answer = feed_in_pieces(data, size)
    assert (answer.status, answer.json()) == (201, {"id": 1})


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_answer_in_chunks_is_whole_at_the_last(size):
    data = (
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"id\r\n5\r\n": 2}\r\n0\r\n\r\n'
    )
    answer = feed_in_pieces(data, size)
    assert (answer.status, answer.json()) == (200, {"id": 2})


def test_a_buffer_takes_the_next_answer_after_the_last():
    buffer = Buffer()
    data = b"HTTP/1.1 204 No Content\r\n\r\n"
    assert [buffer.feed(data).status for _ in range(2)] == [204, 204]


def test_a_request_says_how_long_its_body_is():
    sent = request_bytes("POST", "/notes", {"text": "é"})
    head, body = sent.split(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert body.decode() == '{"text":"\\u00e9"}'
