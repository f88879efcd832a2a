"""What a tenant has come to, without ids and times: to be compared with another tenant's."""

from __future__ import annotations

from collections import Counter
from typing import Any

from approvals.models import PolicyVersion, View
from interrupts import verification
from interrupts.models import Checkpoint, Guidance, Question, Run
from tenants.models import JournalEntry
from tests.crashes.scene import Scene
from tests.property.facts import OPEN_GATES, Facts

RUN = ("status", "suspension", "epoch", "open_interrupts", "next_step", "session", "usage_steps")
STEP = ("tool_name", "status", "outcome", "held_by", "authorized_by", "fence", "undo_wanted")
Picture = dict[str, Any]


def picture(scene: Scene, facts: Facts) -> Picture:
    """Everything that was written, row by row, in the order in which it was."""
    kinds = JournalEntry.objects.order_by("stream", "seq").values_list("stream", "kind")
    came_to = outcome(scene, facts)
    del came_to[
        "performed"
    ]  # of a call that is made between two commits the database knows nothing
    return {
        **came_to,
        "runs": _rows(facts.runs, RUN),
        "steps": _rows(facts.steps, STEP),
        "attempts": _rows(facts.attempts, ("fence", "outcome", "compensation")),
        "receipts": _rows(facts.receipts, ("source", "outcome", "compensation")),
        "interrupts": _rows(facts.interrupts, ("reason", "status", "resolution")),
        "assigned": len(facts.assignments),
        "authority": facts.tenant["authority_version"],
        "counts": [model.objects.count() for model in (View, Checkpoint, PolicyVersion)],
        "told": [one.acknowledged_at is None for one in Guidance.objects.all()],
        "extended": sum(kind == "gate.extended" for _, kind in kinds),
        "questions": [one.answer for one in Question.objects.all()],
        "kinds": [kind for _, kind in kinds],
    }


def outcome(scene: Scene, facts: Facts) -> Picture:
    """What it has come to, by whatever way."""
    succeeded = Counter(
        facts.steps[one["step_id"]]["tool_name"]
        for one in facts.receipts.values()
        if one["outcome"] == "succeeded" and not one["compensation"]
    )
    unknown = [one for one in facts.interrupts.values() if one["reason"] != "outcome_unknown"]
    return {
        "run": _rows(facts.runs, ("status", "open_interrupts", "next_step")),
        "step": _rows(facts.steps, ("tool_name", "status", "held_by", "authorized_by")),
        "succeeded": succeeded,
        "asked": [(one["reason"], one["status"], one["resolution"]) for one in unknown],
        "gates": _rows(facts.gates, ("state", "quorum")),
        "decisions": _rows(facts.decisions, ("verdict", "counts", "edits")),
        "freezes": len(facts.freezes),
        "performed": scene.far.tools,
        "pending": sum(one["state"] in OPEN_GATES for one in facts.gates.values()),
    }


def _rows(rows: dict[str, Any], columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in rows.values()]


def verify() -> None:
    faults = list(verification.of_tenant())
    for run in Run.objects.all():
        faults += verification.of_run(run)
    assert not faults, faults
