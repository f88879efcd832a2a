"""What can go another way, and what to tell the model of it.

Every error has `code`, the stable name, and `tell_model`, one sentence in plain words. What a person
or a policy gave as the reason stands in it as they said it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from abeyance.values import Document, State, Step


class AbeyanceError(Exception):
    """Anything that this client raises."""

    code: str = "error"
    tells: ClassVar[str] = "The call was not made."

    @property
    def tell_model(self) -> str:
        """What to tell the model, in one sentence."""
        return self.tells


# The service could not be asked


class Unreachable(AbeyanceError):
    """The service gave no answer for as long as the client is patient.

    What was sent may have been taken. Do the same again: the client sends it under the same key
    where it names one, and the service knows a step by its key.
    """

    code = "unreachable"
    tells = (
        "The service that makes the calls does not answer, so it is not known yet what became of"
        " this one; do not make it in another way."
    )


# The service refused the request


class ProblemError(AbeyanceError):
    """The service refused: `code` says why, `detail` and `errors` say more (RFC 9457)."""

    code = "problem"
    tells = "The service refused the call, so nothing was done."

    def __init__(self, document: Document) -> None:
        self.document = document
        self.code = document.get("code") or self.code
        self.status: int = document.get("status", 0)
        self.title: str = document.get("title", "")
        self.detail: str = document.get("detail", "")
        self.errors: list[Mapping[str, str]] = list(document.get("errors", ()))
        super().__init__(self._said())

    def _said(self) -> str:
        faults = "; ".join(f"{one.get('pointer')}: {one.get('detail')}" for one in self.errors)
        said = self.detail or self.title or "no reason given"
        return f"{self.status} {self.code}: {said}" + (f" ({faults})" if faults else "")


class Unauthenticated(ProblemError):
    """The key is not valid, or not any more."""

    code = "unauthenticated"


class Forbidden(ProblemError):
    """This agent may not do that: `forbidden`, `people-only`, `not-your-run`."""

    code = "forbidden"
    tells = "This agent may not do that, so nothing was done."


class NotFound(ProblemError):
    """There is no such thing, in this tenant."""

    code = "not-found"


class InvalidRequest(ProblemError):
    """The request is not what the service takes: a fault of the program."""

    code = "invalid-body"


class UnknownTool(ProblemError):
    """The tenant has no such tool."""

    code = "unknown-tool"
    tells = "There is no such tool, so nothing was done; use one of those you were given."


class InvalidArguments(ProblemError):
    """The arguments break the tool's schema; `errors` says where."""

    code = "invalid-arguments"

    @property
    def tell_model(self) -> str:
        faults = "; ".join(
            f"{_argument(one.get('pointer', ''))}: {one.get('detail', '').rstrip('.')}"
            for one in self.errors
        )
        return sentence("The arguments do not fit the tool, so nothing was done", faults)


class StepKeyReused(ProblemError):
    """The key names a step of the run with another tool or other arguments."""

    code = "step-key-reused"
    tells = (
        "Another call was proposed under this name before, so nothing was done; propose this one"
        " under a name of its own."
    )


class RunSuspended(ProblemError):
    """The run is suspended and starts nothing."""

    code = "run-suspended"
    tells = "The run is suspended until a person lets it go on, so nothing was done."


class RunEnded(ProblemError):
    """The run has ended, or is being cancelled."""

    code = "run-ended"
    tells = "The run has ended, so nothing was done and nothing more can be done in it."


class StepsOutstanding(ProblemError):
    """Something of the run is not settled yet."""

    code = "steps-outstanding"
    tells = "The run can't end yet, since something of it is not settled."


class StaleSession(ProblemError):
    """Another process has claimed the run since: this one drives it no longer."""

    code = "stale-session"
    tells = "Another process has taken over this run, so nothing was done here; stop."


class NotAuthorized(ProblemError):
    """The step may not start now."""

    code = "not-authorized"
    tells = "The call may not start yet, so it was not made."


class AlreadyClaimed(ProblemError):
    """The step is being worked on, or is settled."""

    code = "already-claimed"
    tells = "The call is being made already, so it was not made again."


class StaleClaim(ProblemError):
    """The attempt is settled, lapsed or superseded."""

    code = "stale-claim"
    tells = "This try of the call counts no longer; another may be under way, so do not repeat it."


class ReceiptConflict(ProblemError):
    """The attempt was settled by another receipt."""

    code = "receipt-conflict"
    tells = "What became of this call is on record already, and differs from what is said now."


class NotUnknown(ProblemError):
    """The step's outcome is not unknown."""

    code = "not-unknown"
    tells = "What became of this call is known already."


class AlreadyAnswered(ProblemError):
    """The question has another answer."""

    code = "already-answered"
    tells = "The question was answered before, and its first answer stands."


CLASSES: Mapping[str, type[ProblemError]] = {
    one.code: one
    for one in (
        Unauthenticated,
        Forbidden,
        NotFound,
        InvalidRequest,
        UnknownTool,
        InvalidArguments,
        StepKeyReused,
        RunSuspended,
        RunEnded,
        StepsOutstanding,
        StaleSession,
        NotAuthorized,
        AlreadyClaimed,
        StaleClaim,
        ReceiptConflict,
        NotUnknown,
        AlreadyAnswered,
    )
} | {
    "people-only": Forbidden,
    "not-your-run": Forbidden,
    "malformed-json": InvalidRequest,
    "invalid-query": InvalidRequest,
    "invalid-header": InvalidRequest,
    "body-too-large": InvalidRequest,
    "idempotency-key-reused": InvalidRequest,
}


def problem(document: Document) -> ProblemError:
    """Return the error of a refusal; one whose code is not known here is a plain ProblemError."""
    return CLASSES.get(str(document.get("code")), ProblemError)(document)


# The step was taken, and did not succeed


class StepError(AbeyanceError):
    """The step did not succeed. `code` is what became of it, `reason` why, as far as it was said.

    `reason_code` is of the declared reason that a person chose, for a program to go by.
    """

    begins: ClassVar[str] = "{tool} did not succeed"

    def __init__(self, step: Step) -> None:
        self.step = step
        self.reason = step.reason or step.error
        self.reason_code = step.reason_code
        super().__init__(sentence(f"step {step.key or step.id} is {step.status}", self.reason))

    @property
    def tell_model(self) -> str:
        return sentence(self.begins.format(tool=self.step.tool), self.reason)


class Denied(StepError):
    """Policy does not allow it."""

    code = "denied"
    begins = "Policy does not allow this call of {tool}, so it was not run"


class Rejected(StepError):
    """A person rejected it, or nobody decided in time."""

    code = "rejected"
    begins = "The call of {tool} was rejected, so it was not run"


class Revised(StepError):
    """A person withdrew it and said what to do differently: propose anew, under another key."""

    code = "revised"
    begins = "{tool} was not run, since a person wants it done differently"


class Failed(StepError):
    """It was tried, and definitely not done."""

    code = "failed"
    begins = "{tool} was tried and failed"


class Cancelled(StepError):
    """It was withdrawn with the run."""

    code = "cancelled"
    begins = "{tool} was not run, since the run was cancelled"


class Compensated(StepError):
    """It was done, and undone again."""

    code = "compensated"
    begins = "{tool} was performed and then undone"


class OutcomeUnknown(StepError):
    """Nobody could find out whether it was done. The run has ended with that."""

    code = "unknown"
    begins = "Nobody knows whether {tool} was performed, so do not repeat it"


class StillWaiting(StepError):
    """The time the agent wanted to wait is over; the step goes on waiting.

    Propose it again under the same key, whenever and in whatever process: it is the same step.
    """

    code = "waiting"
    begins = "{tool} has no outcome yet: it waits for a person, so do not make the call otherwise"

    @property
    def tell_model(self) -> str:
        return sentence(self.begins.format(tool=self.step.tool))


class NeedsAgent(StepError):
    """The agent runs this tool itself, and nothing was given to run it: `execute` the step."""

    code = "needs-agent"
    begins = "{tool} was not run, since the program has nothing to run it with"


BY_STATUS: Mapping[str, type[StepError]] = {
    one.code: one
    for one in (Denied, Rejected, Revised, Failed, Cancelled, Compensated, OutcomeUnknown)
} | {"compensating": Compensated}


# A run was not completed


class NotCompleted(AbeyanceError):
    """A person let the run go on in place of completing it; `guidance` says what to do first."""

    code = "not-completed"

    def __init__(self, guidance: str) -> None:
        self.guidance = guidance
        super().__init__(sentence(self.code, guidance))

    @property
    def tell_model(self) -> str:
        return sentence(
            "In place of completing the run a person wants something else", self.guidance
        )


# A question was not answered


class NotAnswered(AbeyanceError):
    """The question was put and has no answer: `code` says why, `guidance` what to do instead."""

    code = "not-answered"

    def __init__(self, code: str, question: str, guidance: str | None = None) -> None:
        self.code, self.question, self.guidance = code, question, guidance
        super().__init__(sentence(f"{code}: {question}", guidance))

    @property
    def tell_model(self) -> str:
        return sentence(_UNANSWERED[self.code], self.guidance)


_UNANSWERED: Mapping[str, str] = {
    "waiting": "Nobody has answered the question yet",
    "revised": "In place of an answer a person wants it done differently",
    "cancelled": "The run was cancelled in place of an answer",
}


# The agent's own state can't be read


class UnknownState(AbeyanceError):
    """The saved state is of a format or version that this program can't read.

    Nothing was changed: the checkpoint stays, for a program that can read it.
    """

    code = "unknown-state"
    tells = "What was saved of this work can't be read by this program, so nothing was done."

    def __init__(self, state: State, format: str, version: str, older: Sequence[str]) -> None:  # noqa: A002
        self.format, self.version = state.format, state.version
        reads = f"{format} {version}" + (f" and can migrate {', '.join(older)}" if older else "")
        super().__init__(
            f"The saved state is {state.format} {state.version}; this program reads {reads}."
            " Go on with the program that wrote it, or register a migration from that version."
        )


# What a function that makes a call itself raises, to say what became of it


class NotPerformed(AbeyanceError):
    """Raised by the function that makes a call: it stopped before it began. The call is tried anew."""

    code = "not_performed"
    tells = "The call was not begun."


class Refused(AbeyanceError):
    """Raised by the function that makes a call: it was definitely not done, and never will be."""

    code = "refused"
    tells = "The call was refused."


def sentence(says: str, why: Any = None) -> str:
    """Join what happened and the reason given for it into one sentence."""
    given = str(why).strip() if why is not None else ""
    said = f"{says}: {given}" if given else says
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."


def _argument(pointer: str) -> str:
    """Name an argument as the model knows it, from a pointer into the request."""
    return pointer.partition("/arguments/")[2].replace("/", ".") or "arguments"
