"""How much a database grows with each step of a run, measured alike for everybody.

What is counted are all tables of the database with their indexes and what lies beside them (TOAST,
free space map, visibility map). Before the steps everything is packed (VACUUM FULL), so that nothing
goes into space that was free already; after them it is vacuumed as a server does by itself. Many
short runs make as many steps as a long one, or the last half-empty page of each table would count
for more in a short one.
"""

import base64
import os
from collections.abc import Callable, Mapping

import psycopg

from benchmarks.counters import dsn

SHORT, LONG = 100, 1000  # steps of a run
RUNS = LONG // SHORT
BYTES = 1024  # of text that each step adds

SIZE = """
SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n
    ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'm') AND n.nspname !~ '^(pg_|information_schema)'
"""


def piece() -> str:
    """Return 1 KB of text that nothing compresses and that never came before."""
    return base64.b64encode(os.urandom(BYTES * 3 // 4)).decode()


class Growth:
    """A database that is measured."""

    def __init__(self, database: str) -> None:
        self.database = database

    def pack(self) -> None:
        """Leave no free space, and the maps that the next vacuum would make."""
        for command in ("VACUUM (FULL, ANALYZE)", "VACUUM"):
            self._do(command)

    def settle(self) -> None:
        """Do what a server does by itself from time to time."""
        self._do("VACUUM (ANALYZE)")

    def size(self) -> int:
        """Return the bytes of all its tables and indexes."""
        with psycopg.connect(dsn(self.database), autocommit=True) as admin:
            row = admin.execute(SIZE).fetchone()
        if row is None:
            raise RuntimeError("the server told no sizes")
        return int(row[0])

    def _do(self, command: str) -> None:
        with psycopg.connect(dsn(self.database), autocommit=True) as admin:
            admin.execute(command.encode())


def bytes_per_step(growth: Growth, steps: int, runs: int, run_of: Callable[[int], object]) -> float:
    """Return by how many bytes the database grows with each step of runs of so many."""
    growth.pack()
    before = growth.size()
    for _ in range(runs):
        run_of(steps)
    growth.settle()
    return (growth.size() - before) / (steps * runs)


def slope(sizes: Mapping[int, float]) -> dict[str, float]:
    """Return the sizes by their names, and that of a long run over that of a short one."""
    named = {f"bytes_per_step_{steps}": size for steps, size in sizes.items()}
    return {**named, "slope": sizes[LONG] / sizes[SHORT]}
