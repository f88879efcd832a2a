"""LangGraph with PostgresSaver: what a long thread keeps of each step, and what loading it takes.

Prints for a list reducer and for DeltaChannel ``{"bytes_per_step_100", "bytes_per_step_1000",
"slope", "load_ms_10", "load_ms_1000", "load_over"}``. Each step adds 1 KB to a list of
messages; to load is `get_state`, a call in the process that holds the graph.
"""

import operator
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypedDict

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph

from benchmarks.counters import server_folder
from benchmarks.figures import percentile, report
from benchmarks.growing import LONG, RUNS, SHORT, Growth, bytes_per_step, piece, slope
from benchmarks.peers.langgraph_peer import DATABASE, config, pool

FEW, SAMPLES = 10, 9


def extended(state: list[str] | None, writes: list[list[str]]) -> list[str]:
    """Return the list with what was written: a reducer in batches, as DeltaChannel wants it."""
    return (state or []) + [item for write in writes for item in write]


class Listed(TypedDict):
    """Messages by the usual reducer."""

    done: int
    wanted: int
    messages: Annotated[list[str], operator.add]


class Delta(TypedDict):
    """Messages by the channel that keeps what was added."""

    done: int
    wanted: int
    messages: Annotated[list[str], DeltaChannel(extended)]


def talk(state: Any) -> dict[str, Any]:
    """Do one step, which adds a message."""
    return {"done": state["done"] + 1, "messages": [piece()]}


@contextmanager
def graph_of(kind: type) -> Iterator[Any]:
    """Compile the looping graph with that kind of state."""
    with pool(server_folder()) as connections:
        graph = StateGraph(kind)
        graph.add_node("talk", talk)
        graph.add_edge(START, "talk")
        graph.add_conditional_edges(
            "talk", lambda state: END if state["done"] >= state["wanted"] else "talk"
        )
        yield graph.compile(checkpointer=PostgresSaver(connections))


def runner(graph: Any, name: str) -> Callable[[int], None]:
    """Return what runs a thread of so many steps, each time a new one."""
    counts: dict[int, int] = {}

    def run_of(steps: int) -> None:
        counts[steps] = counts.get(steps, 0) + 1
        thread = f"{name}-{steps}-{counts[steps]}"
        start = {"done": 0, "wanted": steps, "messages": []}
        graph.invoke(start, config(thread), durability="sync")

    return run_of


def load_ms(graph: Any, thread: str, steps: int) -> float:
    """Return how long the thread's state takes to load, in the median."""
    samples = []
    for _ in range(SAMPLES):
        started = time.perf_counter()
        state = graph.get_state(config(thread))
        samples.append(time.perf_counter() - started)
        if len(state.values["messages"]) != steps:
            raise RuntimeError(f"{thread} has {len(state.values['messages'])} messages")
    return percentile(samples, 0.5) * 1e3


def measure(kind: type, name: str) -> dict[str, float]:
    """Return the figures of one kind of state."""
    growth = Growth(DATABASE)
    with graph_of(kind) as graph:
        run_of = runner(graph, name)
        run_of(FEW)
        sizes = {
            SHORT: bytes_per_step(growth, SHORT, RUNS, run_of),
            LONG: bytes_per_step(growth, LONG, 1, run_of),
        }
        few, many = (load_ms(graph, f"{name}-{steps}-1", steps) for steps in (FEW, LONG))
    loads = {f"load_ms_{FEW}": few, f"load_ms_{LONG}": many, "load_over": many / few}
    return slope(sizes) | loads


def main() -> None:
    """Measure and print."""
    with pool(server_folder()) as connections:
        PostgresSaver(connections).setup()
    report({name: measure(kind, name) for name, kind in (("list", Listed), ("delta", Delta))})


if __name__ == "__main__":
    main()
