"""What a run's journal alone says of it: every state, rebuilt entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final
from uuid import UUID

from interrupts.models import Outcome, Reason, Resolution, RunStatus, StepStatus
from interrupts.verification.chains import Said, instant
from interrupts.verification.verdicts import VerdictsTold

SECONDS, COST = Decimal("0.001"), Decimal("0.0000000001")  # as the columns round


@dataclass(slots=True)
class StepTold:
    """One step, as told."""

    proposed: Said
    status: str = StepStatus.WAITING.value
    arguments: str = ""
    number: int = 0  # of its tool's version
    outcome: str | None = None
    reason: str | None = None
    reason_code: str | None = None
    settled_at: datetime | None = None
    unknown_at: datetime | None = None
    gate: str | None = None
    interrupt: str | None = None
    held_by: str | None = None
    judged: Mapping[str, Any] | None = None
    twin: str | None = None
    authorized: Mapping[str, Any] | None = None
    counted: bool = False  # against the budget
    reserved: Decimal | None = None  # of its cost, till it is settled
    counted_on: str | None = None  # the agent's day that it counts in
    context: Mapping[str, str | None] | None = None
    context_until: datetime | None = None
    fence: int = 0
    attempts: int = 0
    undo_wanted: bool = False
    undo_tries: int = 0
    seen: Said | None = None  # the newest receipt
    settled_by: Said | None = None  # the receipt that succeeded or failed it


@dataclass(slots=True)
class AttemptTold:
    """One attempt, as told; a read is told of by its receipt alone."""

    step: str
    fence: int
    epoch: int
    started_at: datetime
    worker: str | None = None
    compensation: bool = False
    digest: str | None = None  # of the call that was authorised when it was intended
    held: bool = False  # a verdict held the run when it was intended
    settled_at: datetime | None = None
    lapsed_at: datetime | None = None
    outcome: str | None = None

    @property
    def is_live(self) -> bool:
        return self.settled_at is None and self.lapsed_at is None


@dataclass(slots=True)
class InterruptTold:
    """One interrupt, as told: how it was opened, what it asks by now, and its answer."""

    opened: Said
    asked: Said
    resolved: Said | None = None


@dataclass(slots=True)
class Told:
    """A run, as told."""

    started: Said | None = None
    ended: Said | None = None
    status: str = ""
    epoch: int = 1
    session: int = 0
    compensating: bool = False
    budget: dict[str, str] = field(default_factory=dict)
    tokens: int = 0
    cost: Decimal = Decimal(0)
    seconds: Decimal = Decimal(0)
    checkpoint: str | None = None
    steps: dict[str, StepTold] = field(default_factory=dict)
    attempts: dict[str, AttemptTold] = field(default_factory=dict)
    interrupts: dict[str, InterruptTold] = field(default_factory=dict)
    receipts: dict[str, Said] = field(default_factory=dict)
    verdicts: VerdictsTold = field(default_factory=VerdictsTold)
    checkpoints: dict[str, Said] = field(default_factory=dict)
    guidance: dict[str, Said] = field(default_factory=dict)
    acknowledged: dict[str, datetime] = field(default_factory=dict)
    gates: list[Said] = field(default_factory=list)  # for who knows what a gate is

    def take(self, said: Said) -> None:
        """Take the next entry; what an entry of no known kind says changes no state."""
        data = said.data
        self.status = _RUN.get(said.kind, self.status)
        self.epoch = data.get("epoch", self.epoch)
        if said.kind.startswith("gate.") or (data.get("gate") and said.kind == "step.authorized"):
            self.gates.append(said)
        step = self.steps.get(data.get("step") or "")
        if step is not None and said.kind in _STEP:
            step.status = _STEP[said.kind]
        if said.kind.startswith("verdict."):
            self.verdicts.take(said)
        takes = _TAKES.get(said.kind)
        if takes is not None:
            takes(self, said)

    def of(self, said: Said) -> StepTold:
        return self.steps[said.data["step"]]

    @property
    def is_older(self) -> bool:
        """Whether it began under a release whose journals vouched for states and receipts alone."""
        return self.started is not None and "imprint" not in self.started.data

    @property
    def reserved(self) -> Decimal:
        """What is reserved of the cost of steps that have not settled."""
        return sum((one.reserved for one in self.steps.values() if one.reserved), Decimal(0))

    def counts(self, step: UUID) -> bool:
        """Whether a step's outcome changes what is reserved, or its agent's day."""
        of = self.steps.get(str(step))
        return of is not None and (of.reserved is not None or of.counted_on is not None)

    @property
    def open(self) -> set[str]:
        return {pk for pk, one in self.interrupts.items() if one.resolved is None}


_RUN: Final = {
    "run.started": RunStatus.RUNNING.value,
    "run.resumed": RunStatus.RUNNING.value,
    "run.suspended": RunStatus.SUSPENDED.value,
    "run.cancelling": RunStatus.CANCELLING.value,
    "run.completed": RunStatus.COMPLETED.value,
    "run.failed": RunStatus.FAILED.value,
    "run.cancelled": RunStatus.CANCELLED.value,
}
_STEP: Final = {
    "step.authorized": StepStatus.READY.value,
    "step.held": StepStatus.WAITING.value,
    "gate.opened": StepStatus.WAITING.value,
    "gate.reopened": StepStatus.WAITING.value,
    "step.unknown": StepStatus.UNKNOWN.value,
    "step.retried": StepStatus.READY.value,
    "compensation.started": StepStatus.COMPENSATING.value,
    "compensation.left": StepStatus.SUCCEEDED.value,
}


# The run itself


def _started(told: Told, said: Said) -> None:
    told.started = said
    told.budget = dict(said.data.get("budget", {}))


def _ended(told: Told, said: Said) -> None:
    told.ended = said


def _cancelling(told: Told, said: Said) -> None:
    told.compensating = said.data.get("compensate", False)


def _claimed(told: Told, said: Said) -> None:
    told.session = said.data["session"]


def _used(told: Told, said: Said) -> None:
    told.tokens += said.data["tokens"]
    told.cost = _added(told.cost, said.data["cost"], COST)
    told.seconds = _added(told.seconds, said.data["seconds"], SECONDS)


def _added(total: Decimal, more: str, unit: Decimal) -> Decimal:
    return (total + Decimal(more)).quantize(unit, ROUND_HALF_UP)


def _extended(told: Told, said: Said) -> None:
    told.budget.update(said.data["limits"])


def _checkpoint(told: Told, said: Said) -> None:
    told.checkpoint = said.data["checkpoint"]
    told.checkpoints[told.checkpoint] = said


def _revised(told: Told, said: Said) -> None:
    told.guidance[said.data["guidance"]] = said


def _acknowledged(told: Told, said: Said) -> None:
    told.acknowledged.update(dict.fromkeys(said.data["guidance"], said.at))


# Interrupts


def _opened(told: Told, said: Said) -> None:
    data = said.data
    told.interrupts[data["interrupt"]] = InterruptTold(said, said)
    if data["gate"] is not None and data["step"] in told.steps:
        step = told.of(said)
        step.gate, step.interrupt = data["gate"], data["interrupt"]
        step.held_by, step.counted = "gate", True


def _changed(told: Told, said: Said) -> None:
    told.interrupts[said.data["interrupt"]].asked = said


def _resolved(told: Told, said: Said) -> None:
    interrupt = told.interrupts[said.data["interrupt"]]
    interrupt.resolved = said
    if interrupt.opened.data["reason"] == Reason.VERIFIER_REJECTED:
        step = told.of(interrupt.opened)
        undoes = step.undo_wanted or step.status == StepStatus.COMPENSATING
        if not undoes or said.data["resolution"] != Resolution.COMPENSATE:
            told.verdicts.release(interrupt.opened.data["step"])


# Steps


def _proposed(told: Told, said: Said) -> None:
    step = StepTold(said, arguments=said.data["arguments"], number=said.data["tool_version"])
    told.steps[said.data["step"]] = step


def _judged(told: Told, said: Said) -> None:
    told.of(said).judged = said.data["seen"]


def _held(told: Told, said: Said) -> None:
    step = told.of(said)
    step.held_by, step.twin = said.data["by"], said.data["twin"]


def _context(told: Told, said: Said) -> None:
    step = told.of(said)
    step.context, step.context_until = said.data["context"], instant(said.data["until"])


def _reserved(told: Told, said: Said) -> None:
    step = told.of(said)
    step.reserved, step.counted_on = Decimal(said.data["cost"]), said.data["day"]


def _renewed(told: Told, said: Said) -> None:
    told.of(said).number = said.data["tool_version"]


def _authorized(told: Told, said: Said) -> None:
    step = told.of(said)
    step.authorized, step.counted, step.held_by = said.data, True, None


def _gate(told: Told, said: Said) -> None:
    step = told.of(said)
    step.gate, step.held_by, step.counted = said.data["gate"], "gate", True
    step.interrupt = said.data.get("interrupt") or step.interrupt


def _reopened(told: Told, said: Said) -> None:
    _gate(told, said)
    told.of(said).authorized = None


def _decided(told: Told, said: Said) -> None:
    edits = said.data.get("edits")
    if edits is not None:
        told.of(said).arguments = edits


def _unknown(told: Told, said: Said) -> None:
    step, seen = told.of(said), told.of(said).seen
    step.outcome = Outcome.UNKNOWN.value
    # A call that was sent again to find out and did not begin: it is unknown as it was before.
    as_before = seen and seen.at == said.at and seen.data["outcome"] == Outcome.NOT_PERFORMED
    if not as_before or step.unknown_at is None:
        step.unknown_at = said.at


def _retried(told: Told, said: Said) -> None:
    told.of(said).outcome = Outcome.NOT_PERFORMED.value


def _settled(told: Told, said: Said) -> None:
    step, data = told.of(said), said.data
    step.status = data["status"]
    step.held_by = step.reserved = None
    if "outcome" not in data:  # a compensation is done: when the step was settled stays
        step.undo_wanted = False
        told.verdicts.release(data["step"])
        return
    step.outcome, step.reason, step.settled_at = data["outcome"], data["reason"], said.at
    step.reason_code = data.get("reason_code")
    if data["status"] in _CONCLUDED and step.seen is not None and step.seen.at == said.at:
        step.settled_by = step.seen


_CONCLUDED: Final = (StepStatus.SUCCEEDED.value, StepStatus.FAILED.value)


def _undo(told: Told, said: Said) -> None:
    told.of(said).undo_wanted = True


def _left(told: Told, said: Said) -> None:
    told.of(said).undo_wanted = False
    told.verdicts.release(said.data["step"])


# Attempts and receipts


def _attempt(told: Told, said: Said) -> None:
    step, data = told.of(said), said.data
    step.fence, step.attempts = data["fence"], step.attempts + 1
    step.status = StepStatus.EXECUTING.value
    told.attempts[data["attempt"]] = AttemptTold(
        data["step"],
        data["fence"],
        told.epoch,
        said.at,
        data["worker"],
        digest=step.authorized["digest"] if step.authorized else None,
        held=told.verdicts.hold,
    )


def _compensation(told: Told, said: Said) -> None:
    step, data = told.of(said), said.data
    step.fence, step.undo_tries = step.fence + 1, data["tries"]
    told.attempts[data["attempt"]] = AttemptTold(
        data["step"], step.fence, told.epoch, said.at, data.get("worker"), compensation=True
    )


def _lapsed(told: Told, said: Said) -> None:
    attempt = told.attempts.get(said.data["attempt"])
    if attempt is not None:
        attempt.lapsed_at, attempt.outcome = said.at, Outcome.UNKNOWN.value


def _receipt(told: Told, said: Said) -> None:
    data = said.data
    told.receipts[data["receipt"]] = said
    step = told.of(said)
    is_undoing = data.get("compensation", False)
    if not is_undoing:
        step.seen = said
        told.cost = _added(told.cost, data.get("cost") or "0", COST)
    if data.get("attempt") is not None:
        _settle_attempt(told, step, said, is_undoing=is_undoing)


def _settle_attempt(told: Told, step: StepTold, said: Said, *, is_undoing: bool) -> None:
    """A receipt settles its attempt; what says "unknown" ends it where it was in flight."""
    outcome, attempt = said.data["outcome"], told.attempts.get(said.data["attempt"])
    if attempt is None:  # a read: attempt and receipt are written together
        step.fence, step.attempts = step.fence + 1, step.attempts + 1
        told.attempts[said.data["attempt"]] = AttemptTold(
            said.data["step"],
            step.fence,
            told.epoch,
            said.at,
            _worker(said),
            settled_at=said.at,
            outcome=outcome,
        )
    elif outcome != Outcome.UNKNOWN or is_undoing:
        if attempt.settled_at is None:
            attempt.settled_at, attempt.outcome = said.at, outcome
    elif attempt.is_live and step.status == StepStatus.EXECUTING and attempt.fence == step.fence:
        attempt.lapsed_at, attempt.outcome = said.at, outcome


def _worker(said: Said) -> str | None:
    """The worker that made a read; one that was lost has no name."""
    if "by" not in said.data:
        return None
    return (said.data["by"] or "").removeprefix("worker:")


def _late(told: Told, said: Said) -> None:
    """A success of what was taken for something else ends whatever else was in flight of it."""
    if "status" not in said.data:
        return
    for attempt in told.attempts.values():
        if attempt.step == said.data["step"] and attempt.is_live:
            attempt.lapsed_at = said.at


_TAKES: Final[dict[str, Callable[[Told, Said], None]]] = {
    "run.started": _started,
    "run.completed": _ended,
    "run.failed": _ended,
    "run.cancelled": _ended,
    "run.cancelling": _cancelling,
    "run.claimed": _claimed,
    "run.revised": _revised,
    "guidance.acknowledged": _acknowledged,
    "usage.reported": _used,
    "budget.extended": _extended,
    "checkpoint.taken": _checkpoint,
    "interrupt.opened": _opened,
    "interrupt.changed": _changed,
    "interrupt.resolved": _resolved,
    "interrupt.expired": _resolved,
    "step.proposed": _proposed,
    "step.judged": _judged,
    "step.held": _held,
    "step.context": _context,
    "budget.reserved": _reserved,
    "step.renewed": _renewed,
    "step.authorized": _authorized,
    "step.unknown": _unknown,
    "step.retried": _retried,
    "step.settled": _settled,
    "step.denied": _settled,
    "gate.opened": _gate,
    "gate.reopened": _reopened,
    "gate.decided": _decided,
    "compensation.wanted": _undo,
    "compensation.left": _left,
    "compensation.started": _compensation,
    "attempt.started": _attempt,
    "attempt.lapsed": _lapsed,
    "receipt.recorded": _receipt,
    "receipt.late": _late,
}
