"""Verdicts on a run's receipts, as its journal tells of them, and their rows held against that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from interrupts.models import Run, Verdict, VerdictStatus
from interrupts.verification.chains import Said
from interrupts.verification.faults import Fault, compare, unmatched


@dataclass(slots=True)
class VerdictTold:
    """One verdict, as told: of which receipt, what was last said of it, and whether it holds."""

    awaited: Said
    holds: bool
    last: Said
    recorded: Said | None = None


@dataclass(slots=True)
class VerdictsTold:
    """A run's verdicts, by their step."""

    of: dict[str, VerdictTold] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[int, int]:
        """How many are awaited, and how many hold the run."""
        awaited = sum(one.recorded is None for one in self.of.values())
        return awaited, sum(one.holds for one in self.of.values())

    @property
    def hold(self) -> bool:
        return any(one.holds for one in self.of.values())

    def take(self, said: Said) -> None:
        """Take what an entry says of a verdict; of one that was never awaited it says nothing."""
        if said.kind == "verdict.awaited":
            self.of[said.data["step"]] = VerdictTold(said, said.data["holds"], said)
            return
        verdict = self.of.get(said.data["step"])
        if verdict is None:
            return
        verdict.last = said
        if said.kind == "verdict.recorded":
            verdict.recorded, verdict.holds = said, said.data["holds"]

    def release(self, step: str) -> None:
        """Once it is recorded a verdict holds no more where it was answered, or its effect undone."""
        verdict = self.of.get(step)
        if verdict is not None and verdict.recorded is not None:
            verdict.holds = False


def faults(run: Run, told: VerdictsTold) -> Iterator[Fault]:
    """Yield each verdict's row that is not what the journal says; none are read where none are told."""
    if not told.of and not (run.verdicts_awaited or run.verdicts_holding):
        return
    rows = {str(row.step_id): row for row in Verdict.objects.filter(run=run)}
    yield from unmatched(run.pk, "verdict of step", set(rows), set(told.of))
    for step in rows.keys() & told.of.keys():
        yield from _verdict(run, rows[step], told.of[step])


def _verdict(run: Run, row: Verdict, told: VerdictTold) -> Iterator[Fault]:
    awaited, last, recorded = told.awaited, told.last, told.recorded
    stored = {
        "verdict": str(row.pk),
        "receipt": str(row.receipt),
        "awaited_since": row.awaited_since,
        "status": row.status,
        "holds": row.holds,
        "words": last.imprint_of(row.words),
        "error": last.imprint_of(row.error),
        "recorded_at": row.recorded_at,
    }
    expected = {
        "verdict": awaited.data["verdict"],
        "receipt": awaited.data["receipt"],
        "awaited_since": awaited.at,
        "status": recorded.data["status"] if recorded else VerdictStatus.AWAITED,
        "holds": told.holds,
        "words": last.data.get("words"),
        "error": last.data.get("error"),
        "recorded_at": recorded.at if recorded else None,
    }
    yield from compare(run.pk, f"verdict {row.pk}", stored, expected)
