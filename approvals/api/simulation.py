"""What the API answers of a policy that was tried on what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from approvals.api import rendering
from approvals.api.rendering import Shown
from approvals.api.shapes import ASKED_STAGES, VERDICT
from approvals.policy.differing import WHAT, Difference
from approvals.services.simulation import Change, Simulated
from interrupts.api.bodies import one_of
from interrupts.api.shapes import FLAG, ID_OR_NONE, INTEGER, TEXT, listed, shown
from tenants.api.body import ID
from tenants.api.checks import Schema
from tenants.api.openapi import component

_DIFFERENCES: Final[Schema] = {
    **listed(shown(what=one_of(*WHAT), words=TEXT, looser=FLAG)),
    "description": "What it would ask of people otherwise, the looser first.",
}
_CHANGE: Final[dict[str, Schema]] = {
    "decided": VERDICT,
    "simulated": VERDICT,
    "rule": TEXT,
    "looser": {
        **FLAG,
        "description": "It would let through what was held, or ask less of people.",
    },
}
SIMULATED: Final = component(
    "PolicySimulation",
    shown(
        summary=shown(
            steps=INTEGER,
            changed=INTEGER,
            unjudged={**INTEGER, "description": "Steps of which policy was never asked."},
            erased={**INTEGER, "description": "Steps whose arguments are gone."},
            by_rule={
                "type": "object",
                "additionalProperties": shown(steps=INTEGER, changed=INTEGER),
            },
            changes=listed(
                shown(**_CHANGE, differences=_DIFFERENCES, steps=INTEGER, examples=listed(ID))
            ),
            completions={
                **shown(
                    runs=INTEGER,
                    changed=INTEGER,
                    changes=listed(shown(**_CHANGE, runs=INTEGER, examples=listed(ID))),
                ),
                "description": "Of runs whose newest step was looked at, where completing is gated.",
            },
        ),
        results=listed(
            shown(
                step=ID,
                tool=TEXT,
                decided=VERDICT,
                simulated=VERDICT,
                rule=TEXT,
                stages=ASKED_STAGES,
                differences=_DIFFERENCES,
                changed={**FLAG, "description": "Another verdict, or asked otherwise."},
            )
        ),
        next=ID_OR_NONE,
    ),
)


def simulated(made: Simulated) -> Shown:
    """Show what a draft would have said of recorded steps, and of runs that completed."""
    return {
        "summary": {
            "steps": len(made.tried),
            "changed": len(made.changed),
            "unjudged": made.unjudged,
            "erased": made.erased,
            "by_rule": {
                rule: {"steps": steps, "changed": changed}
                for rule, (steps, changed) in made.by_rule().items()
            },
            "changes": [
                {
                    **_change(one),
                    "differences": _differences(one.differences),
                    "steps": one.number,
                    "examples": [each.step.pk for each in one.examples],
                }
                for one in made.changes()
            ],
            "completions": _completions(made),
        },
        "results": [
            {
                "step": one.step.pk,
                "tool": one.step.tool_name,
                "decided": one.decided,
                "simulated": one.verdict.verdict,
                "rule": one.verdict.rule,
                "stages": rendering.stages(one.verdict),
                "differences": _differences(one.differences),
                "changed": one.changed,
            }
            for one in made.tried
        ],
        "next": made.after,
    }


def _change(one: Change[Any]) -> Shown:
    return {
        "decided": one.decided,
        "simulated": one.simulated,
        "rule": one.rule,
        "looser": one.looser,
    }


def _differences(found: Sequence[Difference]) -> list[Shown]:
    return [one._asdict() for one in found]


def _completions(made: Simulated) -> Shown:
    return {
        "runs": len(made.completions),
        "changed": len(made.changed_completions),
        "changes": [
            {
                **_change(one),
                "runs": one.number,
                "examples": [each.run.pk for each in one.examples],
            }
            for one in made.changes_of_completions()
        ],
    }
