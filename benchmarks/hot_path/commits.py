"""Commits per second, server CPU and WAL of each way, in interleaved rounds.

Prints ``{way: [{"commits_per_s", "cpu_ms", "wal_bytes", "statements"} of each round]}``. Every
round of every way takes a fresh run, whose rows and whose chain are checked afterwards.
"""

import argparse
import hashlib
from collections import defaultdict
from functools import partial

import psycopg

from benchmarks.counters import dsn
from benchmarks.figures import report
from benchmarks.hot_path.ground import Course, Ground, backend_pid, begin, ground
from benchmarks.hot_path.rounds import BLOCK, Actor, Admin, take_turns
from benchmarks.hot_path.ways import WAYS, NotCommitted
from config.database import NAME
from config.keys import stream_key
from interrupts.models import Attempt, Receipt, Run, Step, StepStatus
from tenants.models import JournalEntry

WARMING = 20


def play(place: Ground, commits: int, admin: Admin, *, first: int) -> dict[str, dict[str, float]]:
    """Let each way make so many commits in a run of its own; return what one of them took."""
    courses = {name: begin(place, WARMING + commits) for name in WAYS}
    actors = {name: Actor(partial(act, courses[name]), backend_pid()) for name, act in WAYS.items()}
    for actor in actors.values():
        for _ in range(WARMING):
            actor.act()
    figures = take_turns(actors, commits, admin, first=first)
    for course in courses.values():
        check(course)
    return figures


def check(course: Course) -> None:
    """Raise NotCommitted unless the run's rows and chain are what these commits must leave."""
    run = Run.objects.get(pk=course.run)
    done = Step.objects.filter(run=run, status=StepStatus.SUCCEEDED, position__lt=run.next_step)
    rows = (done.count(), Receipt.objects.filter(run=run).count(), run.next_step - 1)
    live = Attempt.objects.filter(run=run, settled_at=None).values_list("pk", flat=True)
    entries = list(JournalEntry.objects.filter(stream=run.pk).order_by("seq"))
    head = b""
    for entry in entries:
        key = stream_key(run.pk, entry.key_id)
        inner = hashlib.sha256(key.inner + head + entry.text.encode()).digest()
        head = hashlib.sha256(key.outer + inner).digest()
        if head != bytes(entry.hash):
            raise NotCommitted(f"entry {entry.seq} does not follow")
    if (
        rows != (course.at,) * 3
        or list(live) != [course.attempt]
        or len(entries) != 1 + 3 * course.at
        or (run.journal_seq, bytes(run.journal_hash)) != (len(entries), head)
        or run.state_version != 2 + course.at
    ):
        raise NotCommitted(f"{rows} steps, {len(entries)} entries after {course.at} commits")


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser()
    for name in ("rounds", "commits"):
        arguments.add_argument(name, type=int)
    given = arguments.parse_args()
    figures: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    with ground() as place, psycopg.connect(dsn("postgres"), autocommit=True) as admin:
        play(place, BLOCK, admin, first=0)
        with psycopg.connect(dsn(NAME), autocommit=True) as owner:
            owner.execute("ANALYZE")  # as the server would by itself within minutes
        for number in range(given.rounds):
            played = play(place, given.commits, admin, first=number)
            for name, figure in played.items():
                figures[name].append(figure)
    report(figures)


if __name__ == "__main__":
    main()
