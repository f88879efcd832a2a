"""Percentiles and the one line of JSON that every measuring process prints."""

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def percentile(samples: Sequence[float], share: float) -> float:
    """Return the smallest sample that at least ``share`` (0..1) of the samples do not exceed.

    Raises ValueError where there are no samples.
    """
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    rank = -(-len(ordered) * share // 1)
    return ordered[max(0, int(rank) - 1)]


def milliseconds(samples: Sequence[float]) -> dict[str, float]:
    """Return p50 and p99 in milliseconds of samples in seconds."""
    return {
        "p50_ms": percentile(samples, 0.50) * 1e3,
        "p99_ms": percentile(samples, 0.99) * 1e3,
    }


def pace(steps: int, act: Callable[[], object]) -> dict[str, float]:
    """Do it, and return how many of its steps came in a second and what one cost this process."""
    started, cpu = time.perf_counter(), time.process_time()
    act()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return {"steps_per_s": steps / seconds, "client_cpu_ms": cpu * 1e3 / steps}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return median, least and greatest of one figure over the rounds."""
    return {
        "median": round(statistics.median(values), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }


def report(figures: Mapping[str, Any]) -> None:
    """Print the figures of this process as one line of JSON."""
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
