"""``make bench``: the service, its peers and the bare insert in interleaved rounds.

Every round measures each part once, on one PostgreSQL, and takes the ratios inside the round. The
parts take turns at being first. What is printed and written is the median over the rounds.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from benchmarks.bare.server import serving
from benchmarks.cluster import Cluster, started, told_settings
from benchmarks.ours import latency, throughput
from benchmarks.ours.service import DATABASE, Service, installed
from benchmarks.peers.environment import python
from benchmarks.processes import figures_of
from benchmarks.report import RATIOS, flatten, say, summarise, table, with_ratios, write

ROUNDS = 5
REQUESTS = 600
DECISIONS = 400
APPROVALS = 200
RECEIPTS = {1: 50, 20: 200}


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything that runs while it is measured."""

    cluster: Cluster
    peers: Path
    service: Service
    bare_port: int
    fresh: Iterator[int]


def langgraph(bench: Bench) -> dict[str, float]:
    """Measure LangGraph's durable steps."""
    return flatten("langgraph_sync", _peer(bench, "langgraph_peer"))


def dbos(bench: Bench) -> dict[str, float]:
    """Measure DBOS's durable steps and its approvals."""
    return flatten("dbos", _peer(bench, "dbos_peer", "--approvals", str(APPROVALS)))


def _peer(bench: Bench, name: str, *arguments: str) -> dict[str, Any]:
    database = f"{name}_{next(bench.fresh)}"
    bench.cluster.create_database(database)
    environment = bench.cluster.environment(BENCH_DATABASE=database)
    module = f"benchmarks.peers.{name}"
    return figures_of(module, *arguments, environment=environment, python=bench.peers)


def steps(bench: Bench) -> dict[str, float]:
    """Measure pure and effect steps, worked by the task's body in one process."""
    return _ours(bench, "benchmarks.ours.steps")


def requests(bench: Bench) -> dict[str, float]:
    """Measure proposals and decisions over HTTP beside bare inserts."""
    service = bench.service
    port, credentials = service.port, service.credentials
    bare = throughput.bare_insert(bench.bare_port, REQUESTS)
    proposed = throughput.propose(port, credentials, REQUESTS)
    decided = throughput.decide(port, credentials, DECISIONS)
    return (
        flatten("bare_insert", bare)
        | flatten("propose", proposed)
        | flatten("decide", decided)
        | _ours(bench, "benchmarks.ours.requests")
    )


def _ours(bench: Bench, module: str) -> dict[str, float]:
    credentials = bench.service.credentials
    environment = bench.service.environment | {
        "BENCH_DATABASE": DATABASE,
        "BENCH_AGENT": credentials.agent,
        "BENCH_APPROVER": credentials.approver,
    }
    figures: dict[str, float] = {}
    for name, part in figures_of(module, environment=environment).items():
        figures |= flatten(name, part)
    return figures


def waiting(bench: Bench) -> dict[str, float]:
    """Measure how long approvals and receipts take, with a worker running."""
    service = bench.service
    port, credentials = service.port, service.credentials
    figures: dict[str, float] = {}
    with service.working(), latency.meter(service.meter) as meter:
        latency.wait_until_idle(service.cluster.folder.broker_socket)
        approved = latency.approve_to_effect(port, credentials, meter, APPROVALS)
        figures |= flatten("approve_to_effect", approved)
        for agents, samples in RECEIPTS.items():
            back = latency.propose_to_receipt(port, credentials, agents, samples)
            suffix = "" if agents == 1 else f"_{agents}"
            figures |= {f"propose_to_receipt_{name}{suffix}": back[name] for name in back}
    return figures


def growth(bench: Bench) -> dict[str, float]:
    """Measure what long runs keep of each step, and what it takes to go on after many."""
    return _ours(bench, "benchmarks.ours.growth")


def policies(bench: Bench) -> dict[str, float]:
    """Measure proposals under a policy of one rule, and under one of 200."""
    return _ours(bench, "benchmarks.ours.policies")


def delegated(bench: Bench) -> dict[str, float]:
    """Measure steps that a rule approves beside steps that policy allows."""
    return _ours(bench, "benchmarks.ours.delegated")


def deciding(bench: Bench) -> dict[str, float]:
    """Measure how long it takes to say whether a rule speaks for a call in a crowded tenant."""
    return _ours(bench, "benchmarks.ours.deciding")


def rebuild(bench: Bench) -> dict[str, float]:
    """Measure how long it takes to learn of all events of a crowded tenant again."""
    return _ours(bench, "benchmarks.ours.rebuilding")


def langgraph_growth(bench: Bench) -> dict[str, float]:
    """Measure the same of LangGraph, by its list of messages and by DeltaChannel."""
    kinds = _peer(bench, "langgraph_growth")
    return flatten("langgraph_list", kinds["list"]) | flatten("langgraph_delta", kinds["delta"])


def dbos_growth(bench: Bench) -> dict[str, float]:
    """Measure the same of DBOS."""
    return flatten("dbos_growth", _peer(bench, "dbos_growth"))


Part = Callable[[Bench], dict[str, float]]
# What each part measures, by what stands before the dot in the figures' names.
PARTS: dict[Part, tuple[str, ...]] = {
    langgraph: ("langgraph_sync",),
    steps: (
        "pure_step",
        "pure_step_alone",
        "pure_step_proposal",
        "effect_step",
        "effect_step_proposal",
    ),
    dbos: ("dbos",),
    requests: ("bare_insert", "propose", "decide"),
    growth: ("growth", "load_to_resume"),
    policies: ("policy_1", "policy_200"),
    delegated: (
        "ungated_step",
        "ungated_step_proposal",
        "auto_approved_step",
        "auto_approved_step_proposal",
    ),
    langgraph_growth: ("langgraph_list", "langgraph_delta"),
    dbos_growth: ("dbos_growth",),
    waiting: (
        "approve_to_effect",
        "propose_to_receipt_p50_ms",
        "propose_to_receipt_p99_ms",
        "propose_to_receipt_p50_ms_20",
        "propose_to_receipt_p99_ms_20",
    ),
}
# What takes minutes, and is measured only where it is named: the bench stays short.
BY_NAME: dict[Part, tuple[str, ...]] = {deciding: ("deciding",), rebuild: ("rebuild",)}


def chosen(only: str | None) -> list[Part]:
    """Return the parts that the figure is made of; all but the long ones where none is named.

    Raises ValueError for a name that no part measures.
    """
    if only is None:
        return list(PARTS)
    wanted = {name.split(".")[0] for name in RATIOS.get(only, (only,))}
    known = {**PARTS, **BY_NAME}
    parts = [part for part, measured in known.items() if not wanted.isdisjoint(measured)]
    if not parts:
        raise ValueError(f"nothing measures {only}")
    return parts


def in_turn(parts: Sequence[Part], number: int) -> list[Part]:
    """Return the parts in the order of this round."""
    first = number % len(parts)
    return [*parts[first:], *parts[:first]]


def measure(bench: Bench, parts: Sequence[Part], rounds: int) -> Iterator[dict[str, float]]:
    """Measure the parts in turn and give the figures of each round."""
    for number in range(rounds):
        figures: dict[str, float] = {}
        for part in in_turn(parts, number):
            began = time.monotonic()
            figures |= part(bench)
            took = time.monotonic() - began
            say(f"round {number + 1} of {rounds}: {part.__name__} took {took:.0f} s")
        yield with_ratios(figures)


@contextmanager
def everything() -> Iterator[Bench]:
    """Start what is measured, and end it."""
    with ExitStack() as stack:
        peers = python()
        cluster = stack.enter_context(started())
        settings = ", ".join(f"{name} {value}" for name, value in told_settings().items())
        say(f"PostgreSQL: {settings}")
        service = stack.enter_context(installed(cluster))
        bare_port = stack.enter_context(serving(cluster))
        yield Bench(cluster, peers, service, bare_port, count())


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    """End as on Ctrl-C: what was started is stopped, and the cluster's folder removed."""
    raise KeyboardInterrupt


def main() -> None:
    """Measure, print the table and write the results."""
    arguments = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--only", metavar="NAME", help="one figure, with what it is made of")
    given = arguments.parse_args()
    try:
        parts = chosen(given.only)
    except ValueError as fault:
        arguments.error(str(fault))
    signal.signal(signal.SIGTERM, _end)
    with everything() as bench:
        metrics = summarise(list(measure(bench, parts, given.rounds)))
    sys.stdout.write(table(metrics) + "\n")
    if given.only is None:
        write(given.rounds, metrics)


if __name__ == "__main__":
    main()
