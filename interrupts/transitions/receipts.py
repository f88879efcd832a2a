"""Receipts: what was seen of a try, written once and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Self

from config import jsontext
from interrupts import content
from interrupts.effects import Observed
from interrupts.models import Attempt, Outcome, Receipt, Source, Step, ToolVersion
from interrupts.work import Work

FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 1.0, 30.0
LONGEST_RETRY_AFTER_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of an attempt, and by whom. ``result`` is canonical JSON."""

    outcome: Outcome
    source: Source
    by: str
    result: bytes | None = None
    external_id: str | None = None
    cost: Decimal | None = None
    error: str | None = None
    evidence: str | None = None
    retry_after: float | None = None  # seconds
    sensitive: bool = False
    on_failure: str = "tell"
    is_judged: bool = False  # a success of it awaits a verdict
    for_good: bool = False  # not performed, and not to be sent again

    @classmethod
    def by_worker(cls, observed: Observed, worker: str, version: ToolVersion) -> Self:
        """What a worker saw of a call of this version of a tool."""
        outcome = Outcome(observed.outcome.value)
        succeeded = outcome == Outcome.SUCCEEDED
        return cls(
            outcome=outcome,
            source=Source.EXECUTOR,
            by=f"worker:{worker}",
            result=jsontext.canonical(observed.result) if succeeded else None,
            external_id=observed.external_id,
            cost=cost_told(observed.cost, outcome, version),
            error=observed.error,
            retry_after=observed.retry_after,
            sensitive=bool(version.sensitive),
            on_failure=version.on_failure,
            is_judged=version.verifier is not None,
        )


def cost_told(cost: Decimal | None, outcome: Outcome, version: ToolVersion) -> Decimal | None:
    """Return what a call cost; a success of which nobody says is taken at what its tool declares."""
    if cost is None and outcome == Outcome.SUCCEEDED and version.cost:
        return Decimal(version.cost)
    return cost


def write_receipt(
    work: Work, step: Step, attempt: Attempt | None, seen: Seen, *, compensation: bool = False
) -> Receipt:
    result = None
    if seen.result is not None:
        result = content.put(seen.result, sensitive=seen.sensitive)
    receipt = Receipt.objects.create(
        run=work.run,
        step=step,
        attempt=attempt.pk if attempt else None,
        compensation=compensation,
        source=seen.source,
        outcome=seen.outcome,
        result=result,
        external_id=seen.external_id,
        cost=seen.cost,
        error=seen.error,
        evidence=seen.evidence,
        by=seen.by,
        observed_at=work.now,
    )
    work.note(
        "receipt.recorded",
        receipt=receipt.pk,
        step=step.pk,
        attempt=receipt.attempt,
        source=seen.source,
        outcome=seen.outcome,
        result=result.hex() if result else None,
        external_id=seen.external_id,
        by=None if seen.by == str(work.actor) else seen.by,
        cost=None if seen.cost is None else str(seen.cost),
        error=work.imprint_of(seen.error),
        evidence=work.imprint_of(seen.evidence),
        compensation=compensation,
    )
    return receipt


def backoff(attempts: int, retry_after: float | None) -> float:
    """Seconds till the next try: 1 doubling to 30, or what the far end asked for, bounded."""
    usual = min(
        LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * (1 << min(max(attempts - 1, 0), 10))
    )
    return min(max(usual, retry_after or 0.0), LONGEST_RETRY_AFTER_SECONDS)
