"""The PostgreSQL that everything is measured on: fresh, durable, and ended with the run."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from benchmarks.counters import dsn
from benchmarks.processes import running
from config.supervisor.paths import DataFolder
from config.supervisor.postgres import DURABLE, SUPERUSER, embedded_cluster

# /tmp may be memory, where a commit waits for nothing; this folder outlives a restart.
PLACE = Path("/var/tmp")  # noqa: S108 - made by mkdtemp, so nobody else can be there before
SETTINGS = {
    **DURABLE,
    "shared_preload_libraries": "pg_stat_statements",
    "shared_buffers": "256MB",
    # No checkpoint inside a round: the page images after it would count as somebody's WAL.
    "checkpoint_timeout": "30min",
    "max_wal_size": "8GB",
}
TOLD = ("server_version", "fsync", "synchronous_commit", "full_page_writes")
KEPT = ("PATH", "HOME", "LANG", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the measured processes need to know of the server that is running."""

    folder: DataFolder
    sockets: Path

    @property
    def conninfo(self) -> str:
        """How the superuser connects."""
        return dsn("postgres", self.sockets)

    def log(self, name: str) -> Path:
        """Return the file that a child's output goes to."""
        return self.folder.root / f"{name}.log"

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a measured process: nothing of ours steers it by chance."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        measured = {"BENCH_SOCKETS": str(self.sockets), "BENCH_USER": SUPERUSER}
        return {**kept, **measured, **more}

    def create_database(self, name: str) -> None:
        """Make a database. None is dropped meanwhile: that would force a checkpoint."""
        with psycopg.connect(self.conninfo, autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


@contextmanager
def started() -> Iterator[Cluster]:
    """Run PostgreSQL in a fresh folder for the length of the block."""
    folder = DataFolder(Path(tempfile.mkdtemp(prefix="abeyance-bench-", dir=PLACE)))
    # Its unprivileged user must be able to go through, not to look.
    folder.root.chmod(0o711)
    try:
        server = embedded_cluster(folder, SETTINGS, environ=os.environ)
        server.initialise()
        cluster = Cluster(folder, server.socket)
        os.environ.update(BENCH_SOCKETS=str(server.socket), BENCH_USER=SUPERUSER)
        log = cluster.log("postgres")
        with running(server.program(), log, ready=server.answers, stop=signal.SIGINT):
            _extend()
            yield cluster
    finally:
        shutil.rmtree(folder.root)


def _extend() -> None:
    with psycopg.connect(dsn("postgres"), autocommit=True) as admin:
        admin.execute("CREATE EXTENSION pg_stat_statements")
        admin.execute("CREATE EXTENSION pg_walinspect")


def told_settings() -> dict[str, str]:
    """Return the server's version and the settings that say what a commit waits for."""
    with psycopg.connect(dsn("postgres"), autocommit=True) as admin:
        rows = admin.execute(
            "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(TOLD)]
        )
        return dict(rows.fetchall())
