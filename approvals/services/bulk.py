"""Approving several gates of low risk at once: shown on one page, then each decided for itself.

Each decision is a transaction of its own under its own run's lock: none holds the locks of two
runs, and what is refused of one keeps no other back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist

from approvals import cases, selectors
from approvals.errors import GatePreparing
from approvals.models import GateState, Verdict
from approvals.services import decisions, gates
from approvals.services.decisions import Decided
from approvals.shown import GateShown
from config.errors import InvalidBody, PeopleOnly, Problem, faults, pointer, translate
from tenants.principal import Principal

MOST: Final = 50
MOST_CHARACTERS: Final = 1_000_000  # of what is shown on one page, beyond its first gate
LONGEST_SECONDS: Final = 30.0  # after which no other decision of a request is begun
OUT_OF_TIME: Final = "The others took too long: this one was not looked at. Send it again."
Status = Literal["approved", "counted", "refused"]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A gate that is to be approved, and the digest of what was seen of it."""

    gate: UUID
    digest: str


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one of them; ``counted`` is a vote of several that are needed."""

    gate: UUID
    status: Status
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One gate of a review: as it is shown, and the snapshot that is kept of it."""

    shown: GateShown
    facts: dict[str, Any]


def review(principal: Principal, gate_ids: Sequence[UUID]) -> list[Reviewed]:
    """Show those of the gates that can be approved together now, in this order.

    They are the first ones up to about MOST_CHARACTERS. That the person was shown each is kept;
    nothing else is changed.
    """
    rows = selectors.gates().select_related("run__agent").in_bulk(gate_ids)
    found = [rows[one] for one in gate_ids if one in rows]
    shown = selectors.shown_gates(found, principal.id)
    listed = list(_up_to_bound(one for one in shown if _fits(one)))
    gates.keep_views([one.shown for one in listed], principal.id)
    return listed


def _fits(shown: GateShown) -> bool:
    gate = shown.gate
    return gate.fits_bulk and gate.state == GateState.PENDING and shown.may_decide


def _up_to_bound(shown: Iterator[GateShown]) -> Iterator[Reviewed]:
    length = 0
    for one in shown:
        facts = one.facts
        before, length = length, length + len(json.dumps(facts, ensure_ascii=False))
        if before and length > MOST_CHARACTERS:
            return
        yield Reviewed(one, facts)


def approve_together(
    principal: Principal, chosen: Sequence[Chosen], *, hold_seconds: float | None = None
) -> list[Told]:
    """Approve each as `decide_gate` does, in this order, and say what became of each.

    Sent again, what was approved before stays as it is and the rest is approved. Raises
    PeopleOnly, and InvalidBody for more than MOST or for one gate twice: then nothing is decided.
    """
    if not principal.is_person:
        raise PeopleOnly
    _check(chosen)
    until = time.monotonic() + LONGEST_SECONDS
    told: list[Told] = []
    for one in chosen:
        if told and time.monotonic() >= until:
            told.append(Told(one.gate, "refused", GatePreparing(OUT_OF_TIME)))
        else:
            told.append(_approve(principal, one, hold_seconds))
    return told


def _check(chosen: Sequence[Chosen]) -> None:
    if len(chosen) > MOST:
        raise InvalidBody.at("/decisions", f"At most {MOST} are approved at once.")
    first: dict[UUID, int] = {}
    twice = [
        (pointer("decisions", place, "gate"), "This gate stands here twice.")
        for place, one in enumerate(chosen)
        if first.setdefault(one.gate, place) != place
    ]
    if twice:
        raise InvalidBody(errors=faults(twice))


def _approve(principal: Principal, one: Chosen, hold_seconds: float | None) -> Told:
    try:
        decided = decisions.decide_gate(
            principal,
            one.gate,
            verdict=Verdict.APPROVE,
            digest=one.digest,
            hold_seconds=hold_seconds,
            bulk=True,
        )
        return Told(one.gate, _status(decided))
    except (Problem, ObjectDoesNotExist) as refusal:
        return Told(one.gate, "refused", translate(refusal))


def _status(decided: Decided) -> Status:
    """Say what an approval came to; one of before may be of a gate that has ended otherwise."""
    if decided.gate.state == GateState.APPROVED:
        return "approved"
    cases.refuse_final(decided.gate)
    return "counted"
