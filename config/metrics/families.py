"""The figures as metric families: names, units and what each means.

Gauges that are a tenant's own name the TENANTS with the worst figure; the sample without a tenant is
everybody else's, the sum of counts and the largest of ages. Counters name no tenant: one that
changed between named and not would seem to start anew.
"""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Final
from uuid import UUID

import django
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric

from config.metrics.reading import MOST, NEAR_EXPIRY, Figures, Held, Waiting

TENANTS: Final = 10
STOPS: Final = f"; the count stops at {MOST}"
EXECUTORS: Final = ("service", "agent")
RUNS: Final[tuple[tuple[str, str | None], ...]] = (
    ("running", None),
    *(
        (status, suspension)
        for status in ("suspended", "cancelling")
        for suspension in (
            "unknown_outcome",
            "still_cancelling",
            "partially_complete",
            "safely_suspended",
        )
    ),
)


def families(figures: Figures, *, naming: bool) -> Iterator[Metric]:
    """Yield every family; ``naming`` says whether tenants are named at all."""
    names: Mapping[UUID, str] = figures.slugs if naming else {}
    yield _build()
    yield from _gates(figures, names)
    yield from _outcomes(figures, names)
    yield from _interrupts(figures)
    yield from _runs(figures, names)
    yield from _calls(figures)
    yield from _sweep(figures)
    yield from _outbox(figures)
    yield from _drains(figures)
    yield _gauge("abeyance_metrics_read_seconds", "How long reading these took", figures.seconds)


def _build() -> Metric:
    info = InfoMetricFamily("abeyance_build", "What is running")
    versions = {"python": platform.python_version(), "django": django.get_version()}
    info.add_metric([], {"version": version("abeyance-server"), **versions})
    return info


def _gates(figures: Figures, names: Mapping[UUID, str]) -> Iterator[Metric]:
    pending = [row for row in figures.held if row.kind == "decision"]
    yield _of_tenants(
        "abeyance_gates_pending",
        f"Gates that people have to decide{STOPS}",
        _summed((row.tenant, row.count) for row in pending),
        names,
        sum,
    )
    yield _of_tenants(
        "abeyance_gate_oldest_pending_seconds",
        "For how long the oldest undecided gate has waited",
        _largest((row.tenant, row.oldest) for row in pending),
        names,
        max,
    )
    yield _gauge(
        "abeyance_gates_near_expiry",
        f"Undecided gates that expire within {NEAR_EXPIRY}",
        sum(row.near_expiry for row in pending),
    )
    yield _gauge(
        "abeyance_gates_due",
        f"Gates that a worker is to look at now: a preview, a new look for deciders{STOPS}",
        sum(row.count for row in figures.gates_due.values()),
    )


def _outcomes(figures: Figures, names: Mapping[UUID, str]) -> Iterator[Metric]:
    unknown = [row for row in figures.held if row.reason == "outcome_unknown"]
    yield _of_tenants(
        "abeyance_outcomes_unknown",
        f"Calls of which nobody knows yet whether they were performed{STOPS}",
        _summed((row.tenant, row.count) for row in unknown),
        names,
        sum,
    )
    yield _of_tenants(
        "abeyance_outcome_oldest_unknown_seconds",
        "For how long the oldest unknown outcome has been unknown",
        _largest((row.tenant, row.oldest) for row in unknown),
        names,
        max,
    )
    yield _gauge(
        "abeyance_runs_set_aside",
        "Unknown outcomes that no worker looks into again, since so many of them died at it",
        sum(row.set_aside for row in unknown),
    )


def _interrupts(figures: Figures) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "abeyance_interrupts_open", f"Open interrupts by their reason{STOPS}", labels=["reason"]
    )
    for reason, count in sorted(_by_reason(figures.held).items()):
        family.add_metric([reason], count)
    yield family


def _by_reason(held: Iterable[Held]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in held:
        counts[row.reason] += row.count
    return counts


def _runs(figures: Figures, names: Mapping[UUID, str]) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "abeyance_runs",
        f"Runs that have not ended, by status and suspension{STOPS} a status",
        labels=["status", "suspension"],
    )
    for status, suspension in RUNS:
        count = figures.runs.get((status, suspension), 0)
        family.add_metric([status, suspension or ""], count)
    yield family
    yield _of_tenants(
        "abeyance_runs_due",
        f"Runs that the sweep is to look at now{STOPS}",
        {tenant: row.count for tenant, row in figures.runs_due.items()},
        names,
        sum,
    )
    yield _of_tenants(
        "abeyance_runs_damaged",
        f"Runs that are not what their journal says, so that nothing of them starts{STOPS}",
        {tenant: row.count for tenant, row in figures.damaged.items()},
        names,
        sum,
    )
    yield _of_tenants(
        "abeyance_run_oldest_damaged_seconds",
        "For how long the oldest damaged run has been known to be",
        {tenant: row.oldest for tenant, row in figures.damaged.items()},
        names,
        max,
    )
    yield _gauge(
        "abeyance_runs_unworkable",
        "Runs that the sweep's last round could not look at, as their rows are damaged",
        figures.sweep.unworkable if figures.sweep else 0,
    )


def _calls(figures: Figures) -> Iterator[Metric]:
    count = GaugeMetricFamily(
        "abeyance_calls_in_flight", f"Calls that have begun{STOPS}", labels=["executor"]
    )
    oldest = GaugeMetricFamily(
        "abeyance_call_oldest_in_flight_seconds",
        "How long ago the oldest call in flight began",
        labels=["executor"],
    )
    for executor in EXECUTORS:
        calls = figures.calls.get(executor, Waiting(0, 0.0))
        count.add_metric([executor], calls.count)
        oldest.add_metric([executor], calls.oldest)
    yield count
    yield oldest
    takeovers = CounterMetricFamily(
        "abeyance_takeovers",
        "Calls whose lease lapsed without a receipt and that the service took over",
        labels=["executor"],
    )
    for executor in EXECUTORS:
        takeovers.add_metric([executor], figures.tallies.get(f"takeovers_{executor}", 0))
    yield takeovers


def _sweep(figures: Figures) -> Iterator[Metric]:
    yield _gauge(
        "abeyance_sweep_lag_seconds",
        "How long ago the run was due that has been due for longest",
        max((row.oldest for row in figures.runs_due.values()), default=0.0),
    )
    yield _gauge(
        "abeyance_sweep_ended_timestamp_seconds",
        "When a round of the sweep ended last; 0 where none has",
        figures.sweep.ended_at if figures.sweep else 0.0,
    )
    yield _gauge(
        "abeyance_sweep_round_seconds",
        "How long the sweep's last round took",
        figures.sweep.seconds if figures.sweep else 0.0,
    )
    yield CounterMetricFamily(
        "abeyance_sweep_rounds",
        "Rounds of the sweep",
        value=figures.sweep.rounds if figures.sweep else 0,
    )
    yield CounterMetricFamily(
        "abeyance_wakes_lost",
        "Runs that the sweep woke again, as no worker came within a wake's grace",
        value=figures.tallies.get("wakes_lost", 0),
    )


def _outbox(figures: Figures) -> Iterator[Metric]:
    yield _gauge(
        "abeyance_outbox_messages", f"Messages that are not sent yet{STOPS}", figures.outbox.count
    )
    yield _gauge(
        "abeyance_outbox_oldest_seconds",
        "For how long the oldest of them has waited",
        figures.outbox.oldest,
    )


def _drains(figures: Figures) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "abeyance_drain_began_timestamp_seconds",
        "Since when the workers of a host, or of every host (*), begin nothing",
        labels=["host"],
    )
    for host, since in sorted(figures.drains.items()):
        family.add_metric([host], since)
    yield family


# One gauge of all, or of the tenants with the worst figure and of everybody else


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _of_tenants(
    name: str,
    text: str,
    values: Mapping[UUID, float],
    names: Mapping[UUID, str],
    together: Callable[[Iterable[float]], float],
) -> Metric:
    family = GaugeMetricFamily(name, text, labels=["tenant"])
    worst = sorted((one for one in values if one in names), key=lambda one: -values[one])[:TENANTS]
    for one in worst:
        family.add_metric([names[one]], values[one])
    family.add_metric([""], together([0.0, *(values[one] for one in values.keys() - {*worst})]))
    return family


def _summed(pairs: Iterable[tuple[UUID, int]]) -> Mapping[UUID, float]:
    values: dict[UUID, float] = defaultdict(float)
    for tenant, value in pairs:
        values[tenant] += value
    return values


def _largest(pairs: Iterable[tuple[UUID, float]]) -> Mapping[UUID, float]:
    values: dict[UUID, float] = defaultdict(float)
    for tenant, value in pairs:
        values[tenant] = max(values[tenant], value)
    return values
