"""Whom a gate asks, and what its expiry does, by what policy says of it now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any, Final

from approvals import clocks
from approvals.models import Gate
from approvals.policy.ends import ENDS, joined_end
from approvals.policy.stages import ONE, Stage, needed, parse_stages
from interrupts.authorizer import Judgement

_OF_ESCALATION: Final = ("escalate_to", "escalate_in")


def take_up(gate: Gate, judgement: Judgement) -> None:
    """Write on the gate who is asked by policy; the stricter end and the longer cool-down stay.

    So do a larger quorum and more stages. When it expires does not change: whoever is asked has
    been told.
    """
    asked, held = asked_for(gate, judgement), _still_escalated(gate, judgement)
    if is_escalated(gate, judgement):
        gate.routing = {**gate.routing, **_cool_down(gate, judgement)}
    else:
        _take_up_routing(gate, judgement)
    gate.quorum = needed(asked)
    if len(asked) > 1:
        gate.stage = gate.stage or 1
        gate.stages = [one.document() for one in asked]
        gate.approvers = list(asked[gate.stage - 1].approvers)
        clocks.keep(gate, judgement, held)


def _still_escalated(gate: Gate, judgement: Judgement) -> dict[str, Any]:
    """Return the gate's routing with those escalations of its stages that hold by this judgement."""
    if "escalations" not in gate.routing:
        return dict(gate.routing)
    kept = {
        number: one
        for number, one in gate.routing["escalations"].items()
        if _is_escalated_in(gate, judgement, int(number))
    }
    return {**gate.routing, "escalations": kept}


def _take_up_routing(gate: Gate, judgement: Judgement) -> None:
    end = clocks.said(gate, judgement)
    said = _routing(judgement) if end is None else clocks.routing_of(end)
    does = judgement.on_expiry if end is None else end.on_expiry
    if gate.on_expiry is not None:
        gate.on_expiry = max(gate.on_expiry, does or "reject", key=ENDS.index)
    if gate.on_expiry != "escalate":
        said = {name: value for name, value in said.items() if name not in _OF_ESCALATION}
    gate.routing = {**said, **_cool_down(gate, judgement)}
    gate.approvers = _approvers(judgement)


def _cool_down(gate: Gate, judgement: Judgement) -> dict[str, Any]:
    """Return the longer cool-down, of the gate's and of what policy says; empty where none is."""
    held, said = gate.routing.get("cool_down", 0), _routing(judgement).get("cool_down", 0)
    return {"cool_down": max(held, said)} if held or said else {}


def escalate(gate: Gate, to: str) -> None:
    """Have a group asked in the place of those asked now: of the open stage, where there are any."""
    gate.routing = {**gate.routing, "escalated_from": list(gate.approvers)}
    if clocks.has(gate):
        _keep_escalation(gate, to)
    gate.approvers = [to]
    if gate.stage is not None:
        gate.routing["escalated_stage"] = gate.stage
        at = gate.stage - 1
        other = {**gate.stages[at], "approvers": [to]}
        gate.stages = [*gate.stages[:at], other, *gate.stages[at + 1 :]]


def _keep_escalation(gate: Gate, to: str) -> None:
    """Keep by stage whom policy named first and who is asked by now: several may be escalated."""
    kept, number = gate.routing.get("escalations", {}), str(gate.stage or 1)
    first = kept.get(number, {}).get("from", list(gate.approvers))
    gate.routing["escalations"] = {**kept, number: {"from": first, "to": to}}


def opened(gate: Gate) -> None:
    """Say of a gate whose stages end by themselves whether others are asked in the one opened now."""
    rest = ("escalated_from", "escalated_stage")
    gate.routing = {name: said for name, said in gate.routing.items() if name not in rest}
    escalated = gate.routing.get("escalations", {}).get(str(gate.stage))
    if escalated is not None:
        gate.routing |= {"escalated_from": escalated["from"], "escalated_stage": gate.stage}


def offer(gate: Gate, reasons: Sequence[Mapping[str, Any]]) -> None:
    """Write on the gate the reasons that whoever decides it chooses from."""
    rest = {name: value for name, value in gate.routing.items() if name != "reasons"}
    gate.routing = {**rest, "reasons": list(reasons)} if reasons else rest


def is_escalated(gate: Gate, judgement: Judgement) -> bool:
    """Whether others are asked in the place of those that this judgement names, by its own word.

    A policy that names others by now, or escalates otherwise, is a new question: they are asked.
    """
    if "escalated_from" not in gate.routing:
        return False
    return _is_escalated_in(gate, judgement, _escalated_at(gate) + 1)


def _is_escalated_in(gate: Gate, judgement: Judgement, number: int) -> bool:
    """Whether that is so in a stage, from 1; a gate without stages is one."""
    escalated = _escalated_in(gate, number)
    if escalated is None:
        return False
    said = _stages(judgement)
    stage = said[number - 1] if number <= len(said) else ONE
    first, to = escalated
    may_ask = (_routing(judgement).get("escalate_to"), stage.end.escalate_to)
    return first == list(stage.approvers) and to in may_ask


def _escalated_in(gate: Gate, number: int) -> tuple[list[str], str | None] | None:
    """Return who was asked first in a stage, and who is asked by now; None: the same."""
    kept = gate.routing.get("escalations", {}).get(str(number))
    if kept is not None:
        return kept["from"], kept["to"]
    if "escalated_from" in gate.routing and number == _escalated_at(gate) + 1:
        return gate.routing["escalated_from"], gate.routing.get("escalate_to")
    return None


def extendable_until(gate: Gate, judgement: Judgement | None = None) -> datetime | None:
    """Return until when people may extend the gate at most; None: no longer than it is.

    That is by what the gate says, or by ``judgement`` where policy says something new. It counts
    from when those were asked who are asked now.
    """
    kept = judgement is None or is_escalated(gate, judgement)
    if clocks.has(gate):
        return clocks.extendable_until(gate, None if kept else judgement)
    said = gate.routing if kept or judgement is None else _routing(judgement)
    seconds, asked_at = said.get("extendable_to"), gate.routing.get("asked_at")
    if seconds is None or gate.expires_at is None:
        return None
    since = datetime.fromisoformat(asked_at) if asked_at else gate.opened_at
    latest = since + timedelta(seconds=seconds)
    return latest if latest > gate.expires_at else None


def approvers(gate: Gate, judgement: Judgement | None) -> list[str]:
    """Return the groups of one of which a decider must be, by what policy says now; none: all."""
    if judgement is None or is_escalated(gate, judgement):
        return list(gate.approvers)
    return _approvers(judgement)


def asked_for(gate: Gate, judgement: Judgement) -> list[Stage]:
    """Return what the gate asks for and what policy says now, together: one stage, or several.

    In each place the larger quorum counts. Whom policy names is asked; where it names nobody there,
    whoever was asked.
    """
    held, said = _held(gate, judgement), _stages(judgement)
    places = list(zip_longest(held, said))
    return [_asked(gate, judgement, at, *place) for at, place in enumerate(places)]


def has_stages(gate: Gate, judgement: Judgement | None) -> bool:
    """Whether the gate is decided in stages, or would be by what policy says now."""
    return bool(gate.stages) or (judgement is not None and len(_stages(judgement)) > 1)


def _asked(
    gate: Gate, judgement: Judgement, at: int, held: Stage | None, said: Stage | None
) -> Stage:
    if held is None or said is None:
        return held or said or ONE
    kept = _is_escalated_in(gate, judgement, at + 1)
    named = held.approvers if kept else said.approvers or held.approvers
    end = held.end if kept else joined_end([held.end, said.end])
    return Stage(named, max(held.quorum, said.quorum), end)


def _held(gate: Gate, judgement: Judgement) -> list[Stage]:
    """Return the gate's stages; those who were asked before an escalation that no longer holds."""
    return [_before(gate, judgement, *one) for one in enumerate(gate.all_stages, 1)]


def _before(gate: Gate, judgement: Judgement, number: int, stage: Stage) -> Stage:
    escalated = _escalated_in(gate, number)
    if escalated is None or _is_escalated_in(gate, judgement, number):
        return stage
    return stage._replace(approvers=tuple(escalated[0]))


def _escalated_at(gate: Gate) -> int:
    return int(gate.routing.get("escalated_stage", 1)) - 1


def _stages(judgement: Judgement) -> tuple[Stage, ...]:
    return parse_stages(judgement.detail)


def _approvers(judgement: Judgement) -> list[str]:
    return list(judgement.detail.get("approvers") or ())


def _routing(judgement: Judgement) -> dict[str, Any]:
    return dict(judgement.detail.get("routing") or {})
