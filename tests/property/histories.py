"""Runs many histories from a seed, and holds them to what they have to come to."""

from __future__ import annotations

import os
from typing import Any

import psycopg
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.actions import Totals
from tests.property.machine import ACTIONS, AnyHistory

PARTS, EXAMPLES, STEPS = 4, 52, 32
FIRST_SEED = int(os.environ.get("ABEYANCE_TEST_SEED", "20"))
# What has happened in each part, however the seed falls.
HAPPENED = (
    "crashed",
    "refused",
    "attempt.started",
    "step.unknown",
    "gate.decided",
    "run.suspended",
    "run.resumed",
    "run.cancelled",
)


def run_histories(owner: psycopg.Connection[Any], part: int) -> Totals:
    """Run EXAMPLES histories of STEPS steps each, the same ones for the same seed.

    ABEYANCE_TEST_SEED chooses others; a failure prints the steps that led to it.
    """
    totals = Totals()
    run_state_machine_as_test(
        seed(FIRST_SEED * 100 + part)(lambda: AnyHistory(owner, totals)),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        ),
        _min_steps=STEPS - 1,  # else it now and then begins with short ones
    )
    return totals


def hold_totals(totals: Totals) -> None:
    """No history was cut short, and none of what matters was left out."""
    assert sum(steps >= STEPS for steps in totals.steps) >= EXAMPLES
    assert PARTS * EXAMPLES >= 200
    missing = [name for name in HAPPENED if not totals.counted[name]]
    assert not missing, missing
    done = sum(totals.counted[f"did {one.name}"] > 0 for one in ACTIONS)
    assert done > 0.8 * len(ACTIONS), totals.counted
