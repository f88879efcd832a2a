"""What a rule would have done over its person's own recorded decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from delegation import calls, canonical
from delegation.canonical import Canonical, Unclear
from delegation.models import DecisionEvent, EventKind
from delegation.predicates import Predicate
from delegation.records import Answer, Request, Tool, Verdict

REFUSALS: Final = frozenset(
    {EventKind.REJECT, EventKind.EDIT, EventKind.WITHDRAW, EventKind.INCIDENT}
)
_VERDICTS: Mapping[str, Verdict] = {
    EventKind.APPROVE: "approve",
    EventKind.EDIT: "edit",
    EventKind.REJECT: "reject",
    EventKind.WITHDRAW: "reject",
}


def request_of(event: DecisionEvent) -> Request | None:
    """Return the call that an event is about; None: nothing is learned of it."""
    return _about(event, event.data["arguments"]) if "arguments" in event.data else None


def lost(event: DecisionEvent) -> Request | None:
    """Return a call without its arguments where something was refused or undone of which nobody
    can read what it was: it may have been anything that the tool does."""
    why = event.data.get("unclear", {}).get("why")
    is_lost = event.kind in REFUSALS and why == calls.LOST
    return _about(event, {}) if is_lost and "risk" in event.data else None


def _about(event: DecisionEvent, arguments: Mapping[str, Any]) -> Request:
    data = event.data
    tool = Tool(str(event.tool), data["tool_number"], data["risk"], data["roles"])
    return Request(
        id=data["step"],
        at=data["asked_at"],
        agent=data["agent"],
        tool=tool,
        arguments=arguments,
        context={"workflow": data["workflow"]},
        identity=data.get("identity", ""),
    )


def answer_of(event: DecisionEvent) -> Answer:
    """Return what the person did; a rule's own decisions and incidents have none."""
    said = event.data.get("answer", {})
    return Answer(
        decision=_VERDICTS[event.kind],
        seconds=said.get("seconds", 0.0),
        opened=said.get("opened", False),
        bulk=said.get("bulk", False),
        final=event.data.get("final"),
    )


def call_of(event: DecisionEvent) -> Canonical | None:
    """Return an event's call as it is compared; None: it has no such form."""
    request = request_of(event)
    if request is None:
        return None
    try:
        return canonical.canonical(request)
    except Unclear:
        return None


def backtest(predicate: Predicate, events: Iterable[DecisionEvent]) -> dict[str, Any]:
    """Return how many of these the rule would have allowed, allowed and the person refused, and
    asked about; and the latest that it would still have asked about. A day's bounds are left out.
    """
    told: dict[str, Any] = {"allowed": 0, "refused": 0, "asked": 0, "still_asks": None}
    for event in events:
        call = call_of(event) if event.kind in _VERDICTS else None
        if call is None:
            continue
        reason = calls.refusal(predicate, call)
        if reason is not None:
            told["asked"] += 1
            told["still_asks"] = {
                "gate": None if event.gate is None else str(event.gate),
                "arguments": event.data["arguments"],
                "agent": event.data["agent"],
                "why": reason.text,
                "at": event.at.isoformat(),
            }
        elif event.kind == EventKind.APPROVE:
            told["allowed"] += 1
        else:
            told["refused"] += 1
    return told
