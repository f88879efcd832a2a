"""A run's rows, held against what its journal tells of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from interrupts import imprints
from interrupts.models import (
    OPEN_STEPS,
    Attempt,
    Checkpoint,
    Guidance,
    Interrupt,
    InterruptStatus,
    Receipt,
    Run,
    RunStatus,
    Step,
    StepStatus,
)
from interrupts.suspension import Counts, StepFacts, count
from interrupts.transitions.versions import digest_of
from interrupts.verification import older, verdicts
from interrupts.verification.chains import Said, instant
from interrupts.verification.faults import Fault, compare, unmatched
from interrupts.verification.told import AttemptTold, InterruptTold, StepTold, Told
from tenants import imprints as keyed


def faults(run: Run, told: Told) -> Iterator[Fault]:
    """Yield every row of the run that is not what the journal says, and what is missing."""
    if told.is_older:
        yield from older.faults(run, told)
        return
    steps = list(Step.objects.filter(run=run).order_by("position").select_related("tool_version"))
    yield from _run(run, told, steps)
    yield from _steps(run, told, steps)
    yield from _attempts(run, told)
    yield from _receipts(run, told)
    yield from verdicts.faults(run, told.verdicts)
    yield from _interrupts(run, told)
    yield from _checkpoints(run, told)
    yield from _guidance(run, told)


def _id(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def _hex(value: bytes | memoryview | None) -> str | None:
    return None if value is None else bytes(value).hex()


def _named(said: Said, **of: str) -> dict[str, Any]:
    """Return what the entry says, by the column's name; what it does not say is left out."""
    return {column: said.data[name] for column, name in of.items() if name in said.data}


# The run


def _run(run: Run, told: Told, steps: list[Step]) -> Iterator[Fault]:
    usage = sum(step.counted for step in told.steps.values())
    stored: dict[str, Any] = {
        "status": run.status,
        "epoch": run.epoch,
        "session": run.session,
        "checkpoint": _id(run.checkpoint_id),
        "last_position": run.last_position,
        "open_interrupts": run.open_interrupts,
        "verdicts": (run.verdicts_awaited, run.verdicts_holding),
        "usage_steps": run.usage_steps,
        "usage_tokens": run.usage_tokens,
        "usage_cost": run.usage_cost,
        "usage_seconds": run.usage_seconds,
        "reserved_cost": run.reserved_cost,
        "budget": {name: str(limit) for name, limit in run.budget.items()},
        "counts": (run.count_unknown, run.count_in_flight, run.count_partial),
        "suspension": run.suspension,
        "agreed": run.compensating,
    }
    yield from compare(
        run.pk,
        "run",
        stored,
        {
            "status": told.status,
            "epoch": told.epoch,
            "session": told.session,
            "checkpoint": told.checkpoint,
            "last_position": len(told.steps),
            "open_interrupts": len(told.open),
            "verdicts": told.verdicts.counts,
            "usage_steps": usage,
            "usage_tokens": told.tokens,
            "usage_cost": told.cost,
            "usage_seconds": told.seconds,
            "reserved_cost": told.reserved,
            "budget": told.budget,
            "agreed": told.compensating,
            **_suspension(told.status, steps),
        },
    )
    yield from _vouched(run, told)
    settled = [step.position for step in steps if step.status not in OPEN_STEPS]
    if any(position not in settled for position in range(1, run.next_step)):
        yield Fault(run.pk, "run", f"its next_step is {run.next_step}, an earlier one is open")


def _suspension(status: str, steps: list[Step]) -> dict[str, Any]:
    """How the run is suspended, computed anew of its steps."""
    if status not in (RunStatus.SUSPENDED, RunStatus.CANCELLING):
        return {"counts": (0, 0, 0), "suspension": None}
    counts: Counts = count(
        StepFacts(one.group, one.status, one.effect, one.attempts, one.undo_wanted) for one in steps
    )
    return {"counts": tuple(counts), "suspension": counts.suspension}


def _vouched(run: Run, told: Told) -> Iterator[Fault]:
    started, ended = told.started, told.ended
    if started is None:
        yield Fault(run.pk, "run", "was never started")
    elif not started.vouches_for(run, imprints.RUN):
        yield Fault(run.pk, "run", "is not the one that was started")
    nothing = run.output is None and run.error is None and run.ended_at is None
    if ended is None and not nothing:
        yield Fault(run.pk, "run", "has an end that the journal does not know")
    if ended is not None and not ended.vouches_for(run, imprints.ENDING):
        yield Fault(run.pk, "run", "did not end like this")


# Steps


def _steps(run: Run, told: Told, steps: list[Step]) -> Iterator[Fault]:
    yield from unmatched(
        run.pk, "step", {str(step.pk) for step in steps}, told.steps.keys() | set()
    )
    for step in steps:
        of = told.steps.get(str(step.pk))
        if of is not None:
            yield from _step(run, step, of)


def _step(run: Run, step: Step, told: StepTold) -> Iterator[Fault]:
    at, proposed = f"step {step.pk}", told.proposed
    stored = {
        "status": step.status,
        "position": step.position,
        "tool_name": step.tool_name,
        "number": step.tool_number,
        "arguments": _hex(step.arguments),
        "outcome": step.outcome,
        "reason": step.reason,
        "reason_code": step.reason_code,
        "settled_at": step.settled_at,
        "gate": _id(step.gate),
        "interrupt": _id(step.interrupt),
        "fence": step.fence,
        "attempts": step.attempts,
        "undo_wanted": step.undo_wanted,
        "undo_tries": step.undo_tries,
        "reserved_cost": step.reserved_cost,
        "counted_on": step.counted_on and step.counted_on.isoformat(),
        "context": step.context,
        "context_until": step.context_until,
        "judged": step.judged,
    }
    yield from compare(
        run.pk,
        at,
        stored,
        {
            **_named(proposed, position="position", tool_name="tool"),
            "status": told.status,
            "number": told.number,
            "arguments": told.arguments,
            "outcome": told.outcome,
            "reason": told.reason,
            "reason_code": told.reason_code,
            "settled_at": told.settled_at,
            "gate": told.gate,
            "interrupt": told.interrupt,
            "fence": told.fence,
            "attempts": told.attempts,
            "undo_wanted": told.undo_wanted,
            "undo_tries": told.undo_tries,
            "reserved_cost": told.reserved,
            "counted_on": told.counted_on,
            "context": told.context,
            "context_until": told.context_until,
            "judged": told.judged,
        },
    )
    if not proposed.vouches_for(step, imprints.STEP):
        yield Fault(run.pk, at, "is not the one that was proposed")
    yield from _now(run, step, told)
    yield from _authorized(run, step, told.authorized)
    yield from _repeated(run, step)
    yield from _result(run, step, told)


def _now(run: Run, step: Step, told: StepTold) -> Iterator[Fault]:
    """What is said of a step while it waits, or while its outcome is unknown."""
    if step.status == StepStatus.UNKNOWN:
        yield from compare(
            run.pk,
            f"step {step.pk}",
            {"unknown_at": step.unknown_at},
            {"unknown_at": told.unknown_at},
        )
    if step.status == StepStatus.WAITING:
        stored = {"held_by": step.held_by, "twin": _id(step.twin)}
        twin = {"twin": told.twin} if told.held_by == "twin" else {}
        yield from compare(run.pk, f"step {step.pk}", stored, {"held_by": told.held_by, **twin})


_STAMP = {
    "authorized_by": "by",
    "authorized_rule": "rule",
    "authorized_gate": "gate",
    "authorized_digest": "digest",
    "authorized_under": "under",
    "authorized_tool_version": "version",
    "authorized_policy_version": "policy_version",
    "authorized_until": "until",
}


def _authorized(run: Run, step: Step, told: Mapping[str, Any] | None) -> Iterator[Fault]:
    """What the step is authorised by is what the journal authorised it by last."""
    for column, name in _STAMP.items():
        said = None if told is None else told.get(name)
        if column == "authorized_until":
            said = instant(said)
        stored = getattr(step, column)
        stored = str(stored) if isinstance(stored, UUID) else stored
        if stored != said:
            yield Fault(
                run.pk, f"step {step.pk}", f"its {column} is {stored}, the journal says {said}"
            )


def _repeated(run: Run, step: Step) -> Iterator[Fault]:
    """What a step repeats of its tool's version is what that version says."""
    version = step.tool_version
    yield from compare(
        run.pk,
        f"step {step.pk}",
        {
            "tool": step.tool_id,
            "number": step.tool_number,
            "executor": step.executor,
            "effect": step.effect,
            "risk": step.risk,
            "timeout_seconds": step.timeout_seconds,
        },
        {
            "tool": version.tool_id,
            "number": version.number,
            "executor": version.executor_kind,
            "effect": version.effect,
            "risk": version.risk,
            "timeout_seconds": version.timeout_seconds,
        },
    )


def _result(run: Run, step: Step, told: StepTold) -> Iterator[Fault]:
    """A concluded step has the result of the receipt that concluded it; any other has none."""
    at = f"step {step.pk}"
    stored = {"result": _hex(step.result), "external_id": step.external_id}
    if told.settled_by is None:
        yield from compare(run.pk, at, stored, {"result": None, "external_id": None})
        return
    said = told.settled_by
    expected = {"external_id": None, **_named(said, result="result", external_id="external_id")}
    yield from compare(run.pk, at, stored, expected)
    # What a compensation was refused with is told of by its receipt.
    is_told = "error" in said.data and not told.undo_tries
    if is_told and said.imprint_of(step.error) != said.data["error"]:
        yield Fault(run.pk, at, "its error is not what was seen")


# Attempts and receipts


def _attempts(run: Run, told: Told) -> Iterator[Fault]:
    rows = {str(row.pk): row for row in Attempt.objects.filter(run=run)}
    yield from unmatched(run.pk, "attempt", set(rows), set(told.attempts))
    for pk in rows.keys() & told.attempts.keys():
        row, of = rows[pk], told.attempts[pk]
        yield from compare(run.pk, f"attempt {pk}", _stored(row), _expected(of))


def _stored(row: Attempt) -> dict[str, Any]:
    return {
        "tenant": str(row.tenant_id),
        "step": str(row.step_id),
        "fence": row.fence,
        "epoch": row.epoch,
        "started_at": row.started_at,
        "worker": row.worker,
        "compensation": row.compensation,
        "settled_at": row.settled_at,
        "lapsed_at": row.lapsed_at,
        "outcome": row.outcome,
    }


def _expected(told: AttemptTold) -> dict[str, Any]:
    expected = {
        "step": told.step,
        "fence": told.fence,
        "epoch": told.epoch,
        "started_at": told.started_at,
        "compensation": told.compensation,
        "settled_at": told.settled_at,
        "lapsed_at": told.lapsed_at,
        "outcome": told.outcome,
    }
    return expected if told.worker is None else {**expected, "worker": told.worker}


def _receipts(run: Run, told: Told) -> Iterator[Fault]:
    rows = {str(row.pk): row for row in Receipt.objects.filter(run=run)}
    yield from unmatched(run.pk, "receipt", set(rows), set(told.receipts))
    for pk in rows.keys() & told.receipts.keys():
        yield from _receipt(run, rows[pk], told.receipts[pk])


def _receipt(run: Run, row: Receipt, said: Said) -> Iterator[Fault]:
    stored = {
        "step": str(row.step_id),
        "attempt": _id(row.attempt),
        "source": row.source,
        "outcome": row.outcome,
        "result": _hex(row.result),
        "external_id": row.external_id,
        "compensation": row.compensation,
        "cost": row.cost,
        "error": said.imprint_of(row.error),
        "evidence": said.imprint_of(row.evidence),
        "by": row.by,
        "observed_at": row.observed_at,
    }
    unsaid = {"attempt": None, "external_id": None, "cost": None, "error": None, "evidence": None}
    expected = {**unsaid, "compensation": False, **said.data, "observed_at": said.at}
    expected["by"] = said.data.get("by") or said.by
    if expected["cost"] is not None:
        expected["cost"] = Decimal(expected["cost"])
    yield from compare(run.pk, f"receipt {row.pk}", stored, expected)


# Interrupts, checkpoints, guidance


def _interrupts(run: Run, told: Told) -> Iterator[Fault]:
    rows = {str(row.pk): row for row in Interrupt.objects.filter(run=run)}
    yield from unmatched(run.pk, "interrupt", set(rows), set(told.interrupts))
    for pk in rows.keys() & told.interrupts.keys():
        yield from _interrupt(run, rows[pk], told.interrupts[pk])


def _interrupt(run: Run, row: Interrupt, told: InterruptTold) -> Iterator[Fault]:
    at, opened, resolved = f"interrupt {row.pk}", told.opened, told.resolved
    if not opened.vouches_for(row, imprints.INTERRUPT):
        yield Fault(run.pk, at, "is not the one that was opened")
    if not told.asked.vouches_for(row, imprints.ASKED, "asked"):
        yield Fault(run.pk, at, "does not ask what it was opened with")
    stored = {
        "status": row.status,
        "resolution": row.resolution,
        "resolved_by": row.resolved_by,
        "resolved_at": row.resolved_at,
        "response": row.response,
    }
    if resolved is None:
        nothing = dict.fromkeys(["resolution", "resolved_by", "resolved_at", "response"])
        yield from compare(run.pk, at, stored, {"status": InterruptStatus.OPEN, **nothing})
        return
    expected = {
        "status": InterruptStatus.RESOLVED,
        "resolved_at": resolved.at,
        **_named(resolved, resolution="resolution", resolved_by="by"),
    }
    yield from compare(run.pk, at, stored, expected)
    if row.gate is not None and row.response is not None and "decision" in row.response:
        return  # a gate's decision: who knows what a gate is holds it against that
    given = row.response and keyed.of_value(run.pk, row.response, key_id=resolved.key_id)
    if resolved.data.get("response") != given:
        yield Fault(run.pk, at, "was not answered like this")


def _checkpoints(run: Run, told: Told) -> Iterator[Fault]:
    rows = {str(row.pk): row for row in Checkpoint.objects.filter(run=run)}
    yield from unmatched(run.pk, "checkpoint", set(rows), set(told.checkpoints))
    for pk in rows.keys() & told.checkpoints.keys():
        row, said = rows[pk], told.checkpoints[pk]
        stored = {"digest": row.digest, "content": digest_of(row), "created_at": row.created_at}
        digest = said.data["digest"]
        expected = {"digest": digest, "content": digest, "created_at": said.at}
        if any(compare(run.pk, "", stored, expected)) or _state_differs(row, said):
            yield Fault(run.pk, f"checkpoint {pk}", "is not what was taken")


def _state_differs(row: Checkpoint, said: Said) -> bool:
    if row.agent_body is None and row.agent_size is not None:
        return True
    state = said.imprint(row, imprints.STATE) if row.agent_body is not None else None
    return "state" in said.data and bool(said.data["state"] != state)


def _guidance(run: Run, told: Told) -> Iterator[Fault]:
    rows = {str(row.pk): row for row in Guidance.objects.filter(run=run)}
    yield from unmatched(run.pk, "guidance", set(rows), set(told.guidance))
    for pk in rows.keys() & told.guidance.keys():
        row, said = rows[pk], told.guidance[pk]
        if not said.vouches_for(row, imprints.GUIDANCE):
            yield Fault(run.pk, f"guidance {pk}", "is not what was said")
        yield from compare(
            run.pk,
            f"guidance {pk}",
            {"acknowledged_at": row.acknowledged_at},
            {"acknowledged_at": told.acknowledged.get(pk)},
        )
