"""Measure the hot path: commits, writers of one run, spellings of a promise, a withdrawal.

Starts a durable PostgreSQL of its own, migrates it and prints the tables of docs/adr/0001.
"""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.cluster import Cluster, started, told_settings
from benchmarks.ours.service import manage
from benchmarks.processes import run
from benchmarks.report import say
from config.database import make_database, make_roles
from config.supervisor.paths import PROJECT

ROUNDS, COMMITS, TRIES = 5, 200, 20
COMMITS_OF_A_SPELLING = 400
LIMIT_SECONDS = 1200
WRITERS, COMMITS_EACH = 20, 20
Rounds = Sequence[Mapping[str, float]]


@contextmanager
def migrated() -> Iterator[dict[str, str]]:
    """Run a cluster with the service's schema; give the environment of a measuring process."""
    with started() as cluster:
        told = ", ".join(f"{name} {value}" for name, value in told_settings().items())
        say(f"PostgreSQL: {told}")
        environment = _environment(cluster)
        make_roles(cluster.conninfo, login=True)
        make_database(cluster.conninfo)
        manage(environment, "migrate", "--verbosity", "0")
        yield environment


def _environment(cluster: Cluster) -> dict[str, str]:
    return cluster.environment(
        ABEYANCE_DATA_DIR=str(cluster.folder.root),
        DJANGO_SETTINGS_MODULE="config.settings",
        PYTHONPATH=str(PROJECT),
    )


def measured(part: str, given: Sequence[str], environment: Mapping[str, str]) -> Any:
    """Run the part in a process of its own and return the figures that it prints."""
    command = (sys.executable, "-m", f"benchmarks.hot_path.{part}", *given)
    done = run(*command, environment=environment, seconds=LIMIT_SECONDS)
    return json.loads(done.stdout.splitlines()[-1])


def spread(rounds: Rounds, name: str, form: str) -> str:
    """Return median, least and greatest of a figure over the rounds."""
    seen = [figures[name] for figures in rounds]
    low, high = min(seen), max(seen)
    return f"{statistics.median(seen):{form}} ({low:{form}} to {high:{form}})"


def ratio(rounds: Rounds, to: Rounds, name: str) -> str:
    """Return the median of the ratios of a figure, each taken inside one round."""
    shares = [ours[name] / theirs[name] for ours, theirs in zip(rounds, to, strict=True)]
    return f"{statistics.median(shares):.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def commits_table(figures: Mapping[str, Rounds]) -> str:
    """Return what a commit costs in each way."""
    ours = list(figures.values())[-1]
    rows = [
        [
            name,
            spread(rounds, "commits_per_s", ",.0f"),
            ratio(rounds, ours, "commits_per_s"),
            spread(rounds, "cpu_ms", ".2f"),
            spread(rounds, "wal_bytes", ",.0f"),
            spread(rounds, "statements", ".0f").split(" ")[0],
        ]
        for name, rounds in figures.items()
    ]
    return table(["way", "commits/s", "of ours", "server CPU ms", "WAL bytes", "statements"], rows)


def writers_table(figures: Mapping[str, Rounds]) -> str:
    """Return how writers of one run get on."""
    rows = [
        [name, spread(rounds, "commits_per_s", ",.0f"), spread(rounds, "misses", ",.0f")]
        for name, rounds in figures.items()
    ]
    return table(["writers", "commits/s", "misses"], rows)


def spelling_table(figures: Mapping[str, Rounds]) -> str:
    """Return what each spelling costs."""
    first, *_ = figures.values()
    rows = [
        [name, spread(rounds, "cpu_ms", ".3f"), ratio(rounds, first, "cpu_ms")]
        for name, rounds in figures.items()
    ]
    return table(["promises", "server CPU ms", "of the first"], rows)


def withdrawal_table(figures: Mapping[str, Mapping[str, int]]) -> str:
    """Return how often an effect was started that no longer was permitted."""
    rows = [
        [
            name,
            f"{seen['started_after_withdrawal']} of {seen['tries']}",
            f"{seen['started_after_answer']} of {seen['tries']}",
        ]
        for name, seen in figures.items()
    ]
    head = ["intent", "started after the withdrawal", "and after it had answered"]
    return table(head, rows)


def main() -> None:
    """Measure and print the tables."""
    arguments = argparse.ArgumentParser(prog="benchmarks.hot_path", description=__doc__)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = str(arguments.parse_args().rounds)
    parts: dict[str, tuple[tuple[str, ...], Callable[[Any], str]]] = {
        "commits": ((rounds, str(COMMITS)), commits_table),
        "spelling": ((rounds, str(COMMITS_OF_A_SPELLING)), spelling_table),
        "writers": ((rounds, str(WRITERS), str(COMMITS_EACH)), writers_table),
        "withdrawn": ((str(TRIES),), withdrawal_table),
    }
    with migrated() as environment:
        for name, (given, told) in parts.items():
            say(f"measuring {name}; load of the machine {os.getloadavg()[0]:.1f}")
            sys.stdout.write(told(measured(name, given, environment)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
