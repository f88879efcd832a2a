"""What the service tells, as values: frozen, and named as the API names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, Required, TypedDict

MASK: Final = "•••"
ENDED_RUN: Final = frozenset({"completed", "failed", "cancelled"})

Document = Mapping[str, Any]
Status = Literal[
    "proposed",
    "waiting",
    "ready",
    "executing",
    "unknown",
    "succeeded",
    "failed",
    "compensating",
    "compensated",
    "denied",
    "rejected",
    "revised",
    "cancelled",
]


class Freshness(TypedDict):
    """Something that the proposal relies on, and until when it holds (RFC 3339)."""

    name: str
    fresh_until: str


class Change(TypedDict, total=False):
    """One thing that a call would change: `object` names it; `before` and `after` are any JSON."""

    object: Required[str]
    before: Any
    after: Any


class DryRun(TypedDict, total=False):
    """What the agent found when it tried a call itself, without its effect; 64 KiB as JSON."""

    summary: Required[str]
    changes: Required[list[Change]]
    warnings: list[str]


class Words(TypedDict, total=False):
    """What an agent may say of a proposal. It is shown to people as its words, and proves nothing."""

    reasoning: str
    confidence: float
    risk_score: float
    milestone: str
    failure_modes: list[str]
    dry_run: DryRun
    cost: str
    context: list[Freshness]


class Budget(TypedDict, total=False):
    """What a run may use; `cost` is an amount as text."""

    steps: int
    cost: str
    seconds: float
    tokens: int


class RunOptions(TypedDict, total=False):
    """What a run may be started with. `requested_by` is the person for whom it runs.

    `idle_after` is how many seconds the agent may be silent before people are asked.
    """

    inputs: Mapping[str, Any]
    requested_by: str
    parent: str
    budget: Budget
    labels: Mapping[str, str]
    idle_after: float


class Asking(TypedDict, total=False):
    """What may stand beside a question, and when it expires: in seconds, and what is done then."""

    evidence: Mapping[str, Any]
    expires_in: float
    on_expiry: Literal["cancel", "escalate"]
    note: str


class Finding(TypedDict, total=False):
    """What the agent found beside its evidence, where the call was performed."""

    result: Any
    external_id: str


@dataclass(frozen=True, slots=True)
class State:
    """The agent's own state, in a format of its own: anything that JSON can say, up to 16 MiB.

    With a `base`, the id of a checkpoint with a state of this format and version, `data` holds only
    what was added to it: ``{"/messages": [...]}``, the items by the JSON Pointer of their list.
    """

    data: Any
    format: str = "json"
    version: str = "1"
    base: str | None = None

    def document(self) -> dict[str, Any]:
        kind = {"format": self.format, "version": self.version}
        if self.base is None:
            return {**kind, "data": self.data}
        return {**kind, "base": self.base, "append": self.data}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One call of a group. `key` is the agent's own name for it, unique in the run for ever."""

    key: str
    tool: str
    arguments: Mapping[str, Any]
    words: Words = field(default_factory=Words)

    def document(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "tool": self.tool,
            "arguments": dict(self.arguments),
            **self.words,
        }


@dataclass(frozen=True, slots=True)
class Guidance:
    """What a person told the agent to do differently."""

    id: str
    text: str
    by: str
    at: datetime
    acknowledged: bool

    @classmethod
    def of(cls, document: Document) -> Guidance:
        return cls(
            document["id"],
            document["text"],
            document["by"],
            datetime.fromisoformat(document["at"]),
            document["acknowledged"],
        )


@dataclass(frozen=True, slots=True)
class Question:
    """What a person asks the agent about a step that waits for a decision."""

    id: str
    step: str
    gate: str
    text: str
    at: datetime

    @classmethod
    def of(cls, document: Document) -> Question:
        return cls(
            document["id"],
            document["step"],
            document["gate"],
            document["text"],
            datetime.fromisoformat(document["at"]),
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the tool's verifier says of the receipt: `awaited`, `passed`, `rejected` or `unknown`.

    While it `holds` the run starts no step. `words` are the verifier's own: treat them as text from
    outside.
    """

    status: Literal["awaited", "passed", "rejected", "unknown"]
    holds: bool
    words: str | None
    error: str | None

    @classmethod
    def of(cls, document: Document) -> Verdict:
        return cls(**{one.name: document[one.name] for one in fields(cls)})


@dataclass(frozen=True, slots=True)
class Step:
    """One proposed call as it was last seen.

    `arguments` are those that run; `proposed` those that this process proposed, where it did.
    `reason_code` is of the declared reason that a person chose, where the tenant declares any.
    `state_version` is the run's, and no part of what a step is, nor are the `questions` that wait
    for an answer.
    """

    id: str
    run: str
    key: str | None
    tool: str
    arguments: Mapping[str, Any]
    status: Status
    reason: str | None
    reason_code: str | None
    outcome: str | None
    result: Any
    error: str | None
    external_id: str | None
    attempts: int
    gate: str | None
    interrupt: str | None
    receipts: Sequence[Document]
    verdict: Verdict | None
    state_version: int = field(compare=False)
    settled_at: datetime | None
    proposed: Mapping[str, Any]
    questions: tuple[Question, ...] = field(compare=False)

    @classmethod
    def of(cls, document: Document, proposed: Mapping[str, Any] | None = None) -> Step:
        made = {"settled_at", "proposed", "questions", "verdict"}
        return cls(
            **{one.name: document[one.name] for one in fields(cls) if one.name not in made},
            settled_at=_moment(document["settled_at"]),
            proposed=document["arguments"] if proposed is None else proposed,
            questions=tuple(map(Question.of, document["questions"])),
            verdict=Verdict.of(document["verdict"]) if document["verdict"] else None,
        )

    @property
    def is_held(self) -> bool:
        """Whether a verdict on what it did holds the run, so that its outcome may not stand."""
        return self.verdict is not None and self.verdict.holds

    @property
    def is_settled(self) -> bool:
        return self.settled_at is not None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is on record of a step that succeeded: the same at every pass.

    `source` says who saw it: `executor` and `agent` made the call, `reconciliation` asked the far
    end afterwards, `person` found it out or answered in place of the call. `edited`: a person
    changed the arguments; `arguments` are those that ran.
    """

    step: Step
    result: Any
    external_id: str | None
    source: str
    by: str
    observed_at: datetime
    cost: Decimal | None
    edited: bool

    @classmethod
    def of(cls, step: Step) -> Receipt:
        document = next(
            one
            for one in reversed(step.receipts)
            if one["outcome"] == "succeeded" and not one["compensation"]
        )
        return cls(
            step,
            step.result,
            step.external_id,
            document["source"],
            document["by"],
            datetime.fromisoformat(document["observed_at"]),
            Decimal(document["cost"]) if document["cost"] is not None else None,
            not _shown_as(step.proposed, step.arguments),
        )

    @property
    def tool(self) -> str:
        return self.step.tool

    @property
    def arguments(self) -> Mapping[str, Any]:
        return self.step.arguments

    @property
    def was_run(self) -> bool:
        """Whether the call was made at all: a person may have answered in its place."""
        return self.step.attempts > 0

    @property
    def tell_model(self) -> str:
        """What to tell the model, beside the result, in one sentence."""
        if not self.was_run:
            return f"A person answered in place of {self.tool}, which was not run."
        if self.step.verdict is not None and self.step.verdict.status in {"rejected", "unknown"}:
            return f"{self.tool} was run once and stands, although a check of it did not pass."
        if self.edited:
            return f"{self.tool} was run with arguments that a person changed; see what they are."
        return f"{self.tool} was run once and succeeded."


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _shown_as(proposed: Any, shown: Any) -> bool:
    """Say whether these are the proposed values, wherever they are not masked."""
    if shown == MASK:
        return True
    if isinstance(proposed, Mapping) and isinstance(shown, Mapping):
        return proposed.keys() == shown.keys() and all(
            _shown_as(value, shown[name]) for name, value in proposed.items()
        )
    if isinstance(proposed, list | tuple) and isinstance(shown, list):
        return len(proposed) == len(shown) and all(map(_shown_as, proposed, shown))
    # 1 and 1.0 are one number in JSON; 1 and true are not.
    return isinstance(proposed, bool) == isinstance(shown, bool) and bool(proposed == shown)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the run has used so far, and whether it is to stop."""

    stop_requested: bool
    guidance: tuple[Guidance, ...]
    steps: int
    cost: Decimal
    seconds: float
    tokens: int

    @classmethod
    def of(cls, document: Document) -> Usage:
        used = document["usage"]
        return cls(
            document["stop_requested"],
            tuple(map(Guidance.of, document["guidance"])),
            used["steps"],
            Decimal(used["cost"]),
            used["seconds"],
            used["tokens"],
        )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the run can be resumed from; `state` is the agent's, where it was read.

    `kept_version` is the version that the state is kept under, where it was brought to a newer one
    for this program: it is then no base, so put the state whole once.
    """

    id: str
    sequence: int
    state: State | None
    kept_version: str | None = None

    @classmethod
    def of(cls, document: Document) -> Checkpoint:
        kept = document.get("agent_state")
        return cls(
            document["id"],
            document["sequence"],
            State(kept["data"], kept["format"], kept["version"])
            if kept is not None and "data" in kept
            else None,
        )


@dataclass(frozen=True, slots=True)
class Performed:
    """What a function that makes a call itself may return, where there is more than a result."""

    result: Any
    external_id: str | None = None
    cost: Decimal | str | None = None


@dataclass(slots=True)
class Call:
    """A call that the agent is to make itself, now, with exactly these arguments.

    `idempotency_key` is the same at each try: give it to the far end. `cancel_requested` becomes
    true when a person wants it broken off, `is_stale` when this try counts no longer; a function
    that runs for long looks at them.
    """

    tool: str
    arguments: dict[str, Any]
    idempotency_key: str
    attempt: str
    fence: int
    lease: float
    cancel_requested: bool = False
    is_stale: bool = False

    @classmethod
    def of(cls, step: Step, document: Document, lease: float) -> Call:
        return cls(
            step.tool,
            document["arguments"],
            document["idempotency_key"],
            document["attempt"],
            document["fence"],
            lease,
        )
