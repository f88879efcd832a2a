"""Run each guard's tests without it, and say which went red."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

os.environ.setdefault("ABEYANCE_SECRET_KEY", "only for tests")
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"

from tests.guards.catalogue import GUARDS
from tests.guards.plugin import NAME, REPORT
from tests.guards.removal import Guard
from tests.plugin_postgres import running_cluster

ROOT = Path(__file__).parents[2]
AT_ONCE = 2
RED = re.compile("AssertionError|Failed")  # a wrong answer, or a refusal that did not come
TEMPLATE = "made"
# A session that takes longer hangs: those of one guard, and that of all their tests together.
MOST_SECONDS, MOST_SECONDS_OF_ALL = 240, 900


@dataclass(frozen=True)
class Seen:
    guard: str
    ok: bool
    says: str
    seconds: float


@dataclass(frozen=True)
class Bench:
    """A cluster whose databases are copies of one that was migrated once."""

    folder: Path
    conninfo: str

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(statement)

    def session(self, number: int, guard: str, tests: Sequence[str]) -> list[dict[str, Any]]:
        """Run these tests on a copy of the database; return what was seen of each."""
        database = f"copy_{number}"
        self.execute(f"CREATE DATABASE {database}")
        if guard:
            self.execute(f"CREATE DATABASE test_{database} TEMPLATE test_{TEMPLATE}")
        try:
            return self.pytest(database, guard, tests)
        finally:
            self.execute(f"DROP DATABASE IF EXISTS test_{database} WITH (FORCE)")
            self.execute(f"DROP DATABASE {database}")

    def pytest(
        self, database: str, guard: str, tests: Sequence[str], most_seconds: int = MOST_SECONDS
    ) -> list[dict[str, Any]]:
        report = self.folder / f"{database}.json"
        socket = self.folder / "postgres" / "socket"
        parts = psycopg.conninfo.conninfo_to_dict(self.conninfo)
        url = f"postgresql://{parts['user']}@/{database}?host={socket}&port={parts['port']}"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-p", "tests.guards.plugin"),
                *("-q", "--tb=short", "--reuse-db", "-p", "no:cacheprovider", *tests),
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "ABEYANCE_TEST_DATABASE_URL": url,
                NAME: guard,
                REPORT: str(report),
            },
            capture_output=True,
            text=True,
            timeout=most_seconds,
            check=False,
        )
        if not report.exists():
            raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
        seen: list[dict[str, Any]] = json.loads(report.read_text())
        return seen


def without(bench: Bench, number: int, guard: Guard) -> Seen:
    began = time.monotonic()
    seen = bench.session(number, guard.name, guard.tests)
    ok, says = judged(guard, seen)
    return Seen(guard.name, ok, says, time.monotonic() - began)


def judged(guard: Guard, seen: list[dict[str, Any]]) -> tuple[bool, str]:
    """Each of its tests must have failed, by its own words and for no other reason."""
    for test in guard.tests:
        of_it = [one for one in seen if one["test"].partition("[")[0] == test.partition("[")[0]]
        red = [one for one in of_it if one["outcome"] == "failed"]
        name = test.rpartition("::")[2]
        if not of_it:
            return False, f"{name} did not run"
        if not red:
            return False, f"{name} stayed green"
        for one in red:
            told = f"{one['kind']}: {one['says']}"
            expected = one["when"] == "call" and (
                RED.fullmatch(one["kind"]) or (guard.red and re.search(guard.red, told))
            )
            if not expected:
                return False, f"{name} failed for another reason: {told[:160]}"
    return True, "red"


def with_all(bench: Bench, guards: Sequence[Guard]) -> Seen:
    """With every guard in place each of the tests is green."""
    began = time.monotonic()
    tests = sorted({test for guard in guards for test in guard.tests})
    seen = bench.pytest(TEMPLATE, "", tests, MOST_SECONDS_OF_ALL)
    red = [one["test"] for one in seen if one["outcome"] == "failed"]
    says = f"{len(seen)} green" if not red else f"red: {', '.join(red)}"
    return Seen("with all guards in place", bool(seen) and not red, says, time.monotonic() - began)


def run(guards: Sequence[Guard]) -> list[Seen]:
    folder = Path(tempfile.mkdtemp(prefix="abeyance-guards-"))
    folder.chmod(0o711)
    try:
        with running_cluster(folder) as cluster:
            bench = Bench(folder, cluster.conninfo())
            bench.execute(f"CREATE DATABASE {TEMPLATE}")
            seen = [with_all(bench, guards)]
            told(seen[0])
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for one in pool.map(lambda pair: without(bench, *pair), enumerate(guards)):
                    seen.append(one)
                    told(one)
            return seen
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def told(seen: Seen) -> None:
    mark = "ok " if seen.ok else "NOT"
    sys.stdout.write(f"{mark}  {seen.guard:<52} {seen.says}  ({seen.seconds:.1f} s)\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.guards", description=__doc__)
    parser.add_argument("names", nargs="*", help="guards to take away; all where none is named")
    parser.add_argument("--list", action="store_true", help="print the guards and their promises")
    options = parser.parse_args()
    chosen = [guard for guard in GUARDS if not options.names or guard.name in options.names]
    if unknown := set(options.names) - {guard.name for guard in chosen}:
        parser.error(f"no such guard: {', '.join(sorted(unknown))}")
    if options.list:
        for guard in chosen:
            sys.stdout.write(f"{guard.name:<52} {guard.promise}\n")
        return 0
    began = time.monotonic()
    seen = run(chosen)
    bad = [one.guard for one in seen if not one.ok]
    sys.stdout.write(f"{len(chosen)} guards in {time.monotonic() - began:.0f} s")
    sys.stdout.write(f"; not shown: {', '.join(bad)}\n" if bad else ", each shown to matter\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
