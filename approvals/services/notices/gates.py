"""What mails say of gates: that they wait, expired, or were decided by another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from approvals import deciders, substitutes
from approvals.models import OPEN_GATES, Assignment, Decision, Gate, GateState, Verdict
from approvals.selectors import is_vote
from approvals.services.notices.words import Told, about, link_to, plain, risk_of, undo_of, when
from interrupts.models import Question
from tenants.models import User

MOST_TOLD: Final = 100
_EXPIRIES: Final = {
    "reject": "it is rejected and the run goes on",
    "cancel": "the run is cancelled",
    "escalate": "others are asked",
}
_EXPIRED: Final = {
    "cancel": "Its run was cancelled.",
}
_WAITS: Final = "A decision waits for you."
_HANDED: Final = "Somebody has handed you this decision."
_HANDED_FOR: Final = "Somebody has handed this decision to one you stand in for."
_STILL: Final = "A decision still waits for you, and its time is running out."
_NOBODY: Final = (
    "Nobody may decide this: who could asked for it, answers for its agent, or"
    " has left. Give somebody the authority, or cancel the run. As an admin you decide nothing"
    " by that alone."
)
_TOO_FEW: Final = (
    "Too few people may decide this: a person approves in one stage only, and for one of its stages"
    " not enough are left. Give somebody the authority, or cancel the run. As an admin you decide"
    " nothing by that alone."
)
_ENDED: Final = {
    Verdict.REJECT: ("Rejected", "rejected it"),
    Verdict.REQUEST_CHANGES: ("Sent back", "asked for changes"),
    Verdict.RESPOND: ("Answered", "answered in its place"),
}


def asked(recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    return [_waiting(gate, "", _WAITS, of) for gate, of in _asked_of(recipient, _gates(named))]


def reminded(recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    found = _asked_of(recipient, _gates(named))
    return [_waiting(gate, "Reminder: ", _STILL, of) for gate, of in found]


def standing_in(recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    """Tell a substitute of what waits for those they have begun to stand in for, up to a bound."""
    begun = substitutes.in_force().filter(pk__in=named, substitute=recipient)
    people = set(begun.values_list("person_id", flat=True))
    waits = _related(Gate.objects.filter(substitutes.waits_for(recipient, sorted(people))))
    found = _asked_of(recipient, waits)[:MOST_TOLD]
    return [_waiting(gate, "", _WAITS, of) for gate, of in found if of and of.pk in people]


def handed(recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    """Tell of what was handed to the person, or to one that they stand in for, and waits there."""
    given = Assignment.objects.filter(passed_at=None, handed_at__isnull=False)
    return [
        _waiting(gate, "Handed on: ", _HANDED_FOR, of)
        if of
        else _waiting(gate, "Handed to you: ", _HANDED)
        for gate, of in _asked_of(recipient, _gates(named), given)
    ]


def undecidable(_recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    found = _gates(named).filter(state__in=sorted(OPEN_GATES), undecidable_at__isnull=False)
    return [
        _waiting(gate, "Nobody may decide: ", _TOO_FEW if gate.stages else _NOBODY)
        for gate in found
    ]


def expired(_recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    return [_expired(gate) for gate in _gates(named).filter(state=GateState.EXPIRED)]


def voted(_recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    said = Decision.objects.filter(pk__in=named, withdrawn_at=None).order_by("pk")
    related = said.select_related("user", "acting_for", "gate__run__agent", "gate__step")
    return [_voted(decision) for decision in related]


def answered(_recipient: UUID, named: Sequence[UUID]) -> list[Told]:
    """Tell of answers while they can still be of use: what they say is on the page alone."""
    asked = Question.objects.filter(pk__in=named, answered_at__isnull=False).order_by("pk")
    gates = {gate.pk: gate for gate in _gates([one.gate for one in asked])}
    return [_answered(gate, one) for one in asked if (gate := gates[one.gate]).state in OPEN_GATES]


def _asked_of(
    recipient: UUID, gates: QuerySet[Gate], asked: QuerySet[Assignment] | None = None
) -> list[tuple[Gate, User | None]]:
    """Return those that wait for the person, or for one they stand in for: then with whom.

    The latter they may decide now by that one's authority. It waits as ``asked`` says: by default
    for everybody who has not handed it on.
    """
    people = substitutes.stood_for(recipient)
    waits = substitutes.waits_for(recipient, people)
    found = list(gates.filter(waits, state__in=sorted(OPEN_GATES)))
    rows = Assignment.objects.filter(passed_at=None) if asked is None else asked
    rows = rows.filter(user__in=[recipient, *people], gate__in=found)
    pairs = set(rows.values_list("gate_id", "user_id"))
    left = [gate.pk for gate in found if (gate.pk, recipient) not in pairs]
    may = deciders.entitled(left, [recipient]) if people and left else {}
    names = User.objects.in_bulk(people)
    holders = {
        gate: names[of] for gate, ways in may.items() for _, of in ways if (gate, of) in pairs
    }
    return [
        (gate, holders.get(gate.pk))
        for gate in found
        if (gate.pk, recipient) in pairs or gate.pk in holders
    ]


def _gates(named: Sequence[UUID]) -> QuerySet[Gate]:
    return _related(Gate.objects.filter(pk__in=named))


def _related(rows: QuerySet[Gate]) -> QuerySet[Gate]:
    return rows.select_related("run__agent", "step").order_by("pk")


def _waiting(gate: Gate, start: str, said: str, acting_for: User | None = None) -> Told:
    headline = plain(gate.headline)
    due = f", due {when(gate.expires_at)}" if gate.expires_at else ""
    line = f"{risk_of(gate)}{due}: {headline}"
    facts = [*facts_of(gate), f"Undo: {undo_of(gate)}", _why(gate), *_stage(gate)]
    if acting_for is not None:
        facts.append(f"For: {name_of(acting_for)}, for whom you stand in")
    if gate.expires_at:
        then = _EXPIRIES.get(gate.on_expiry or "reject", "")
        facts.append(f"No answer by {when(gate.expires_at)}: {then}")
    return Told(f"{start}{line}", said, headline, facts, link_to(gate), line=line, foot=about(gate))


def _expired(gate: Gate) -> Told:
    headline = plain(gate.headline)
    then = _EXPIRED.get(gate.on_expiry or "", "It was rejected, and the run went on.")
    facts = [*facts_of(gate), _why(gate)]
    if gate.expires_at:
        facts.append(f"Expired: {when(gate.expires_at)}")
    return Told(
        subject=f"Expired: {headline}",
        said=f"Nobody decided this in time. {then} It was not run.",
        headline=headline,
        facts=facts,
        link=link_to(gate),
        foot=about(gate),
    )


def _voted(decision: Decision) -> Told:
    """Tell who had approved a gate what another has said of it since."""
    gate, who = decision.gate, name_of(decision.user)
    if decision.acting_for is not None:
        who = f"{who} for {name_of(decision.acting_for)}"
    headline = plain(gate.headline)
    start, said = _said(decision, gate, who)
    return Told(
        subject=f"{start}: {headline}",
        said=said,
        headline=headline,
        facts=[*facts_of(gate), f"Decided: {who}, {when(decision.at)}"],
        link=link_to(gate),
        foot=about(gate),
    )


def _answered(gate: Gate, question: Question) -> Told:
    headline = plain(gate.headline)
    return Told(
        subject=f"Answered: {headline}",
        said="The agent has answered what you asked about this. It still waits for a decision.",
        headline=headline,
        facts=[*facts_of(gate), f"You asked: {when(question.at)}"],
        link=link_to(gate),
        foot=about(gate),
    )


def _said(decision: Decision, gate: Gate, who: str) -> tuple[str, str]:
    ended = _ENDED.get(Verdict(decision.verdict))
    if ended is not None:
        return ended[0], f"{who} {ended[1]}, so your approval does not count and it was not run."
    missing = gate.quorum - _given(gate) if gate.state in OPEN_GATES else 0
    more = f" {missing} more {'is' if missing == 1 else 'are'} missing." if missing > 0 else ""
    if decision.edits is not None:
        anew = " Look at it and decide anew." if gate.state in OPEN_GATES else ""
        return (
            "Changed",
            f"{who} approved this with other arguments, so your approval counts no more.{more}{anew}",
        )
    if missing > 0:
        return "One more approval", f"{who} approved this too.{more}"
    return "Approved", f"{who} approved this too, so it has what it takes."


def _given(gate: Gate) -> int:
    return sum(is_vote(one) for one in Decision.objects.filter(gate=gate))


def facts_of(gate: Gate) -> list[str]:
    return [
        f"Risk: {risk_of(gate)}",
        f"Agent: {plain(gate.run.agent.name)}",
        f"Tool: {plain(gate.step.tool_name)}",
    ]


def _why(gate: Gate) -> str:
    return f"Asked because: rule \u201c{plain(gate.rule)}\u201d"


def _stage(gate: Gate) -> list[str]:
    return [f"Stage: {gate.stage} of {len(gate.stages)}"] if gate.stages else []


def name_of(user: User) -> str:
    return plain(user.get_full_name() or user.username)
