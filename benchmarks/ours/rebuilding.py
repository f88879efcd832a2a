"""How long it takes to learn of 1,000,000 events again, of 1,000 people, and to check what was learned.

Prints ``{"rebuild": {"seconds", "client_cpu_seconds", "check_seconds", "events", "events_per_s", "memory_mb",
"grown_mb"}}``: the most memory that this process had, and how much of it came by rebuilding.
"""

import resource
import time
from collections.abc import Callable

from benchmarks.figures import report
from benchmarks.ours.crowded import crowded
from benchmarks.ours.inprocess import as_agent
from delegation.models import DecisionEvent, LearnerState
from delegation.services import rebuilding


class NotRebuilt(Exception):
    """What was made again is not what the events make."""


def took(act: Callable[[], object]) -> float:
    """Return how many seconds it took."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def memory_mb() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(key: str) -> dict[str, float]:
    """Return what rebuilding and checking took. Raises NotRebuilt where they do not agree."""
    with as_agent(key):
        before = memory_mb()
        cpu = time.process_time()
        seconds = took(rebuilding.rebuild)
        cpu = time.process_time() - cpu
        started = time.perf_counter()
        differing = rebuilding.check()
        check_seconds = time.perf_counter() - started
        untaught = LearnerState.objects.filter(state=None).count()
        events = DecisionEvent.objects.count()
    if differing or untaught:
        raise NotRebuilt(f"{len(differing)} differ, of {untaught} people nothing was learned")
    return {
        "seconds": seconds,
        "client_cpu_seconds": cpu,
        "check_seconds": check_seconds,
        "events": events,
        "events_per_s": events / seconds,
        "memory_mb": memory_mb(),
        "grown_mb": memory_mb() - before,
    }


def main() -> None:
    """Measure and print."""
    report({"rebuild": measure(crowded().agents["agent"])})


if __name__ == "__main__":
    main()
