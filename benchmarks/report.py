"""What is measured against what, the table, and the file of results."""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import spread

RESULTS = Path(__file__).parent / "results" / "latest.json"

# Each ratio is taken inside one round, where both sides met the same disk and neighbours.
RATIOS = {
    "pure_step_vs_langgraph_sync": ("pure_step.steps_per_s", "langgraph_sync.steps_per_s"),
    "pure_step_vs_dbos": ("pure_step.steps_per_s", "dbos.steps_per_s"),
    "pure_step_alone_vs_langgraph_sync": (
        "pure_step_alone.steps_per_s",
        "langgraph_sync.steps_per_s",
    ),
    "effect_step_vs_langgraph_sync": ("effect_step.steps_per_s", "langgraph_sync.steps_per_s"),
    "effect_step_vs_dbos": ("effect_step.steps_per_s", "dbos.steps_per_s"),
    "propose_vs_bare_insert": ("propose.requests_per_s", "bare_insert.requests_per_s"),
    "decide_vs_bare_insert": ("decide.requests_per_s", "bare_insert.requests_per_s"),
    "approve_to_effect_vs_dbos_p50": ("approve_to_effect.p50_ms", "dbos.approve_p50_ms"),
    "approve_to_effect_vs_dbos_p99": ("approve_to_effect.p99_ms", "dbos.approve_p99_ms"),
    "bytes_per_step_slope": ("growth.bytes_per_step_1000", "growth.bytes_per_step_100"),
    "bytes_per_step_vs_dbos": ("growth.bytes_per_step_1000", "dbos_growth.bytes_per_step_1000"),
    "bytes_per_step_vs_langgraph_delta": (
        "growth.bytes_per_step_1000",
        "langgraph_delta.bytes_per_step_1000",
    ),
    "load_to_resume_1000_over_10": ("load_to_resume.ms_1000", "load_to_resume.ms_10"),
    "policy_200_vs_1": ("policy_200.ms", "policy_1.ms"),
    "policy_200_vs_1_cpu": ("policy_200.client_cpu_ms", "policy_1.client_cpu_ms"),
    "policy_200_vs_1_statements": ("policy_200.statements", "policy_1.statements"),
    "auto_approved_vs_ungated_step": ("auto_approved_step.database_ms", "ungated_step.database_ms"),
    "auto_approved_vs_ungated_proposal": (
        "auto_approved_step_proposal.database_ms",
        "ungated_step_proposal.database_ms",
    ),
    "auto_approved_vs_ungated_step_cpu": (
        "auto_approved_step.server_cpu_ms",
        "ungated_step.server_cpu_ms",
    ),
    "auto_approved_vs_ungated_commits": (
        "auto_approved_step.written_commits",
        "ungated_step.written_commits",
    ),
}
# (what is asked for, what is hoped for); of a ratio of latencies the smaller is the better.
GOALS = {
    "pure_step_vs_langgraph_sync": "≥ 2.0",
    "pure_step_vs_dbos": "≥ 4.0",
    "effect_step_vs_langgraph_sync": "≥ 1.25",
    "effect_step_vs_dbos": "≥ 2.2",
    "decide_vs_bare_insert": "≥ 0.5, goal 0.7",
    "approve_to_effect_vs_dbos_p50": "≤ 1.0",
    "approve_to_effect_vs_dbos_p99": "≤ 1.0",
    "bytes_per_step_slope": "≤ 1.05",
    "bytes_per_step_vs_dbos": "goal ≤ 1.25",
    "bytes_per_step_vs_langgraph_delta": "goal ≤ 0.2",
    "load_to_resume_1000_over_10": "≤ 1.2",
    "policy_200_vs_1": "≤ 1.15",
    "policy_200_vs_1_statements": "1",
    "auto_approved_vs_ungated_step": "≤ 1.25",
    "auto_approved_vs_ungated_commits": "1",
    "effect_step.commits": "1",
    "deciding.p99_ms": "< 5",
}

Figures = Mapping[str, float]


def with_ratios(figures: Figures) -> dict[str, float]:
    """Return the figures of one round, and the ratios whose both sides are among them."""
    ratios = {
        name: figures[ours] / figures[theirs]
        for name, (ours, theirs) in RATIOS.items()
        if ours in figures and theirs in figures
    }
    return {**ratios, **figures}


def flatten(prefix: str, figures: Mapping[str, Any]) -> dict[str, float]:
    """Return a part's figures under its name; counters stand beside them."""
    flat = {f"{prefix}.{name}": value for name, value in figures.items() if name != "counters"}
    counters = figures.get("counters", {})
    return flat | {f"{prefix}.{name}": value for name, value in counters.items()}


def summarise(rounds: Sequence[Figures]) -> dict[str, dict[str, float]]:
    """Return median, least and greatest of every figure over the rounds."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    for figures in rounds:
        for name, value in figures.items():
            values[name].append(value)
    return {name: spread(seen) for name, seen in values.items()}


def write(rounds: int, metrics: Mapping[str, Mapping[str, float]], path: Path = RESULTS) -> None:
    """Write the results where others read them."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"rounds": rounds, "metrics": metrics}, indent=1) + "\n")


def table(metrics: Mapping[str, Mapping[str, float]]) -> str:
    """Return the table that people read: ratios first, then what they are made of."""
    rows: list[tuple[str, ...]] = [("figure", "median", "min", "max", "asked")]
    for name in [*(name for name in RATIOS if name in metrics), *_others(metrics)]:
        spread_of = (f"{metrics[name][part]:.4g}" for part in ("median", "min", "max"))
        rows.append((name, *spread_of, GOALS.get(name, "")))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def _others(metrics: Iterable[str]) -> list[str]:
    return sorted(name for name in metrics if name not in RATIOS)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *numbers = (
        cell.ljust(width) if place in (0, 4) else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([first, *numbers]).rstrip()


def say(text: str) -> None:
    """Tell whoever watches what is being done."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
