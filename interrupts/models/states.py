"""The states and the moves between them: one table each, drawn here, the same in the database.

Run:

    running ⇄ suspended ──► failed           cancelling ──► cancelled
       │          │                               ▲
       ├──► completed | failed                    │
       └──────────┴───────────────────────────────┘   (cancelled at once where nothing is open)

Step:

    proposed ─► waiting ⇄ ready ─► executing ─► succeeded ─► compensating ─► compensated
                  │         ▲          │ ├────► failed
                  │         └──────────┤ └────► unknown ─► succeeded | failed | ready | cancelled
                  └─► denied | rejected | revised | cancelled

A receipt is a fact: whatever a step was taken for, one that reports success makes it `succeeded`.

Verdict, on the receipt of a step whose tool has a verifier:

    awaited ─► passed | rejected | unknown
"""

from django.db import models


class RunStatus(models.TextChoices):
    RUNNING = "running"
    SUSPENDED = "suspended"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


R = RunStatus
RUN_MOVES: dict[RunStatus, frozenset[RunStatus]] = {
    R.RUNNING: frozenset({R.SUSPENDED, R.CANCELLING, R.COMPLETED, R.FAILED, R.CANCELLED}),
    R.SUSPENDED: frozenset({R.RUNNING, R.CANCELLING, R.FAILED, R.CANCELLED}),
    R.CANCELLING: frozenset({R.CANCELLED}),
    R.COMPLETED: frozenset(),
    R.FAILED: frozenset(),
    R.CANCELLED: frozenset(),
}
ENDED = frozenset({R.COMPLETED, R.FAILED, R.CANCELLED})


class Suspension(models.TextChoices):
    """What is true of a run that is suspended or cancelling; the first that applies."""

    UNKNOWN_OUTCOME = "unknown_outcome"
    STILL_CANCELLING = "still_cancelling"
    PARTIALLY_COMPLETE = "partially_complete"
    SAFELY_SUSPENDED = "safely_suspended"


class StepStatus(models.TextChoices):
    PROPOSED = "proposed"
    WAITING = "waiting"
    READY = "ready"
    EXECUTING = "executing"
    UNKNOWN = "unknown"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    COMPENSATING = "compensating"
    COMPENSATED = "compensated"
    DENIED = "denied"
    REJECTED = "rejected"
    REVISED = "revised"
    CANCELLED = "cancelled"


S = StepStatus
STEP_MOVES: dict[StepStatus, frozenset[StepStatus]] = {
    S.PROPOSED: frozenset({S.WAITING, S.READY, S.DENIED, S.REJECTED, S.REVISED, S.CANCELLED}),
    S.WAITING: frozenset({S.READY, S.SUCCEEDED, S.DENIED, S.REJECTED, S.REVISED, S.CANCELLED}),
    # A read needs no intent, so it goes from ready to its end at once.
    S.READY: frozenset(
        {S.EXECUTING, S.SUCCEEDED, S.FAILED, S.WAITING, S.DENIED, S.REVISED, S.CANCELLED}
    ),
    S.EXECUTING: frozenset({S.SUCCEEDED, S.FAILED, S.UNKNOWN, S.READY, S.CANCELLED}),
    # Unknown to executing: the same call is sent again under its key, to find out.
    S.UNKNOWN: frozenset({S.SUCCEEDED, S.FAILED, S.READY, S.EXECUTING, S.CANCELLED}),
    S.SUCCEEDED: frozenset({S.COMPENSATING}),
    S.COMPENSATING: frozenset({S.COMPENSATED, S.SUCCEEDED}),
    S.COMPENSATED: frozenset(),
    S.FAILED: frozenset({S.SUCCEEDED}),
    S.CANCELLED: frozenset({S.SUCCEEDED}),
    S.DENIED: frozenset({S.SUCCEEDED}),
    S.REJECTED: frozenset({S.SUCCEEDED}),
    S.REVISED: frozenset({S.SUCCEEDED}),
}
OPEN_STEPS = frozenset({S.PROPOSED, S.WAITING, S.READY, S.EXECUTING, S.UNKNOWN})


class Outcome(models.TextChoices):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NOT_PERFORMED = "not_performed"
    UNKNOWN = "unknown"


class Choice(models.TextChoices):
    """What a person may choose of a call that waits for a gate; an edit is an approval as well."""

    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    REQUEST_CHANGES = "request_changes"
    RESPOND = "respond"


class Effect(models.TextChoices):
    READ = "read"
    IDEMPOTENT = "idempotent"
    REVERSIBLE = "reversible"
    IRREVERSIBLE = "irreversible"


class Risk(models.TextChoices):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Executor(models.TextChoices):
    HTTP = "http"
    PYTHON = "python"
    AGENT = "agent"


class Reason(models.TextChoices):
    """Why a run is interrupted."""

    APPROVAL_REQUIRED = "approval_required"
    RISK_THRESHOLD = "risk_threshold"
    CONFIDENCE_THRESHOLD = "confidence_threshold"
    MILESTONE = "milestone"
    INPUT_REQUIRED = "input_required"
    OPERATOR_STOP = "operator_stop"
    BUDGET_EXHAUSTED = "budget_exhausted"
    VERIFIER_REJECTED = "verifier_rejected"
    CONTEXT_MISSING = "context_missing"
    OUTCOME_UNKNOWN = "outcome_unknown"
    EFFECT_FAILED = "effect_failed"
    AGENT_REQUESTED = "agent_requested"
    PARENT_INTERRUPTED = "parent_interrupted"
    OWNER_LOST = "owner_lost"


class VerdictStatus(models.TextChoices):
    """What is known of what a tool's verifier says; unknown is never taken for passed."""

    AWAITED = "awaited"
    PASSED = "passed"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


V = VerdictStatus
VERDICT_MOVES: dict[VerdictStatus, frozenset[VerdictStatus]] = {
    V.AWAITED: frozenset({V.PASSED, V.REJECTED, V.UNKNOWN}),
    V.PASSED: frozenset(),
    V.REJECTED: frozenset(),
    V.UNKNOWN: frozenset(),
}


class ResponseKind(models.TextChoices):
    RELEASE = "release"
    DECISION = "decision"
    INPUT = "input"
    RECOVERY = "recovery"
    EXTENSION = "extension"


class Resolution(models.TextChoices):
    RESUME = "resume"
    REVISE = "revise"
    CANCEL = "cancel"
    TIME_OUT = "time_out"
    COMPENSATE = "compensate"
