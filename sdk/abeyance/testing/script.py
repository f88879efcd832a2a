"""What a test says in advance: what becomes of proposals, and what questions are answered with."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

Kind = Literal[
    "allow",
    "approve",
    "deny",
    "reject",
    "request_changes",
    "respond",
    "fail",
    "lose",
    "wait",
    "misfit",
]
Found = Literal["performed", "failed", "never"]


class Unscripted(AssertionError):
    """The agent waits for something that nothing in the test will bring about."""


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was made."""

    run: str
    key: str | None
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one proposal."""

    kind: Kind = "allow"
    reason: str | None = None
    code: str | None = None  # of the declared reason that the person chose
    arguments: Mapping[str, Any] | None = None
    value: Any = None
    found: Found = "performed"
    pointer: str = ""
    questions: tuple[str, ...] = ()  # that the agent is asked before it is decided

    @property
    def asks(self) -> bool:
        """Whether a person is asked, so that the run is suspended meanwhile."""
        return self.kind in {"approve", "reject", "request_changes", "respond", "wait"}


@dataclass(slots=True)
class ToolScript:
    """What becomes of the next proposals of one tool, one verdict each; then they are allowed."""

    verdicts: deque[Verdict] = field(default_factory=deque)
    questions: list[str] = field(default_factory=list)

    def allow(self) -> Self:
        """Policy allows it."""
        return self._then(Verdict())

    def approve(self, arguments: Mapping[str, Any] | None = None) -> Self:
        """A person approves it, with these arguments in place of those proposed, if any."""
        return self._then(Verdict("approve", arguments=arguments))

    def deny(self, reason: str) -> Self:
        """Policy denies it."""
        return self._then(Verdict("deny", reason))

    def reject(self, reason: str, *, code: str | None = None) -> Self:
        """A person rejects it, with the declared reason of this code where one is given."""
        return self._then(Verdict("reject", reason, code))

    def request_changes(self, reason: str, *, code: str | None = None) -> Self:
        """A person wants it done differently, likewise."""
        return self._then(Verdict("request_changes", reason, code))

    def respond(self, value: Any) -> Self:
        """A person answers in place of running it."""
        return self._then(Verdict("respond", value=value))

    def fail(self, error: str) -> Self:
        """It is tried, and definitely not done."""
        return self._then(Verdict("fail", error))

    def lose(self, found: Found = "performed") -> Self:
        """Its answer is lost; a person finds out that it was performed, that it failed, or never."""
        return self._then(Verdict("lose", found=found))

    def ask(self, question: str) -> Self:
        """Whoever decides the next one asks the agent this first, and waits for its answer."""
        self.questions.append(question)
        return self

    def wait(self) -> Self:
        """Nobody decides."""
        return self._then(Verdict("wait"))

    def misfit(self, pointer: str, detail: str) -> Self:
        """Its arguments break the tool's schema, at this pointer into them."""
        return self._then(Verdict("misfit", detail, pointer=pointer))

    def next(self) -> Verdict:
        return self.verdicts.popleft() if self.verdicts else Verdict()

    def _then(self, verdict: Verdict) -> Self:
        self.verdicts.append(replace(verdict, questions=tuple(self.questions)))
        self.questions.clear()
        return self


@dataclass(frozen=True, slots=True)
class Reply:
    """What a question is answered with: a value, or guidance in its place."""

    value: Any = None
    guidance: str | None = None
