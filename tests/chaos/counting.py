"""Counting: what the far end did, against what the service says that it did."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.chaos.farend import WAYS, Effect
from tests.chaos.killing import Watch
from tests.chaos.state import Chaos

DONE = ("succeeded", "compensating", "compensated")
VERIFIED = re.compile(r"^\d+ tenants, \d+ runs, (\d+) faults$", re.MULTILINE)


class Stored(NamedTuple):
    """A step as the service's tables have it."""

    effect: Effect
    status: str
    kind: str  # read, idempotent, …
    attempts: int


def count(chaos: Chaos, watch: Watch) -> dict[str, Any]:
    steps = stored(chaos)
    lost = [*_missing(chaos), *_contradictions(chaos, steps)]
    duplicates = [*_duplicates(chaos)]
    chaos.problems += [*lost, *duplicates]
    taken_over = _takeovers(chaos, watch)
    return {
        "seed": chaos.seed,
        "runs": len(chaos.taken.runs),
        "effects": chaos.ledger.effects,
        "kills": chaos.kills.total(),
        "duplicates": len(duplicates),
        "lost": len(lost),
        "stuck": len(_stuck(chaos)),
        "unverified": _unverified(chaos),
        **taken_over,
        "kills_by_kind": dict(sorted(chaos.kills.items())),
        "kills_by_far_end": chaos.ledger.kills,
        "did": dict(sorted(chaos.did.items())),
        "ways_unused": [*_unused(chaos.ledger.ways)],
    }


def stored(chaos: Chaos) -> list[Stored]:
    with chaos.service.connect() as connection:
        rows = connection.execute(
            "SELECT split_part(tool_name, '.', 2), id::text, status, effect, attempts"
            " FROM interrupts_step"
        ).fetchall()
    return [Stored(Effect(name, key), *rest) for name, key, *rest in rows]


# What was lost


def _missing(chaos: Chaos) -> Iterator[str]:
    """What was taken with a 2xx and is not there."""
    tables = {
        "run": ("interrupts_run", "id", chaos.taken.runs),
        "step": ("interrupts_step", "id", chaos.taken.steps),
        "decision of gate": ("approvals_decision", "gate_id", chaos.taken.decisions),
    }
    with chaos.service.connect() as connection:
        for what, (table, column, taken) in tables.items():
            rows = connection.execute(f"SELECT {column}::text FROM {table}".encode()).fetchall()
            for missing in sorted(taken - {pk for (pk,) in rows}):
                yield f"{what} {missing} was taken and is not there"


def _contradictions(chaos: Chaos, steps: Sequence[Stored]) -> Iterator[str]:
    """Where the tables and the far end's ledger do not say the same of an effect."""
    for step in steps:
        if step.kind == "read":
            continue
        happened = chaos.ledger.happened(step.effect)
        # A person's answer in place of a call succeeds without one.
        said = step.status in DONE and step.attempts > 0
        if happened != said:
            yield f"{step.effect} is {step.status}, the far end says {happened}"
        undone = bool(chaos.ledger.undone.get(step.effect))
        if undone != (step.status == "compensated"):
            yield f"{step.effect} is {step.status}, the far end undid it: {undone}"
    for effect in chaos.ledger.performed.keys() - {step.effect for step in steps}:
        yield f"{effect} was performed for no step"


# What was done twice


def _duplicates(chaos: Chaos) -> Iterator[str]:
    ledger = chaos.ledger
    for effect, times in ledger.performed.items():
        if effect.name != "look" and times > 1:
            yield f"{effect} was performed {times} times"
    for effect, keys in ledger.undone.items():
        if len(keys) > 1:
            yield f"{effect} was undone {len(keys)} times"
    # One call of an agent may be done again, by a fork, where it was undone.
    calls = Counter(whose for effect, whose in ledger.calls.items() if effect.name != "look")
    undone = Counter(ledger.calls[effect] for effect in ledger.undone)
    for whose, times in calls.items():
        if times - undone[whose] > 1:
            yield f"the call {whose} was performed by {times} steps"


# What did not end, and what does not verify


def _stuck(chaos: Chaos) -> list[str]:
    with chaos.service.connect() as connection:
        rows = connection.execute(
            "SELECT id::text, status, suspension FROM interrupts_run WHERE ended_at IS NULL"
        ).fetchall()
    chaos.problems += [f"run {run} has not ended: {status} {why}" for run, status, why in rows]
    return [run for run, _, _ in rows]


def _unverified(chaos: Chaos) -> int:
    done = chaos.service.manage("verify")
    told = VERIFIED.search(done.stdout)
    faults = int(told[1]) if told else 1
    if faults or done.returncode:
        chaos.problem(f"verify: {done.stdout[-3000:]} {done.stderr[-3000:]}")
    return faults


# How long it took another worker to take over


def _takeovers(chaos: Chaos, watch: Watch) -> dict[str, Any]:
    """Seconds from the end of a lease until its attempt was taken over.

    Apart: those within which the database was away or no worker lived.
    """
    with chaos.service.connect() as connection:
        rows = connection.execute(
            "SELECT extract(epoch FROM lease_expires_at)::float,"
            " extract(epoch FROM lapsed_at)::float FROM interrupts_attempt"
            " WHERE lapsed_at >= lease_expires_at"
        ).fetchall()
    lived = [until - since for since, until in rows if watch.was_up(since, until)]
    others = [until - since for since, until in rows if not watch.was_up(since, until)]
    return {
        "takeover_p99_s": nearest_rank(lived, 0.99),
        "takeovers": len(lived),
        "takeovers_while_down": len(others),
        "takeover_while_down_p99_s": nearest_rank(others, 0.99),
    }


def nearest_rank(values: Sequence[float], share: float) -> float | None:
    """The least of the values that this share of them does not exceed."""
    if not values:
        return None
    return round(sorted(values)[math.ceil(len(values) * share) - 1], 3)


def _unused(ways: Counter[str]) -> Iterator[str]:
    for of, each in WAYS.items():
        yield from (f"{of} {way}" for way in each if not ways[f"{of} {way}"])
