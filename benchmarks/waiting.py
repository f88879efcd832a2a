"""A thousand agents that wait: what they cost while nothing happens, and how soon they are woken.

    .venv/bin/python -m benchmarks.waiting [--waiters 1000] [--decisions 200]

Each waits with `GET /steps/{id}?wait=60` for the decision on its own step. Prints one JSON line.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from benchmarks.client import Buffer, Client, authorization, request_bytes
from benchmarks.cluster import started
from benchmarks.counters import dsn
from benchmarks.ours.api import BASE, Asked, ask
from benchmarks.ours.service import DATABASE, Service, installed

QUIET_SECONDS = 10.0
DECISIONS_A_SECOND = 20
OTHERS = 300

CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'
"""
STATEMENTS = """
SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s
JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = %s
"""
SIGN_INS = STATEMENTS + " AND s.query LIKE '%%tenants_sign_in(%%' AND s.query LIKE 'SELECT%%'"


class Waiter:
    """One agent with one connection, which waits for one step."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.woken_at: float | None = None
        self.body: dict[str, Any] = {}

    async def wait(self, service: Service, sent: asyncio.Semaphore) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        path = f"{BASE}/steps/{self.asked.step}?wait=60"
        writer.write(request_bytes("GET", path, None, authorization(service.credentials.agent)))
        await writer.drain()
        sent.release()
        buffer, answer = Buffer(), None
        while answer is None and (data := await reader.read(1 << 16)):
            answer = buffer.feed(data)
        self.woken_at = time.monotonic()
        self.body = answer.json() if answer else {}
        writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiters", type=int, default=1000)
    parser.add_argument("--decisions", type=int, default=200)
    chosen = parser.parse_args()
    with started() as cluster, installed(cluster) as service, service.working():
        asked = ask(service.port, service.credentials, "bench.hold", chosen.waiters)
        print(json.dumps(asyncio.run(measure(service, asked, chosen.decisions))))


async def measure(service: Service, asked: Sequence[Asked], decisions: int) -> dict[str, Any]:
    before = await asyncio.to_thread(other_requests, service, asked[0])
    waiters = [Waiter(each) for each in asked]
    sent = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(waiter.wait(service, sent)) for waiter in waiters]
    for _ in waiters:
        await sent.acquire()
    await asyncio.to_thread(until_held)
    statements, connections = await asyncio.to_thread(quiet)
    during = await asyncio.to_thread(other_requests, service, asked[0])
    wakes = await decide(service, waiters[-decisions:])
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "waiters": len(waiters),
        "db_connections": connections,
        "statements_per_s": round(statements, 1),
        "wake_p50_ms": round(statistics.median(wakes) * 1000, 1),
        "wake_p99_ms": round(statistics.quantiles(wakes, n=100)[98] * 1000, 1),
        "wake_max_ms": round(max(wakes) * 1000, 1),
        "other_p50_ms_before": before[0],
        "other_p50_ms": during[0],
        "other_p99_ms_before": before[1],
        "other_p99_ms": during[1],
    }


def until_held() -> None:
    """Wait until Django has looked at each of them once: the server then has less to do."""
    with reading() as admin:
        before = -1
        while (now := count(admin, SIGN_INS)) != before:
            before = now
            time.sleep(2)


def quiet() -> tuple[float, int]:
    """Statements a second and connections while everybody waits and nobody decides."""
    with reading() as admin:
        early = count(admin, STATEMENTS)
        time.sleep(QUIET_SECONDS)
        late = count(admin, STATEMENTS)
        return (late - early) / QUIET_SECONDS, count(admin, CONNECTIONS)


async def decide(service: Service, waiters: Sequence[Waiter]) -> list[float]:
    """Approve one after the other; returns the seconds from each request to its agent's wake."""
    wakes = []
    with Client(service.port, service.credentials.approver) as approver:
        for waiter in waiters:
            began = time.monotonic()
            await asyncio.to_thread(approver.post, *waiter.asked.approval())
            while waiter.woken_at is None:
                await asyncio.sleep(0.001)
            if waiter.body.get("status") == "waiting":
                raise RuntimeError(f"an agent was woken for nothing: {waiter.body}")
            wakes.append(waiter.woken_at - began)
            await asyncio.sleep(max(0.0, began + 1 / DECISIONS_A_SECOND - time.monotonic()))
    return wakes


def other_requests(service: Service, asked: Asked) -> tuple[float, float]:
    """Median and 99th percentile, in milliseconds, of requests that do not wait."""
    took = []
    with Client(service.port, service.credentials.agent) as agent:
        for _ in range(OTHERS):
            began = time.perf_counter()
            agent.get(f"{BASE}/steps/{asked.step}")
            took.append((time.perf_counter() - began) * 1000)
    return round(statistics.median(took), 2), round(statistics.quantiles(took, n=100)[98], 2)


Admin = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def reading() -> Iterator[Admin]:
    with psycopg.connect(dsn("postgres"), autocommit=True) as admin:
        yield admin


def count(admin: Admin, statement: str) -> int:
    row = admin.execute(statement.encode(), [DATABASE]).fetchone()
    return int(row[0]) if row else 0


if __name__ == "__main__":
    main()
