"""What a tool needs to know for a call of it, as its version declares: said by the agent, and fresh.

How old something is at most is counted from the proposal that said it: the agent's ``fresh_until``
only shortens that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from interrupts import catalogue
from interrupts.models import Reason, Resolution, ResponseKind, Step, StepStatus, ToolVersion
from interrupts.transitions import holds
from interrupts.transitions.moves import move_step
from interrupts.work import Work
from tenants.api.checks import read_instant
from tenants.scope import current_tenant_id

STALE: Final = "what it was to know is not fresh any more"
MEMBERS: Final = ("context", "context_until")


def state(work: Work, step: Step, version: ToolVersion) -> bool:
    """Say on a step until when what this version of its tool needs is fresh; False: it needs nothing.

    By what its agent said as it proposed the step: whatever a person said was said of an older one.
    """
    if not version.context and step.context is None:
        return False
    said: dict[str, datetime] = {}
    for one in step.proposal.get("context", []):
        until = read_instant(one["fresh_until"])
        said[one["name"]] = min(until, said.get(one["name"], until))
    for need in version.context:
        if need["name"] in said:
            longest = step.created_at + timedelta(seconds=need["longest_age"])
            said[need["name"]] = min(said[need["name"]], longest)
    _write(work, step, {need["name"]: said.get(need["name"]) for need in version.context})
    return True


def _write(work: Work, step: Step, context: Mapping[str, datetime | None]) -> None:
    known = [until for until in context.values() if until is not None]
    step.context = {name: until and until.isoformat() for name, until in context.items()} or None
    step.context_until = min(known) if known and len(known) == len(context) else None
    work.note("step.context", step=step.pk, context=step.context, until=step.context_until)


def lacking(step: Step, now: datetime) -> dict[str, str | None]:
    """Return what is not known for the call now: since when it is stale, by name (None: not said)."""
    if step.context is None:
        return {}
    return {
        name: until
        for name, until in step.context.items()
        if until is None or datetime.fromisoformat(until) <= now
    }


def fresh_for(step: Step, until: datetime | None) -> datetime | None:
    """Return the end of an authorization that holds ``until`` (None: for good) and while it knows."""
    ends = [one for one in (until, step.context_until) if one is not None]
    return min(ends, default=None)


def hold(work: Work, step: Step, missed: Mapping[str, str | None]) -> None:
    """Have a step wait until a person says what it misses; a gate that asked about it is over."""
    if step.status != StepStatus.WAITING:
        move_step(step, StepStatus.WAITING)
    step.held_by = "context"
    step.save(update_fields=["status", "held_by", "twin"])
    work.note("step.held", step=step.pk, by="context", twin=step.twin)
    holds.open_holds(work, _asking(step, missed))


def _asking(step: Step, missed: Mapping[str, str | None]) -> holds.Hold:
    told = ", ".join(
        f"{name} (stale since {_clock(since)})" if since else f"{name} (not said)"
        for name, since in missed.items()
    )
    return holds.Hold(
        reason=Reason.CONTEXT_MISSING,
        kind=ResponseKind.INPUT,
        question=f"{step.tool_name} does not run without knowing: {told}. What is known of it now?",
        who=("operator", "admin", "requester"),
        allowed=(Resolution.RESUME, Resolution.REVISE, Resolution.CANCEL),
        schema=_schema(missed),
        step=step.pk,
        evidence={
            "tool": step.tool_name,
            "missing": [name for name, since in missed.items() if since is None],
            "stale": {name: since for name, since in missed.items() if since is not None},
        },
    )


def _clock(since: str) -> str:
    return datetime.fromisoformat(since).strftime("%Y-%m-%d %H:%M:%S %Z")


def _schema(missed: Iterable[str]) -> dict[str, Any]:
    """What a person answers: what they know of each thing that is missed, in a text."""
    names = list(missed)
    text = {"type": "string", "minLength": 1, "maxLength": 2000}
    return {
        "type": "object",
        "required": names,
        "additionalProperties": False,
        "properties": {name: {**text, "title": name} for name in names},
    }


def give(work: Work, step: Step, names: Iterable[str]) -> None:
    """Take what a person said of these as known from now on, for as long as the tool declares."""
    version = catalogue.version(current_tenant_id(), step.tool_version_id)
    ages = {need["name"]: need["longest_age"] for need in version.context}
    given = set(names)
    known = {
        name: work.now + timedelta(seconds=ages.get(name, 0))
        if name in given
        else until and datetime.fromisoformat(until)
        for name, until in (step.context or {}).items()
    }
    _write(work, step, known)
    step.save(update_fields=MEMBERS)
