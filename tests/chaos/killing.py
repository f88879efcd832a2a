"""Killing: each kind of process often enough, at random moments, and what was down when."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import psycopg

from tests.chaos.farend import kill
from tests.chaos.service import KINDS, choose_victim
from tests.chaos.state import Chaos

# Between two kills so much is asked of the far end, that each meets the service at work; or as much
# time passes as the service took to start, since it may be what was killed that keeps it from work.
MOST_REQUESTS, LEAST_PATIENCE = 8, 5.0
SHORTEST, LONGEST = 0.05, 0.5  # and then a moment more, in seconds
LOOK_SECONDS = 0.4


def deck(kills: int, a_kind: int, dice: random.Random) -> list[str]:
    """Which kinds to kill, in which order: each at least ``a_kind`` times."""
    kinds = [kind for kind in KINDS for _ in range(a_kind)][:kills]
    kinds += [dice.choice(KINDS) for _ in range(kills - len(kinds))]
    dice.shuffle(kinds)
    return kinds


def destroy(chaos: Chaos, kinds: list[str], until: float) -> None:
    """Kill what the deck says, the first kind of it that lives; end early once time is up."""
    dice = chaos.dice("killing")
    while kinds and not chaos.over.is_set() and time.monotonic() < until:
        _wait_for_work(chaos, dice.randint(0, MOST_REQUESTS))
        time.sleep(dice.uniform(SHORTEST, LONGEST))
        found = chaos.service.pids()
        for kind in dict.fromkeys(kinds):
            pid = choose_victim(found, kind, dice)
            if pid is not None and kill(pid):
                chaos.kills[kind] += 1
                kinds.remove(kind)
                break


def _wait_for_work(chaos: Chaos, requests: int) -> None:
    patience = max(chaos.service.started_in, LEAST_PATIENCE)
    enough, end = chaos.ledger.ways.total() + requests, time.monotonic() + patience
    while chaos.ledger.ways.total() < enough and time.monotonic() < end:
        time.sleep(0.02)


class Watch(threading.Thread):
    """Notes when the database was away, and when no worker lived that could sweep."""

    def __init__(self, chaos: Chaos) -> None:
        super().__init__(name="watch", daemon=True)
        self.chaos = chaos
        self.down: list[tuple[float, float]] = []
        self._connection: psycopg.Connection[Any] | None = None

    def run(self) -> None:
        before, was_up = time.time(), True
        while not self.chaos.over.wait(LOOK_SECONDS):
            up = bool(self.chaos.service.sweeping()) and self._database_answers()
            now = time.time()
            if not (up and was_up):
                self.down.append((before, now))
            before, was_up = now, up

    def _database_answers(self) -> bool:
        """Ask on the connection that is kept: one that was broken means that it was away."""
        try:
            if self._connection is None:
                self._connection = self.chaos.service.connect()
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            self._connection = None
            return False
        return True

    def was_up(self, since: float, until: float) -> bool:
        return not any(began < until and since < ended for began, ended in list(self.down))
