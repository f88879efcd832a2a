"""Twenty writers of one run: who expects a version and tries again, and who locks first.

Prints ``{way: [{"commits_per_s", "misses"} of each round]}``. Each commit appends one entry to the
run's journal and raises its state version; in both ways one round trip makes the attempt.
"""

import argparse
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from benchmarks.counters import dsn
from benchmarks.figures import report
from benchmarks.hot_path.ground import Ground, app_connection, ground
from config.database import NAME
from config.keys import current_key_id, stream_key
from interrupts.models import Run
from tenants.models import JournalEntry

# The same writes, in a function each; only the first condition differs.
APPEND = """
CREATE OR REPLACE FUNCTION bench_append_{name}(
    p_tenant uuid, p_run uuid, p_expected bigint, p_key_id text, p_inner bytea, p_outer bytea
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    r record;
    v_now timestamptz;
    v_seq bigint;
    v_head bytea;
BEGIN
    PERFORM set_config('abeyance.tenant_id', p_tenant::text, true);
    PERFORM pg_advisory_xact_lock_shared(7341, hashtext(p_tenant::text));
    SELECT o.state_version, o.journal_seq, o.journal_hash INTO r FROM interrupts_run o
        WHERE o.id = p_run AND {condition} FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    v_now := clock_timestamp();
    SELECT e.seq, e.head INTO v_seq, v_head FROM tenants_journal_extend(
        p_tenant, p_run, r.journal_seq, r.journal_hash, v_now, p_key_id, p_inner, p_outer,
        '{{"id":"abeyance","kind":"system"}}', ARRAY['usage.reported'], ARRAY['{{"tokens":1}}']) e;
    UPDATE interrupts_run SET state_version = r.state_version + 1, journal_seq = v_seq,
            journal_hash = v_head, updated_at = v_now WHERE id = p_run;
    RETURN true;
END $$
"""
CALL = "SELECT bench_append_{name}(%s::uuid, %s::uuid, %s::bigint, %s::text, %s::bytea, %s::bytea)"
CONDITIONS = {"expect": "o.state_version = p_expected", "lock": "true"}
TOLD = {"expect": "expect a version, try again", "lock": "lock first, then look"}
LOOK = "SELECT state_version FROM interrupts_run WHERE id = %s::uuid"
Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(slots=True)
class Race:
    """Writers of one run, each with a connection, who begin together."""

    place: Ground
    run: UUID
    writers: int
    commits: int
    misses: list[int] = field(default_factory=list)

    def held(self, way: str) -> dict[str, float]:
        """Let every writer make its commits; return how fast that was and how often they missed."""
        act = {"expect": self._expect, "lock": self._lock}[way]
        barrier = threading.Barrier(self.writers + 1)
        threads = [
            threading.Thread(target=self._write, args=(act, barrier)) for _ in range(self.writers)
        ]
        for thread in threads:
            thread.start()
        barrier.wait()
        began = time.perf_counter()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - began
        self._check()
        total = self.writers * self.commits
        return {"commits_per_s": total / took, "misses": float(sum(self.misses))}

    def _write(self, act: Callable[[Connection], int], barrier: threading.Barrier) -> None:
        with app_connection(self.place.tenant) as connection:
            connection.prepare_threshold = 0
            connection.execute(LOOK, [self.run])
            barrier.wait()
            self.misses.extend([act(connection) for _ in range(self.commits)])

    def _lock(self, connection: Connection) -> int:
        self._append(connection, "lock", None)
        return 0

    def _expect(self, connection: Connection) -> int:
        misses = 0
        while not self._append(connection, "expect", self._version(connection)):
            misses += 1
        return misses

    def _version(self, connection: Connection) -> int:
        row = connection.execute(LOOK, [self.run]).fetchone()
        return int(row[0]) if row else 0

    def _append(self, connection: Connection, name: str, expected: int | None) -> bool:
        key = stream_key(self.run, current_key_id())
        given = [self.place.tenant, self.run, expected, *key]
        row = connection.execute(CALL.format(name=name), given).fetchone()
        return bool(row and row[0])

    def _check(self) -> None:
        run = Run.objects.get(pk=self.run)
        entries = JournalEntry.objects.filter(stream=self.run).count()
        if (run.journal_seq, run.state_version, entries) != (
            (total := self.writers * self.commits),
            total + 1,
            total,
        ):
            raise RuntimeError(f"{entries} entries after {total} commits")


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser()
    for name in ("rounds", "writers", "commits"):
        arguments.add_argument(name, type=int)
    given = arguments.parse_args()
    with psycopg.connect(dsn(NAME), autocommit=True) as owner:
        for name, condition in CONDITIONS.items():
            owner.execute(APPEND.format(name=name, condition=condition).encode())
    figures: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    with ground() as place:
        for number in range(given.rounds):
            for name in list(CONDITIONS)[:: 1 if number % 2 else -1]:
                race = Race(place, place.run(1).pk, given.writers, given.commits)
                figures[name].append(race.held(name))
    report({TOLD[name]: rounds for name, rounds in figures.items()})


if __name__ == "__main__":
    main()
