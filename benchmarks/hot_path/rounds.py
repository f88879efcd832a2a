"""Rounds in which several ways take turns, a few commits at a time, so that all meet one machine."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks.hot_path.ground import processor_seconds

BLOCK = 50
LOG_POSITION = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
# What clients sent: the checks of deferred references at a commit, the server's own, are left out.
STATEMENTS = """
SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s
  JOIN pg_database d ON d.oid = s.dbid
 WHERE d.datname <> current_database() AND query !~ 'FOR KEY SHARE OF x$'
"""
Admin = psycopg.Connection[tuple[Any, ...]]


@dataclass(slots=True)
class Actor:
    """One way at work on a run of its own, through one server process."""

    act: Callable[[], object]
    pid: int
    seconds: float = 0.0
    cpu: float = 0.0
    log: int = 0
    statements: int = 0

    def block(self, admin: Admin) -> None:
        """Make a block of commits and add up what they took."""
        log, statements, cpu = _one(admin, LOG_POSITION), _one(admin, STATEMENTS), self._cpu()
        began = time.perf_counter()
        for _ in range(BLOCK):
            self.act()
        self.seconds += time.perf_counter() - began
        self.cpu += self._cpu() - cpu
        self.log += _one(admin, LOG_POSITION) - log
        self.statements += _one(admin, STATEMENTS) - statements

    def _cpu(self) -> float:
        return processor_seconds(self.pid)

    def each(self, commits: int) -> dict[str, float]:
        """Return what one of so many commits took."""
        return {
            "commits_per_s": commits / self.seconds,
            "cpu_ms": self.cpu / commits * 1e3,
            "wal_bytes": self.log / commits,
            "statements": self.statements / commits,
        }


def _one(admin: Admin, query: str) -> int:
    row = admin.execute(query.encode()).fetchone()
    return int(row[0]) if row else 0


def take_turns(
    actors: Mapping[str, Actor], commits: int, admin: Admin, *, first: int
) -> dict[str, dict[str, float]]:
    """Let each way make so many commits in blocks, by turns; return what one of them took."""
    names = list(actors)
    for number in range(commits // BLOCK):
        start = (first + number) % len(names)
        for name in (*names[start:], *names[:start]):
            actors[name].block(admin)
    return {name: actor.each(commits) for name, actor in actors.items()}
