"""How an outcome that nobody knows is found out: by the tool, by sending again, or by a person."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, Literal

from interrupts import catalogue
from interrupts.models import Attempt, Effect, Executor, Step, ToolVersion
from interrupts.work import Work

SETTLE_AFTER_SECONDS, ATTEMPTS, BACKOFF_SECONDS = 10.0, 5, 2.0  # where the tool says nothing
DEATHS: Final = 3  # tries of one step that may end without a word before a person is asked
How = Literal["ask", "resend"]


def version_of(step: Step) -> ToolVersion:
    return catalogue.version(step.tenant_id, step.tool_version_id)


def how(step: Step) -> How | None:
    """How the service itself can find out; None: only a person can.

    A tool that can be asked is asked. One that can't, whose effect may be repeated under its key,
    is sent the same call again. Any other goes straight to a person.
    """
    version = version_of(step)
    if catalogue.offers(version, step.tool_name).reconcile:
        return "ask"
    if version.effect == Effect.IDEMPOTENT and step.executor != Executor.AGENT:
        return "resend"
    return None


def _said(step: Step, name: str, default: float) -> float:
    return float((version_of(step).reconcile or {}).get(name, default))


def settle_after(step: Step) -> timedelta:
    """The longest time a lost call could still land, from when its outcome became unknown."""
    return timedelta(seconds=_said(step, "settle_after", SETTLE_AFTER_SECONDS))


def lands_until(step: Step) -> datetime:
    """Until when the lost call may still land: before that, that it was not performed proves nothing.

    The step's outcome is unknown.
    """
    if step.unknown_at is None:
        raise ValueError("the step's outcome is not unknown")
    return step.unknown_at + settle_after(step)


def plan(work: Work, step: Step) -> None:
    """Set when a step that has just become unknown is asked about, if it can be."""
    step.asked, step.ask_at = 0, None
    by = how(step)
    if by == "ask" or (by == "resend" and not set_aside(step)):
        plan_at(work, step, lands_until(step))


def plan_at(work: Work, step: Step, at: datetime) -> None:
    step.ask_at = at
    work.due(at)


def plan_next(work: Work, step: Step) -> bool:
    """Ask again later, with doubling backoff, up to the bound; False: only a person settles it."""
    if step.asked >= bound(step):
        step.ask_at = None
        return False
    backoff = _said(step, "backoff", BACKOFF_SECONDS) * (1 << min(step.asked - 1, 16))
    step.ask_at = work.now + timedelta(seconds=backoff)
    work.due(step.ask_at)
    return True


def bound(step: Step) -> int:
    """How often the tool is asked before only a person can settle the step."""
    return int(_said(step, "attempts", ATTEMPTS))


def set_aside(step: Step) -> bool:
    """Say whether so many of the step's tries ended without a word that no worker tries again."""
    return Attempt.objects.filter(step=step, lapsed_at__isnull=False).count() >= DEATHS


def key_is_honoured(work: Work, step: Step) -> bool:
    """Say whether the far end still knows the step's key, so that sending again is no second call.

    What an agent runs itself is begun again by the agent.
    """
    version = version_of(step)
    if step.executor == Executor.AGENT:
        return True
    lifetime = version.key_lifetime
    if lifetime is None:
        return version.effect == Effect.IDEMPOTENT
    first = Attempt.objects.filter(step=step).order_by("fence").first()
    began = first.started_at if first else work.now
    return began + timedelta(seconds=lifetime) > work.now


def on_offer(work: Work, step: Step) -> list[str]:
    """The answers a person may give about an unknown step, now."""
    offered = ["performed"]
    if key_is_honoured(work, step):
        offered.append("not_performed")
    offered.append("skip")
    if how(step) is not None:
        offered.append("check_again")
    return [*offered, "unresolvable"]


def recovery_schema(offered: list[str]) -> dict[str, Any]:
    """The JSON Schema of a recovery; everything but ``check_again`` needs evidence."""
    checks_again = {"properties": {"outcome": {"const": "check_again"}}}
    return {
        "type": "object",
        "required": ["outcome"],
        "additionalProperties": False,
        "properties": {
            "outcome": {"enum": offered},
            "evidence": {"type": "string", "minLength": 1, "maxLength": 10000},
            "result": {},
            "external_id": {"type": "string", "maxLength": 1000},
        },
        "anyOf": [checks_again, {"required": ["evidence"]}],
    }
