"""How long an approval takes to reach the effect, and a proposal to come back as a receipt."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from redis import Redis

from benchmarks.client import BadAnswer, Client, clock
from benchmarks.counters import dsn
from benchmarks.figures import milliseconds
from benchmarks.ours.api import BASE, Asked, Credentials, ask, new_run, propose, step_body
from benchmarks.ours.tools import MARK
from config.database import NAME as DATABASE

OUTSTANDING = """
SELECT (SELECT count(*) FROM interrupts_step WHERE status IN ('ready', 'executing'))
    + (SELECT count(*) FROM interrupts_run WHERE due_at < now() + interval '2 seconds')
"""
QUEUE = "celery"  # as config.settings leaves it
SECONDS_TO_WAIT = 20
SECONDS_TO_DRAIN = 300
PARKED = 20
PAUSE = 0.005


@contextmanager
def meter(address: Path) -> Iterator[socket.socket]:
    """Listen for the effects that say when they began."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(address))
        listening.settimeout(SECONDS_TO_WAIT)
        try:
            yield listening
        finally:
            address.unlink()


def approve_to_effect(
    port: int, credentials: Credentials, listening: socket.socket, samples: int
) -> dict[str, float]:
    """Return p50 and p99 from before the POST to the effect's first line in a worker process.

    As many steps wait at a time as workflows do where the peer is measured, one is approved after
    the other, and each is settled before the next.
    """
    seen: list[float] = []
    with Client(port, credentials.agent) as agent, Client(port, credentials.approver) as approver:
        while len(seen) < samples:
            for each in ask(port, credentials, "bench.mark", min(PARKED, samples - len(seen))):
                seen.append(_approved(each, approver, listening))
                _wait_until_settled(agent, each.step)
    return milliseconds(seen)


def wait_until_idle(broker: Path) -> None:
    """Wait until the worker has done what the parts before left to be done.

    Those are steps, hints about steps that are done by now, and runs that the sweep has to look at
    once more: whatever is measured would wait behind them.
    """
    deadline = clock() + SECONDS_TO_DRAIN
    hints = Redis(unix_socket_path=str(broker))
    with psycopg.connect(dsn(DATABASE), autocommit=True) as connection:
        while outstanding := _outstanding(connection) + hints.llen(QUEUE):
            if clock() > deadline:
                raise BadAnswer(f"{outstanding} steps, runs and hints are still outstanding")
            time.sleep(0.1)


def _outstanding(connection: psycopg.Connection) -> int:
    row = connection.execute(OUTSTANDING).fetchone()
    return row[0] if row else 0


def _approved(asked: Asked, approver: Client, listening: socket.socket) -> float:
    started = clock()
    approver.post(*asked.approval())
    number, began = MARK.unpack(listening.recv(MARK.size))
    if number != asked.number:
        raise BadAnswer(f"the effect of {number} began when {asked.number} was approved")
    waited: float = began - started
    return waited


def _wait_until_settled(agent: Client, step: str) -> None:
    deadline = clock() + SECONDS_TO_WAIT
    while agent.get(f"{BASE}/steps/{step}")["status"] != "succeeded":
        if clock() > deadline:
            raise BadAnswer(f"step {step} is not settled")
        time.sleep(PAUSE)


def propose_to_receipt(
    port: int, credentials: Credentials, agents: int, samples: int
) -> dict[str, float]:
    """Return p50 and p99 from before an agent's proposal to its receipt in the agent's hands.

    Each agent drives a run of its own and proposes its next step once it has the receipt of the
    last; it waits with ``?wait``. All agents together take so many samples.
    """
    seen: list[float] = []
    faults: list[Exception] = []

    def drive_one() -> None:
        try:
            seen.extend(_round_trips(port, credentials, samples // agents))
        except (BadAnswer, OSError) as fault:
            faults.append(fault)

    threads = [threading.Thread(target=drive_one) for _ in range(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return milliseconds(seen)


def _round_trips(port: int, credentials: Credentials, samples: int) -> Iterator[float]:
    with Client(port, credentials.agent) as agent:
        run = new_run(agent)
        for _ in range(samples):
            started = clock()
            _have_receipt(agent, propose(agent, run, step_body("bench.note")))
            yield clock() - started


def _have_receipt(agent: Client, step: dict[str, Any]) -> None:
    deadline = clock() + SECONDS_TO_WAIT
    while step["status"] != "succeeded":
        path = f"{BASE}/steps/{step['id']}?wait={SECONDS_TO_WAIT}"
        step = agent.get(f"{path}&after_version={step['state_version']}")
        if clock() > deadline:
            raise BadAnswer(f"step {step['id']} has no receipt")
    if not step["receipts"]:
        raise BadAnswer(f"step {step['id']} succeeded without a receipt")
