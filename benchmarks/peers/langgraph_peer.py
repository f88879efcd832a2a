"""LangGraph with PostgresSaver, ``durability="sync"``: a node that loops, one checkpoint a step.

Prints ``{"steps_per_s", "client_cpu_ms", "resume_p50_ms", "resume_p99_ms", "counters"}``. A resume is a call in
the process that already holds the graph: no HTTP, no check of who decides, no hand-over.
"""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from benchmarks.counters import counted, dsn, server_folder
from benchmarks.figures import milliseconds, pace, report
from benchmarks.wire import Wire

DATABASE = os.environ["BENCH_DATABASE"]


class Counting(TypedDict):
    """The state of a run: how many steps are done, and how many there are to be."""

    done: int
    wanted: int


def step(state: Counting) -> dict[str, int]:
    """Do one step."""
    return {"done": state["done"] + 1}


def config(thread: str) -> dict[str, Any]:
    """Name the thread that is run."""
    return {"configurable": {"thread_id": thread}, "recursion_limit": 100_000}


@contextmanager
def graph_of_steps(folder: Path) -> Iterator[Any]:
    """Compile the looping graph on a connection of its own to the server behind ``folder``."""
    with pool(folder) as connections:
        graph = StateGraph(Counting)
        graph.add_node("step", step)
        graph.add_edge(START, "step")
        graph.add_conditional_edges(
            "step", lambda state: END if state["done"] >= state["wanted"] else "step"
        )
        yield graph.compile(checkpointer=PostgresSaver(connections))


def pool(folder: Path) -> ConnectionPool[Any]:
    """Return the pool that LangGraph's documentation recommends, of one connection."""
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    return ConnectionPool(dsn(DATABASE, folder), min_size=1, max_size=1, kwargs=settings, open=True)


def run_steps(graph: Any, name: str, steps: int) -> None:
    """Run one thread through so many steps."""
    graph.invoke({"done": 0, "wanted": steps}, config(name), durability="sync")


def pace_of_steps(steps: int, runs: int) -> dict[str, float]:
    """Return how fast one thread of one process makes steps durable, after a run to warm up."""
    with graph_of_steps(server_folder()) as graph:
        run_steps(graph, "warm", steps)

        def all_runs() -> None:
            for number in range(runs):
                run_steps(graph, f"timed-{number}", steps)

        return pace(steps * runs, all_runs)


def cost_of_a_step(steps: int, runs: int) -> dict[str, float]:
    """Return what one step costs the server and how often it is waited for."""
    with (
        Wire(server_folder()) as wire,
        counted(DATABASE, wire) as count,
        graph_of_steps(wire.folder) as graph,
    ):
        for number in range(runs):
            run_steps(graph, f"counted-{number}", steps)
    return count.each(steps * runs)


def resume_latency(runs: int) -> dict[str, float]:
    """Return p50 and p99 from the resuming call to the first line after the interrupt."""
    reached: list[float] = []

    def gate(state: Counting) -> dict[str, int]:
        interrupt({"action": "send_email"})
        reached.append(time.perf_counter())
        return {"done": state["done"] + 1}

    graph = StateGraph(Counting)
    graph.add_node("gate", gate)
    graph.add_edge(START, "gate")
    graph.add_edge("gate", END)
    samples = []
    with pool(server_folder()) as connections:
        app = graph.compile(checkpointer=PostgresSaver(connections))
        for number in range(runs):
            app.invoke({"done": 0, "wanted": 1}, config(f"gated-{number}"), durability="sync")
        for number in range(runs):
            started = time.perf_counter()
            app.invoke(Command(resume="approved"), config(f"gated-{number}"), durability="sync")
            samples.append(reached[-1] - started)
    return {f"resume_{name}": value for name, value in milliseconds(samples).items()}


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=100, help="steps of a run")
    arguments.add_argument("--runs", type=int, default=10)
    arguments.add_argument("--resumes", type=int, default=100)
    given = arguments.parse_args()
    with pool(server_folder()) as connections:
        PostgresSaver(connections).setup()
    report(
        {
            **pace_of_steps(given.steps, given.runs),
            **resume_latency(given.resumes),
            "counters": cost_of_a_step(given.steps, 2),
        }
    )


if __name__ == "__main__":
    main()
