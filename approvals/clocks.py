"""Gates of which a stage has an end of its own, which begins when the stage is opened.

Such a gate ends by its open stage or with the whole decision, whichever comes first: that is what
the gate says, and its routing. The end of the whole is kept apart, as ``whole`` in the routing. A
gate whose stages have no end of their own has none of this, and ends with the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from approvals import snapshots
from approvals.models import OPEN_GATES, Gate
from approvals.policy.ends import ENDS, NEVER, End, joined_end, strictest
from approvals.policy.stages import Stage, parse_stages
from interrupts.authorizer import Judgement

WHOLE: Final = "whole"
SAVED: Final = ("routing", "expires_at", "on_expiry")
_STAGE: Final = "stage"
_KEPT: Final = ("asked_at", "ends_by", "escalations")  # whatever policy says since
_OF_THE_FIRST: Final = ("escalate_to", "escalate_in", "warn_before", "extendable_to")


def has(gate: Gate) -> bool:
    """Say whether the gate ends by what its open stage says, too."""
    return WHOLE in gate.routing


def is_over(gate: Gate, now: datetime) -> bool:
    """Say whether an open gate's time is up, whoever has looked."""
    return gate.state in OPEN_GATES and gate.expires_at is not None and gate.expires_at <= now


def said(gate: Gate, judgement: Judgement) -> End | None:
    """Return the end that policy gives what is asked now: of the open stage or the whole decision.

    None where the judgement asks by no rule.
    """
    if "end" not in judgement.detail:
        return None
    whole = _whole_said(judgement)
    if has(gate) and gate.routing["ends_by"] == WHOLE:
        return whole
    return joined_end([whole, _nth(parse_stages(judgement.detail), gate.stage or 1)])


def _nth(stages: tuple[Stage, ...], number: int) -> End:
    return stages[number - 1].end if number <= len(stages) else NEVER


def _whole_said(judgement: Judgement) -> End:
    return End(**judgement.detail.get("end", {}))


def routing_of(end: End) -> dict[str, Any]:
    """Return who is asked when by an end, beyond the first."""
    found = {
        "escalate_to": end.escalate_to,
        "escalate_in": end.expires_in if end.escalate_to else None,
        "warn_before": end.warn_before,
        "extendable_to": end.extendable_to,
    }
    return {name: value for name, value in found.items() if value is not None}


def _have_ends(stages: tuple[Stage, ...]) -> bool:
    return any(one.end.expires_in is not None for one in stages)


# As they are opened


def begin(gate: Gate, judgement: Judgement, now: datetime) -> None:
    """Have the clocks of a gate that is opened start, where one of its stages has its own."""
    if _have_ends(gate.all_stages):
        end = _whole_said(judgement)
        expires_at = None if end.expires_in is None else now + timedelta(seconds=end.expires_in)
        gate.routing = {**gate.routing, WHOLE: _whole(expires_at, end)}
        start(gate, now)


def start(gate: Gate, now: datetime) -> None:
    """Have the open stage's clock start now: the gate ends by it, or with the whole decision."""
    own, whole = _own(gate), _end_of(gate.routing[WHOLE])
    ends_at = None if own.expires_in is None else now + timedelta(seconds=own.expires_in)
    latest = _latest(gate)
    by_stage = ends_at is not None and (latest is None or ends_at < latest)
    first = own if by_stage else whole
    if ends_at is not None and ends_at == latest:
        does = strictest((one.on_expiry, one.escalate_to) for one in (own, whole))
        first = whole._replace(on_expiry=does[0], escalate_to=does[1])
    gate.expires_at = ends_at if by_stage else latest
    gate.on_expiry = None if gate.expires_at is None else first.on_expiry
    rest = {name: kept for name, kept in gate.routing.items() if name not in _OF_THE_FIRST}
    gate.routing = {
        **rest,
        **routing_of(_warned(first, whole)),
        "asked_at": snapshots.instant(now),
        "ends_by": _STAGE if by_stage else WHOLE,
    }


def _warned(first: End, whole: End) -> End:
    """Return the end with the warning of the whole where it says none and is long enough."""
    before = first.warn_before or whole.warn_before
    return first._replace(warn_before=before if before and before < first.seconds else None)


def _own(gate: Gate) -> End:
    return _nth(gate.all_stages, gate.stage or 1)


def _whole(expires_at: datetime | None, end: End) -> dict[str, Any]:
    return {"expires_at": snapshots.instant(expires_at), **end.document()}


def _end_of(whole: Mapping[str, Any]) -> End:
    return End(**{name: kept for name, kept in whole.items() if name in End._fields})


def _latest(gate: Gate) -> datetime | None:
    """Return when the whole decision ends; None: never."""
    at = gate.routing[WHOLE]["expires_at"]
    return None if at is None else datetime.fromisoformat(at)


# As policy changes


def keep(gate: Gate, judgement: Judgement, held: Mapping[str, Any]) -> None:
    """Keep the clocks that run, beside what was taken up of a newer policy; ``held`` was routed.

    The whole ends when it did, and the stricter way. Stages that are not open end by the shorter.
    """
    if WHOLE not in held and not _have_ends(gate.all_stages):
        return
    kept = {name: held[name] for name in _KEPT if name in held}
    gate.routing = {**gate.routing, **kept, WHOLE: _kept_whole(gate, judgement, held)}
    gate.routing.setdefault("ends_by", WHOLE)


def _kept_whole(gate: Gate, judgement: Judgement, held: Mapping[str, Any]) -> dict[str, Any]:
    end = _whole_said(judgement)
    if WHOLE not in held:
        return _whole(gate.expires_at, end._replace(on_expiry=gate.on_expiry))
    before = held[WHOLE]
    if before["expires_at"] is None:
        return dict(before)
    does = max(before["on_expiry"], end.on_expiry or "reject", key=ENDS.index)
    to = end.escalate_to if does == "escalate" else None
    return {**before, **end._replace(on_expiry=does, escalate_to=to).document()}


# As time passes


def escalate(gate: Gate, to: str, seconds: int, now: datetime) -> None:
    """Have the clock start for those who are asked now: by whichever end they are, it is rejected."""
    if gate.routing["ends_by"] == _STAGE:
        at = (gate.stage or 1) - 1
        ended = {**gate.stages[at], "on_expiry": "reject"}
        ended.pop("escalate_to", None)
        gate.stages = [*gate.stages[:at], ended, *gate.stages[at + 1 :]]
    else:
        whole = _end_of(gate.routing[WHOLE])._replace(on_expiry="reject", escalate_to=None)
        again = _whole(now + timedelta(seconds=seconds), whole)
        gate.routing[WHOLE] = {**again, "asked_at": snapshots.instant(now)}
    start(gate, now)
    gate.routing.setdefault("escalate_to", to)


def extendable_until(gate: Gate, judgement: Judgement | None) -> datetime | None:
    """Return until when people may have the gate wait at most, by what it ends by; None: no longer.

    That is by what the gate says, or by ``judgement`` where policy says something new. A stage is
    extended no further than the whole decision is.
    """
    own, whole = _own(gate), _end_of(gate.routing[WHOLE])
    if judgement is not None:
        own = _nth(parse_stages(judgement.detail), gate.stage or 1)
        whole = _whole_said(judgement)
    latest = _whole_until(gate, whole.extendable_to)
    if gate.routing["ends_by"] == _STAGE:
        seconds = own.extendable_to or whole.extendable_to or 0
        opened = datetime.fromisoformat(gate.routing["asked_at"])
        of_stage = opened + timedelta(seconds=seconds)
        latest = of_stage if latest is None else min(of_stage, latest)
    later = latest is not None and gate.expires_at is not None and latest > gate.expires_at
    return latest if later else None


def _whole_until(gate: Gate, seconds: int | None) -> datetime | None:
    """Return how long the whole decision may wait at most; None: it has no end."""
    ends_at = _latest(gate)
    if ends_at is None or seconds is None:
        return ends_at
    asked_at = gate.routing[WHOLE].get("asked_at")
    since = datetime.fromisoformat(asked_at) if asked_at else gate.opened_at
    return max(ends_at, since + timedelta(seconds=seconds))


def extend(gate: Gate, expires_at: datetime) -> None:
    """Have the whole decision wait as long as what it is now, where it would end before."""
    latest = _latest(gate) if has(gate) else None
    if latest is not None and latest < expires_at:
        whole = {**gate.routing[WHOLE], "expires_at": snapshots.instant(expires_at)}
        gate.routing = {**gate.routing, WHOLE: whole}
