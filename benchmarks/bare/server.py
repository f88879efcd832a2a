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
CREATE TABLE run (id bigserial PRIMARY KEY, status text NOT NULL);
CREATE TABLE note (id bigserial PRIMARY KEY, run_id bigint NOT NULL REFERENCES run,
                   seq integer NOT NULL, body jsonb NOT NULL, at timestamptz NOT NULL);
"""
RUNS = 1000
WORKERS = 2


@contextmanager
def serving(cluster: Cluster) -> Iterator[int]:
    """Serve the bare application for the length of the block; gives the port."""
    cluster.create_database(DATABASE)
    with psycopg.connect(dsn(DATABASE), autocommit=True) as connection:
        connection.execute(TABLE)
        connection.execute(
            "INSERT INTO run (status) SELECT 'running' FROM generate_series(1, %s)", [RUNS]
        )
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
