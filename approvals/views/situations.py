"""What a decision page is about now: open, or what stands in the way, for this viewer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from approvals.authority import Refusal
from approvals.errors import (
    AlreadyDecided,
    DigestMismatch,
    GateExpired,
    GatePreparing,
    NotAnApprover,
    NotYourStage,
    OwnRequest,
)
from approvals.models import Decision, GateState, Verdict
from approvals.records import Beside
from approvals.shown import GateShown
from config.errors import Problem
from interrupts.models import RunStatus

Kind = Literal[
    "open",
    "voted",
    "preparing",
    "expired",
    "decided",
    "withdrawn",
    "stopped",
    "superseded",
    "not-yours",
    "other-stage",
    "own-run",
    "beyond",
    "changed",
]
_BY_CODE: Final[dict[str, Kind]] = {
    NotAnApprover.code: "not-yours",
    NotYourStage.code: "other-stage",
    OwnRequest.code: "own-run",
    GateExpired.code: "expired",
    GatePreparing.code: "preparing",
    DigestMismatch.code: "changed",
}
# One's authority as it is now; what an edit alone is beyond keeps nobody from the rest.
_BY_REFUSAL: Final[Mapping[Refusal, Kind]] = {
    "not-an-approver": "not-yours",
    "own-request": "own-run",
    "beyond-authority": "beyond",
    "not-your-stage": "other-stage",
}
_BY_STATE: Final[dict[str, Kind]] = {
    GateState.EXPIRED: "expired",
    GateState.SUPERSEDED: "superseded",
}
# Codes that replace the answers; any other refusal is shown beside them, with what was typed.
ENDING: Final = frozenset({*_BY_CODE, AlreadyDecided.code})


@dataclass(frozen=True, slots=True)
class Situation:
    """What is true of a gate for a viewer, and the decision that made it so."""

    kind: Kind
    last: Decision | None  # the one that settled it, or the viewer's own vote
    late_seconds: int | None  # how long before this request it was settled

    @property
    def answerable(self) -> bool:
        return self.kind in {"open", "voted"}


def situation_of(
    shown: GateShown, beside: Beside, viewer: object, now: datetime, refusal: Problem | None = None
) -> Situation:
    """Say what the gate is to the viewer; a refusal that has just come decides."""
    own = _own_vote(shown, viewer)
    last = _settling(shown) or own
    kind = _kind(shown, beside, own, now)
    if refusal is not None and refusal.code in _BY_CODE:
        kind = _BY_CODE[refusal.code]
    settled = shown.gate.settled_at
    late = None
    if refusal is not None and settled is not None and timedelta() <= now - settled:
        late = int((now - settled).total_seconds())
    return Situation(kind, last, late)


def _kind(shown: GateShown, beside: Beside, own: Decision | None, now: datetime) -> Kind:
    gate = shown.gate
    if gate.state not in {GateState.PENDING, GateState.PREPARING}:
        return _settled_kind(shown)
    if gate.expires_at is not None and gate.expires_at <= now:
        return "expired"
    if gate.state == GateState.PREPARING:
        return "preparing"
    if beside.refusal is not None:
        return _BY_REFUSAL[beside.refusal]
    return "open" if own is None else "voted"


def _settled_kind(shown: GateShown) -> Kind:
    gate = shown.gate
    if gate.state == GateState.WITHDRAWN:
        stopped = gate.run.status in {RunStatus.CANCELLING, RunStatus.CANCELLED, RunStatus.FAILED}
        return "stopped" if stopped else "withdrawn"
    return _BY_STATE.get(gate.state, "decided")


def _own_vote(shown: GateShown, viewer: object) -> Decision | None:
    return next((one for one in shown.decisions if one.user_id == viewer and one.counts), None)


def _settling(shown: GateShown) -> Decision | None:
    """Return the decision that settled the gate: the last that counts."""
    if shown.gate.settled_at is None:
        return None
    counting = [one for one in shown.decisions if one.counts]
    ends = [one for one in counting if one.verdict != Verdict.APPROVE]
    return next(reversed(ends or counting), None)
