"""Write docs/state-machine.md from the tables of moves: ``python -m docs.generate``."""

import os
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from approvals.models import GATE_MOVES, GateState, gates  # noqa: E402 - Django must be set up first
from interrupts.models import (  # noqa: E402
    OPEN_STEPS,
    RUN_MOVES,
    STEP_MOVES,
    VERDICT_MOVES,
    Reason,
    Resolution,
    ResponseKind,
    RunStatus,
    StepStatus,
    Suspension,
    VerdictStatus,
    states,
)

PLACE = Path(__file__).with_name("state-machine.md")
HEAD = """\
# States and moves

Made by `python -m docs.generate` from `interrupts/models/states.py` and
`approvals/models/gates.py`; a test fails where this page is not what it makes. Each move is made by
one function of the app's `transitions`, and the database refuses every other: the triggers
`interrupts_run_status_moves`, `interrupts_step_status_moves`, `interrupts_verdict_status_moves` and
`approvals_gate_state_moves` hold the same tables. What the words mean stands in the [glossary](glossary.md).
"""
FINAL = "nothing: it is final"
State = TypeVar("State", bound=StrEnum)


def page() -> str:
    """Return the whole page."""
    return "\n".join(
        [
            HEAD,
            "## Run\n",
            drawing(states.__doc__, "Run:"),
            table(RunStatus, RUN_MOVES),
            "A run that is `suspended` or `cancelling` says how, by the first of these that holds:",
            f"{listed(Suspension)}.\n",
            "## Step\n",
            drawing(states.__doc__, "Step:"),
            table(StepStatus, STEP_MOVES),
            f"Not settled: {listed(state for state in StepStatus if state in OPEN_STEPS)}.",
            "A receipt is a fact: whatever a step was taken for, success reported makes it `succeeded`.\n",
            "## Verdict\n",
            drawing(states.__doc__, "Verdict, on the receipt of a step whose tool has a verifier:"),
            table(VerdictStatus, VERDICT_MOVES),
            "## Interrupt\n",
            "`open` → `resolved`, for good.\n",
            f"- **Reasons:** {listed(Reason)}.",
            f"- **What is needed:** {listed(ResponseKind)}.",
            f"- **Resolutions:** {listed(Resolution)}.\n",
            "## Gate\n",
            drawing(gates.__doc__),
            table(GateState, GATE_MOVES),
        ]
    )


def drawing(docstring: str | None, below: str | None = None) -> str:
    """Return the drawing of a docstring, the one ``below`` a line where there are several."""
    lines = (docstring or "").splitlines()
    rest = iter(lines[lines.index(below) + 1 :] if below else lines[1:])
    drawn = list(_indented(rest))
    return f"```text\n{textwrap.dedent(chr(10).join(drawn)).strip(chr(10))}\n```\n"


def _indented(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line and not line.startswith(" "):
            return
        yield line


def table(states_of: Iterable[State], moves: Mapping[State, Collection[State]]) -> str:
    """Return the moves as a table in Markdown, states in the order in which they are declared."""
    every = list(states_of)
    rows = [
        f"| `{state}` | {listed(end for end in every if end in moves[state]) or FINAL} |"
        for state in every
    ]
    return "\n".join(["| from | to |", "|---|---|", *rows]) + "\n"


def listed(values: Iterable[StrEnum]) -> str:
    """Return values as code, in their order."""
    return ", ".join(f"`{value}`" for value in values)


if __name__ == "__main__":
    PLACE.write_text(page())
