"""Runs the bare service beside the measured one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from benchmarks.client import answers, free_port
from benchmarks.cluster import Cluster
from benchmarks.counters import dsn
from benchmarks.processes import running
from config.supervisor.processes import Program

DATABASE = "bare"
TABLE = """
CREATE TABLE note (id bigserial PRIMARY KEY, tool text NOT NULL, arguments jsonb NOT NULL,
                   created_at timestamptz NOT NULL)
"""
WORKERS = 2


@contextmanager
def serving(cluster: Cluster) -> Iterator[int]:
    """Serve the bare application for the length of the block; gives the port."""
    cluster.create_database(DATABASE)
    with psycopg.connect(dsn(DATABASE), autocommit=True) as connection:
        connection.execute(TABLE)
    port = free_port()
    options = ["--interface", "asgi", "--workers", str(WORKERS)]
    place = ["--host", "127.0.0.1", "--port", str(port), "--log-level", "warning"]
    program = Program(
        command=[
            Path(sys.executable).parent / "granian",
            *options,
            *place,
            "benchmarks.bare.app:application",
        ],
        env=cluster.environment(BENCH_DATABASE=DATABASE),
        cwd=Path.cwd(),
    )
    with running(program, cluster.log("bare"), ready=lambda: answers(port, "/notes")):
        yield port
