"""Calls that the agent makes itself: claimed, kept alive while they run, and reported as facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from abeyance.driving import Driven, changed, deadline, executor, unknown_for_good, until_running
from abeyance.errors import (
    AlreadyClaimed,
    NotAuthorized,
    NotPerformed,
    ProblemError,
    Refused,
    RunSuspended,
    StaleClaim,
    StillWaiting,
    Unreachable,
)
from abeyance.protocol import Flow, sleep
from abeyance.requests import new_key
from abeyance.values import Call, Performed, Step

BEATS_PER_LEASE: Final = 3
MOST: Final = 2**53 - 1
REPLACED: Final = "It was done. Of its result, what cannot be kept as it was is replaced."
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
# What holds a ready step back, a freeze or an earlier step, need not change its run.
LOOK_AGAIN: Final = 2.0


def claim(run: Driven, step: Step, timeout: float | None) -> Flow[Step | Call]:
    """Claim the step as soon as it may start; or return it settled, where it is by then.

    A try that an earlier process left behind is waited for: its outcome is not guessed. Raises
    StillWaiting.
    """
    until = yield from deadline(timeout)
    lease = float((yield from executor(run, step.tool)).get("lease", 60))
    key = new_key()
    while not step.is_settled and not (yield from unknown_for_good(run, step)):
        if step.status != "ready":
            step = yield from changed(run, step, until)
            continue
        try:
            claimed = yield from run.caller.post(f"steps/{step.id}/claim", run.named(), key)
            return Call.of(step, claimed, lease)
        except RunSuspended:
            if not (yield from until_running(run, until)):
                raise StillWaiting(step) from None
        except (NotAuthorized, AlreadyClaimed):
            step = yield from changed(run, step, until, LOOK_AGAIN)
    return step


def heartbeats(run: Driven, call: Call) -> Flow[None]:
    """Keep the claim alive until the flow is closed, or the claim counts no longer."""
    while True:
        yield from sleep(call.lease / BEATS_PER_LEASE)
        try:
            beat = yield from run.caller.post(
                f"attempts/{call.attempt}/heartbeat", {"fence": call.fence}
            )
        except Unreachable:
            continue
        except ProblemError as refusal:
            call.is_stale = isinstance(refusal, StaleClaim)
            return
        call.cancel_requested = beat["cancel_requested"]


def report(run: Driven, step: Step, call: Call, seen: dict[str, Any]) -> Flow[Step]:
    """Report what was seen of the call; the same again is no change."""
    body = {"fence": call.fence, **seen}
    taken = yield from run.caller.post(f"attempts/{call.attempt}/receipt", body)
    return Step.of(taken, step.proposed)


class Watched:
    """Sees how a function that makes a call ends, and what that proves of the call.

    It returned: the call succeeded. It raised Refused or NotPerformed: what they say. Whatever else
    it raised leaves the outcome unknown, since nobody knows how far it came; its text stays here,
    as it may hold what nobody should see. Only Refused is held back: the failed step tells of it.
    """

    def __init__(self) -> None:
        self.result: Any = None
        self.seen: dict[str, Any] = {"outcome": "unknown"}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        fault: BaseException | None,
        _trace: TracebackType | None,
    ) -> bool:
        self.seen = _succeeded(self.result) if fault is None else _not_succeeded(fault)
        return isinstance(fault, Refused)


def _succeeded(result: Any) -> dict[str, Any]:
    given = result if isinstance(result, Performed) else Performed(result)
    storable = _storable(given.result)
    seen = {
        "outcome": "succeeded",
        "result": storable,
        "error": None if _is_kept(given.result) else REPLACED,
        "external_id": given.external_id,
        "cost": None if given.cost is None else str(given.cost),
    }
    return {name: value for name, value in seen.items() if value is not None}


def _is_kept(value: Any) -> bool:
    """Whether every character of a result can be recorded as it is."""
    if isinstance(value, str):
        return _UNSTORABLE.search(value) is None
    if isinstance(value, Mapping):
        value = value.items()
    elif not isinstance(value, list | tuple):
        return True
    return all(map(_is_kept, value))


def _storable(value: Any) -> Any:
    """Return a result with what the service refuses replaced: it was done, whatever it returned.

    NUL characters and lone surrogates become U+FFFD, integers beyond 2^53-1 their digits.
    """
    if isinstance(value, str):
        return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MOST:
        return str(value)
    if isinstance(value, Mapping):
        return {_storable(name): _storable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(one) for one in value]
    return value


def _not_succeeded(fault: BaseException) -> dict[str, Any]:
    if isinstance(fault, Refused):
        return {"outcome": "failed", "error": str(fault)}
    if isinstance(fault, NotPerformed):
        return {"outcome": "not_performed", "error": str(fault)}
    return {"outcome": "unknown", "error": f"The program ended it with {type(fault).__name__}."}
