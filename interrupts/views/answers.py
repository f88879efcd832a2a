"""The answers that an interrupt allows, as forms, and what each form sends as a response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.http import QueryDict

from config.errors import InvalidBody
from interrupts.models import Interrupt, Reason, Resolution, ResponseKind, RunStatus, Step
from interrupts.services.responses import UNSET
from interrupts.transitions.compensation import LEAVE, TRY_AGAIN
from interrupts.transitions.completion import of_completion
from interrupts.views import fields
from interrupts.views.fields import Field
from interrupts.watching import Held, Recovery, Watched

NOTE: Final = Field(name="note", label="Note (kept with your answer)", kind="area")
EVIDENCE: Final = "What shows it? Where did you look?"
LOOKED: Final = "looked"
_LIMITS: Final = {
    "steps": "Steps",
    "cost": "Cost",
    "seconds": "Seconds",
    "tokens": "Tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer on offer: what it does, said before it is chosen."""

    name: str  # of the answer among those of its interrupt
    resolution: str
    title: str
    consequence: str
    button: str
    css: str = ""
    fields: Sequence[Field] = ()
    steps: Sequence[Step] = ()  # of which some may be withdrawn
    hidden: Mapping[str, str] | None = None
    is_open: bool = False
    wrong: Sequence[str] = ()

    @property
    def extra(self) -> Sequence[tuple[str, str]]:
        return list((self.hidden or {}).items())

    @property
    def is_agents(self) -> bool:
        """Say whether its fields are named by the agent."""
        return any(one.outside for one in self.fields)


@dataclass(frozen=True, slots=True)
class Rights:
    """What the person may do, as far as it is shown; it is checked again when they do it."""

    operates: bool
    stops: bool
    answers_inputs: bool
    agrees: bool = True  # that the run completes


# What is on offer


def answers_of(held: Held, seen: Watched, rights: Rights, now: datetime) -> list[Answer]:
    """Return the answers to an open interrupt that the person may give."""
    row = held.interrupt
    allowed = {one["resolution"]: one["consequence"] for one in row.allowed}
    offered: list[Answer] = []
    if row.gate is not None:
        return offered
    if Resolution.RESUME in allowed:
        offered += _resumes(held, seen, rights, allowed[Resolution.RESUME], now)
    if Resolution.COMPENSATE in allowed and rights.operates:
        offered += _compensates(held, allowed[Resolution.COMPENSATE])
    if Resolution.REVISE in allowed and rights.stops:
        offered.append(_revise(seen, allowed[Resolution.REVISE]))
    ending = seen.run.status == RunStatus.CANCELLING
    if Resolution.CANCEL in allowed and rights.operates and not ending:
        offered.append(
            Answer(
                name="cancel",
                resolution="cancel",
                title="Cancel the run for good",
                consequence=allowed[Resolution.CANCEL],
                button=_with_children("Cancel the run", seen.below),
                css="kill",
                fields=(NOTE,),
            )
        )
    return offered


def _with_children(text: str, below: int) -> str:
    if not below:
        return text
    return f"{text} and {below} {'child' if below == 1 else 'children'}"


def _resumes(
    held: Held, seen: Watched, rights: Rights, consequence: str, now: datetime
) -> list[Answer]:
    row = held.interrupt
    if row.kind == ResponseKind.INPUT:
        return [_input(row, consequence)] if rights.answers_inputs else []
    if not rights.operates:
        return []
    if row.kind == ResponseKind.RECOVERY:
        return _recoveries(held, now)
    if row.kind == ResponseKind.EXTENSION:
        return [_extension(row, seen, consequence)]
    ends = of_completion(row)
    if ends and not rights.agrees:
        return []
    return [
        Answer(
            name="resume",
            resolution="resume",
            title=_RELEASES.get(row.reason, "Let the run go on"),
            consequence=consequence,
            button="Complete the run" if ends else "Let the run go on",
            css="pri",
            fields=(NOTE,),
        )
    ]


_RELEASES: Final[Mapping[str, str]] = {
    Reason.OWNER_LOST: "Let the run go on without waiting for the agent",
    Reason.EFFECT_FAILED: "Tell the agent, and let the run go on",
    Reason.VERIFIER_REJECTED: "Accept it as it is",
    Reason.MILESTONE: "Let it be completed",
}


def _input(row: Interrupt, consequence: str) -> Answer:
    if row.step is not None:
        return _known(row)
    return Answer(
        name="resume",
        resolution="resume",
        title="Answer the agent",
        consequence=consequence,
        button="Send the answer to the agent",
        css="pri gate",
        fields=fields.fields_of(row.schema),
    )


def _known(row: Interrupt) -> Answer:
    """What is asked about a step whose tool needs to know it: the names are the tool's."""
    return Answer(
        name="resume",
        resolution="resume",
        title="Say what is known of it now",
        consequence="It counts as known from now on. The step is judged anew, which may ask people.",
        button="Say it, and have the step judged anew",
        css="pri gate",
        fields=[replace(one, outside=False) for one in fields.fields_of(row.schema)],
    )


def _extension(row: Interrupt, seen: Watched, consequence: str) -> Answer:
    exceeded = row.evidence.get("exceeded", {})
    is_of_day = row.evidence.get("budget") == "day"
    in_force = row.evidence.get("limits", {}) if is_of_day else seen.run.budget
    used = row.evidence.get("used", {}) if is_of_day else seen.used
    limits = []
    for name, label in _LIMITS.items():
        limit = in_force.get(name)
        over = ", used up" if name in exceeded else ""
        hint = f"{used[name]} used of {limit}{over}" if limit is not None else "no limit now"
        limits.append(
            Field(
                name=f"{fields.PREFIX}{name}",
                label=f"{label}: new limit",
                kind="number",
                hint=hint,
                place=f"/value/{name}",
            )
        )
    return Answer(
        name="resume",
        resolution="resume",
        title="Give the agent more today" if is_of_day else "Give it more",
        consequence=consequence,
        button="Set the limits of today" if is_of_day else "Set the new limits",
        css="pri",
        fields=limits,
    )


def _revise(seen: Watched, consequence: str) -> Answer:
    return Answer(
        name="revise",
        resolution="revise",
        title="Say what to do differently",
        consequence=consequence,
        button="Tell the agent and go on",
        css="pri gate",
        fields=(
            Field(
                name="guidance",
                label="What the agent should do differently",
                kind="area",
                required=True,
                place="/value/guidance",
                hint="The agent reads this word for word.",
            ),
        ),
        steps=seen.withdrawable,
    )


# An unknown outcome


def _recoveries(held: Held, now: datetime) -> list[Answer]:
    schema = held.interrupt.schema or {}
    offered = schema.get("properties", {}).get("outcome", {}).get("enum", [])
    known = held.recovery
    if known is not None and known.key_until is not None and known.key_until <= now:
        offered = [one for one in offered if one != "not_performed"]
    return [_OUTCOMES[one](held) for one in _OUTCOMES if one in offered]


def _evidence(label: str = EVIDENCE) -> Field:
    return Field(name="evidence", label=label, kind="area", required=True, place="/value/evidence")


def _check_again(_held: Held) -> Answer:
    return Answer(
        name="check_again",
        resolution="resume",
        title="Check again now",
        consequence="Safe. The far end is asked at once; this stays open until it is settled.",
        button="Check again",
        css="pri",
        hidden={"outcome": "check_again"},
    )


def _performed(held: Held) -> Answer:
    return Answer(
        name="performed",
        resolution="resume",
        title="It happened",
        consequence="The step is recorded as done with what you found, and the run goes on.",
        button=f"Record {_call(held)} as done",
        css="gate",
        hidden={"outcome": "performed"},
        fields=(
            _evidence(),
            Field(
                name="external_id",
                label="Reference at the far end, where it has one",
                place="/value/external_id",
            ),
            Field(
                name="result",
                label="Its result as JSON, where the agent needs it",
                kind="json",
                place="/value/result",
            ),
        ),
    )


def _send_again(held: Held) -> Answer:
    known: Recovery | None = held.recovery
    asks = " The far end is asked once more before." if known and known.how == "ask" else ""
    return Answer(
        name="not_performed",
        resolution="resume",
        title="It did not happen, send it once more",
        consequence="It is sent under the same key, once the lost call can no longer land, so that"
        f" a far end that kept the first one does nothing twice.{asks}",
        button=f"Send {_call(held)} again",
        css="gate",
        hidden={"outcome": "not_performed"},
        fields=(
            Field(
                name=LOOKED,
                label=f"I looked at the far end, and {_call(held)} was not performed there.",
                kind="tick",
                required=True,
                place=f"/value/{LOOKED}",
            ),
            _evidence(),
        ),
    )


def _skip(held: Held) -> Answer:
    return Answer(
        name="skip",
        resolution="resume",
        title="It did not happen, skip it",
        consequence="The step is recorded as not done and is not sent again. The agent is told and"
        " may propose something else.",
        button=f"Record {_call(held)} as not done",
        css="gate",
        hidden={"outcome": "skip"},
        fields=(_evidence(),),
    )


def _unresolvable(_held: Held) -> Answer:
    return Answer(
        name="unresolvable",
        resolution="resume",
        title="It can\u2019t be found out",
        consequence="The run ends here, its children too. The step stays unknown for good.",
        button="End the run, keep it unknown",
        css="gate kill",
        hidden={"outcome": "unresolvable"},
        fields=(_evidence("What did you try?"),),
    )


_OUTCOMES: Final = {
    "check_again": _check_again,
    "performed": _performed,
    "not_performed": _send_again,
    "skip": _skip,
    "unresolvable": _unresolvable,
}


def _call(held: Held) -> str:
    return f"step {held.step.position}, {held.step.tool_name}" if held.step else "the call"


def _compensates(held: Held, consequence: str) -> list[Answer]:
    if held.interrupt.reason != Reason.VERIFIER_REJECTED:
        return _after_refusal(held)
    undo = Answer(
        name="undo",
        resolution="compensate",
        title="Undo it",
        consequence=consequence,
        button=f"Undo {_call(held)}",
        css="gate",
        fields=(NOTE,),
    )
    return [undo]


def _after_refusal(held: Held) -> list[Answer]:
    return [
        Answer(
            name=TRY_AGAIN,
            resolution="compensate",
            title="Try to undo it again",
            consequence="The undoing is sent once more, under its own key.",
            button=f"Undo {_call(held)}: try again",
            css="pri",
            hidden={"action": TRY_AGAIN},
        ),
        Answer(
            name=LEAVE,
            resolution="compensate",
            title="Leave it as it is",
            consequence="What was done stays done. Other steps are still undone where that was"
            " asked for.",
            button=f"Leave {_call(held)} done",
            hidden={"action": LEAVE},
        ),
    ]


# What a form sends


def value_of(interrupt: Interrupt, resolution: str, typed: QueryDict) -> Any:
    """Return the value of the response that was typed; UNSET where it takes none.

    Raises InvalidBody where something that has to be typed is missing or can't be read.
    """
    if resolution == Resolution.REVISE:
        guidance = fields.text(typed, "guidance").strip()
        return {"guidance": guidance, "withdraw": typed.getlist("withdraw")}
    if resolution == Resolution.COMPENSATE:
        if interrupt.reason == Reason.VERIFIER_REJECTED:
            return UNSET
        return {"action": fields.text(typed, "action")}
    return _resuming(interrupt, typed) if resolution == Resolution.RESUME else UNSET


def _resuming(interrupt: Interrupt, typed: QueryDict) -> Any:
    match interrupt.kind:
        case ResponseKind.INPUT:
            return fields.read(interrupt.schema, typed)
        case ResponseKind.EXTENSION:
            return _limits_typed(typed)
        case ResponseKind.RECOVERY:
            return _found(typed)
    return UNSET


def _limits_typed(typed: QueryDict) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for name in _LIMITS:
        given = fields.text(typed, f"{fields.PREFIX}{name}").strip()
        if given:
            number = {"type": "string" if name == "cost" else "number", "maxLength": 30}
            limits[name] = fields.read_one(number, given, f"/value/{name}")
    return limits


def _found(typed: QueryDict) -> dict[str, Any]:
    found: dict[str, Any] = {"outcome": fields.text(typed, "outcome")}
    if found["outcome"] == "not_performed" and LOOKED not in typed:
        raise InvalidBody.at(f"/value/{LOOKED}", "Say that you looked at the far end first.")
    for name in ("evidence", "external_id"):
        if given := fields.text(typed, name).strip():
            found[name] = given
    if given := fields.text(typed, "result").strip():
        found["result"] = fields.parsed(given, "/value/result")
    return found


# Shown again, with what was typed and what is wrong with it


def typed_again(
    offered: Sequence[Answer], name: str, typed: QueryDict, refusal: InvalidBody
) -> list[Answer]:
    """Return the answers with the one that was given open, what was typed kept, faults at fields."""
    return [_again(one, typed, refusal) if one.name == name else one for one in offered]


def _again(answer: Answer, typed: QueryDict, refusal: InvalidBody) -> Answer:
    wrong = {fault["pointer"]: fault["detail"] for fault in refusal.errors}
    placed = {one.place for one in answer.fields if one.place}
    kept = [
        replace(one, value=str(typed.get(one.name) or ""), wrong=_fault(one, wrong))
        for one in answer.fields
    ]
    beside = [detail for place, detail in wrong.items() if not _inside(place, placed)]
    return replace(
        answer, fields=kept, is_open=True, wrong=beside or ([] if wrong else [refusal.detail])
    )


def _fault(field: Field, wrong: Mapping[str, str]) -> str:
    if not field.place:
        return ""
    return " ".join(detail for place, detail in wrong.items() if _inside(place, {field.place}))


def _inside(place: str, places: set[str]) -> bool:
    return any(place == one or place.startswith(f"{one}/") for one in places)
