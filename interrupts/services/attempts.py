"""Heartbeats, receipts and findings: facts, taken under any epoch."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from config import jsontext
from config.errors import Forbidden
from config.keys import keyed_digest
from interrupts import catalogue
from interrupts.errors import NotUnknown, ReceiptConflict, StaleClaim
from interrupts.models import Attempt, Outcome, Receipt, Source, Step, StepStatus
from interrupts.services.acting import own_run
from interrupts.transitions import attempts
from interrupts.transitions.receipts import Seen, cost_told
from interrupts.work import Work, working
from tenants.journal import Actor
from tenants.principal import Principal
from tenants.scope import current_tenant_id


def heartbeat(principal: Principal, attempt_id: UUID, *, fence: int) -> Attempt:
    """Extend the lease of a live attempt, also while its run is suspended or cancelling.

    Raises StaleClaim once it is settled, lapsed or superseded; NotYourRun, and Forbidden for a call
    that the service makes.
    """
    run_id = Attempt.objects.values_list("run_id", flat=True).get(pk=attempt_id)
    with working(run_id, principal.actor) as work:
        own_run(principal, work.run)
        work.run.last_seen_at = work.now
        attempt = Attempt.objects.select_related("step").get(pk=attempt_id)
        _own_claim(principal, attempt)
        over = attempt.lease_expires_at is None or attempt.lease_expires_at <= work.now
        if attempt.settled_at or attempt.lapsed_at or over or attempt.fence != fence:
            raise StaleClaim
        if attempt.fence != attempt.step.fence:
            raise StaleClaim
        attempt.lease_expires_at = work.now + timedelta(seconds=attempt.lease_seconds or 0)
        attempt.save(update_fields=["lease_expires_at"])
        work.due(attempt.lease_expires_at)
        work.state_unchanged()
    return attempt


def report(
    principal: Principal,
    attempt_id: UUID,
    *,
    fence: int,
    outcome: str,
    result: Any = None,
    external_id: str | None = None,
    cost: Decimal | None = None,
    error: str | None = None,
) -> tuple[Attempt, bool]:
    """Take the agent's receipt; the same again is the first one (False: nothing is new).

    Raises ReceiptConflict where the attempt was settled otherwise (which the journal keeps),
    StaleClaim for another fence than the attempt's, NotYourRun, Forbidden for a call of the
    service.
    """
    run_id = Attempt.objects.values_list("run_id", flat=True).get(pk=attempt_id)
    conflict = False
    with working(run_id, principal.actor) as work:
        own_run(principal, work.run)
        work.run.last_seen_at = work.now
        attempt = Attempt.objects.get(pk=attempt_id)
        _own_claim(principal, attempt)
        if attempt.fence != fence:
            raise StaleClaim
        step = Step.objects.get(pk=attempt.step_id)
        seen = Seen(
            outcome=Outcome(outcome),
            source=Source.AGENT,
            by=str(principal.actor),
            result=None if result is None else jsontext.canonical(result),
            external_id=external_id,
            error=error,
            **_of_tool(step, Outcome(outcome), cost),
        )
        first = _own_receipt(attempt)
        if first is not None and _same(first, seen):
            work.state_unchanged()
            return attempt, False
        if first is not None and first.outcome != Outcome.UNKNOWN:
            conflict = True
            work.note("receipt.conflict", attempt=attempt.pk, step=step.pk, outcome=outcome)
            work.state_unchanged()
        else:
            attempts.record(work, step, attempt, seen)
    if conflict:
        raise ReceiptConflict
    return attempt, True


def _own_claim(principal: Principal, attempt: Attempt) -> None:
    """An agent speaks of what it did itself; of a call of the service it knows nothing."""
    if attempt.worker != str(principal.actor):
        raise Forbidden("The service made this call itself.")


def _of_tool(step: Step, outcome: Outcome, cost: Decimal | None = None) -> dict[str, Any]:
    version = catalogue.version(current_tenant_id(), step.tool_version_id)
    return {
        "sensitive": bool(version.sensitive),
        "on_failure": version.on_failure,
        "cost": cost_told(cost, outcome, version),
    }


def _own_receipt(attempt: Attempt) -> Receipt | None:
    """The receipt of whoever made the attempt: the one that settles it, else the first.

    What others found out about it is no receipt of its own: whoever made it may still say.
    """
    receipts = list(
        Receipt.objects.filter(
            step=attempt.step_id,
            attempt=attempt.pk,
            source__in=[Source.EXECUTOR, Source.AGENT],
            evidence=None,
        )
    )
    settling = [receipt for receipt in receipts if receipt.outcome != Outcome.UNKNOWN]
    return next(iter(settling or receipts), None)


def _same(receipt: Receipt, seen: Seen) -> bool:
    result = None if seen.result is None else keyed_digest(current_tenant_id(), seen.result)
    return (
        receipt.outcome == seen.outcome
        and (None if receipt.result is None else bytes(receipt.result)) == result
        and receipt.external_id == seen.external_id
        and receipt.cost == seen.cost
        and receipt.error == seen.error
    )


def reconcile(
    principal: Principal,
    step_id: UUID,
    *,
    outcome: str,
    evidence: str,
    result: Any = None,
    external_id: str | None = None,
) -> Step:
    """Take what the run's agent found out about a call of its own whose outcome is unknown.

    Raises NotUnknown, NotYourRun, and Forbidden for a call that the service made.
    """
    run_id = Step.objects.values_list("run_id", flat=True).get(pk=step_id)
    with working(run_id, principal.actor) as work:
        own_run(principal, work.run)
        step = Step.objects.get(pk=step_id)
        if step.status != StepStatus.UNKNOWN:
            raise NotUnknown(f"The step is {step.status}.")
        _own_claim(principal, Attempt.objects.get(step=step, fence=step.fence))
        found_out(
            work,
            step,
            outcome={"performed": Outcome.SUCCEEDED, "not_performed": Outcome.NOT_PERFORMED}[
                outcome
            ],
            source=Source.AGENT,
            by=principal.actor,
            evidence=evidence,
            result=result,
            external_id=external_id,
        )
    return step


def found_out(
    work: Work,
    step: Step,
    *,
    outcome: Outcome,
    source: Source,
    by: Actor,
    evidence: str,
    result: Any = None,
    external_id: str | None = None,
    for_good: bool = False,
) -> Receipt:
    """Record a finding about an unknown step: the newest attempt is settled by it."""
    attempt = Attempt.objects.filter(step=step, fence=step.fence).first()
    return attempts.record(
        work,
        step,
        attempt,
        Seen(
            outcome=outcome,
            source=source,
            by=str(by),
            result=None if result is None else jsontext.canonical(result),
            external_id=external_id,
            evidence=evidence,
            for_good=for_good,
            **_of_tool(step, outcome),
        ),
    )


def record_seen(run_id: UUID, step_id: UUID, attempt_id: UUID, seen: Seen, actor: Actor) -> None:
    """Record what a worker saw of its attempt, by the long way: any state of run and step."""
    with working(run_id, actor) as work:
        attempt = Attempt.objects.get(pk=attempt_id)
        step = Step.objects.get(pk=step_id)
        if _own_receipt(attempt) is not None:
            work.state_unchanged()  # recorded already: this is the same once more
            return
        attempts.record(work, step, attempt, seen)


def record_read(run_id: UUID, step_id: UUID, seen: Seen, actor: Actor, worker: str) -> None:
    """Record a read that did not succeed: tried again within bounds, then failed."""
    with working(run_id, actor) as work:
        step = Step.objects.get(pk=step_id)
        if work.run.reading == step.pk:
            work.run.reading = work.run.reading_until = None
        if step.status != StepStatus.READY:
            work.state_unchanged()  # settled meanwhile by another worker, or withdrawn
            return
        attempts.record_read(work, step, seen, worker)
