"""What every executor says: the vocabulary of a call and of what was seen of it.

An effect never raises for what the far end did: what is known, and what is not, is an outcome.
"""

from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, Final, Protocol

from interrupts.effects.cancellation import Cancellation

MAX_ERROR: Final = 500
REPLACED: Final = "It was done. Of its result, what cannot be kept as it was is replaced."
MAX_EXTERNAL_ID: Final = 1000
MAX_RESULT_BYTES: Final = 1024 * 1024
MAX_RETRY_AFTER: Final = 3600.0
MAX_COST: Final = Decimal(10) ** 15
COST_STEP: Final = Decimal("1e-10")


class Outcome(StrEnum):
    """What is known of one call."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # refused for good; nothing was done
    NOT_PERFORMED = "not_performed"  # proved not begun; may be sent again
    UNKNOWN = "unknown"  # it may have been performed


class Finding(StrEnum):
    """What a far end says when it is asked about a call whose outcome is unknown."""

    PERFORMED = "performed"
    FAILED = "failed"
    NOT_PERFORMED = "not_performed"
    PENDING = "pending"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool. `arguments` is canonical JSON, sent byte for byte; `timeout` seconds.

    `cancel_requested` becomes true while the call is made, where its run was stopped so.
    """

    tool: str
    tool_version: int
    arguments: bytes
    run: str
    step: str
    attempt: str
    idempotency_key: str
    timeout: float
    cancellation: Cancellation = field(default_factory=Cancellation, compare=False, repr=False)

    @property
    def cancel_requested(self) -> bool:
        return self.cancellation.asked


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen of an execution or a compensation. `error` may be shown to the agent."""

    outcome: Outcome
    result: Any = None
    external_id: str | None = None
    cost: Decimal | None = None
    error: str | None = None
    retry_after: float | None = None  # seconds, from a far end that is busy
    sent: bool = field(default=True, compare=False)  # False: nothing of it left this service


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What the far end says of a lost call; `error` says why it could not tell."""

    outcome: Finding
    result: Any = None
    external_id: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What a call would do; it stays true for `fresh_for` seconds, for good where None."""

    summary: str
    changes: list[dict[str, Any]]
    warnings: list[str]
    fresh_for: float | None


class PreviewFailed(Exception):
    """No preview could be taken. The message may be shown."""


class Effect(Protocol):
    """A tool's executor. Call it with no transaction open; every call returns within its time.

    (A python tool runs in this process and cannot be stopped from outside: see its module.)
    """

    def preview(self, call: Call) -> Preview:
        """Say what the call would do, without doing it. Raises `PreviewFailed`."""

    def execute(self, call: Call) -> Observed:
        """Send the call once."""

    def reconcile(self, call: Call) -> Reconciled:
        """Ask what became of an earlier call under the same idempotency key."""

    def compensate(self, call: Call, result: Any, external_id: str | None) -> Observed:
        """Undo an earlier call under `<idempotency key>:compensate`.

        FAILED is a clear refusal, for a person to look at; NOT_PERFORMED and UNKNOWN are to be sent
        again under the same key.
        """


def compensation_key(call: Call) -> str:
    """Return the idempotency key under which the call is undone."""
    return f"{call.idempotency_key}:compensate"


def plain(text: str, limit: int = MAX_ERROR) -> str:
    """Return foreign text as one line of printable characters, at most `limit` of them."""
    line = " ".join(text[: 4 * limit].split())
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def cost_of(value: Any) -> Decimal | None:
    """Read a cost as the far end wrote it, exact to ten places; None where it is no cost."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    try:
        cost = Decimal(repr(value) if isinstance(value, float) else value)
        within = 0 <= cost < MAX_COST
    except (InvalidOperation, ValueError):
        return None
    if not within:
        return None
    return Decimal(format(cost.quantize(COST_STEP, ROUND_HALF_EVEN).normalize(), "f"))


def delay_of(value: Any) -> float | None:
    """Read for how many seconds to wait before the next try, at most an hour; None: not said."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124
        return None
    return min(max(float(value), 0.0), MAX_RETRY_AFTER)


def external_id_of(value: Any) -> str | None:
    """Read the far end's own name for what was done; None where it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and 0 < len(value) <= MAX_EXTERNAL_ID:
        return value
    return None
