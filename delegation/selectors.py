"""What pages and the API read of rules, events and what they saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from uuid import UUID

from approvals.models import Gate
from delegation.models import DecisionEvent, Delegation, DelegationUse, LearnerState


@dataclass(frozen=True, slots=True)
class Condition:
    """One part of a rule in plain words: of which argument, and what it may be."""

    field: str  # the argument's name; "agent" and what the service knows without their mark
    words: str  # "basic or gold", "at most 75", "anything"
    values: Sequence[str] = ()  # of a list
    ceiling: str | None = None  # of an amount


@dataclass(frozen=True, slots=True)
class Example:
    """A call that a person decided, or a rule: whose, when, and how."""

    gate: UUID | None
    arguments: Mapping[str, Any]
    verdict: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Backtest:
    """What a rule would have done over its person's own recorded decisions."""

    allowed: int  # of those that the person approved
    refused: int  # that it would have allowed and the person refused
    asked: int  # that it would have left to the person
    still_asks: Mapping[str, Any] | None = None  # {arguments, why, gate, at}: one of these


@dataclass(frozen=True, slots=True)
class Day:
    """What of a day is used: calls, and sums by amount; limits None: none."""

    calls: int
    calls_limit: int | None
    sums: Mapping[str, str]
    sum_limits: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Card:
    """One rule as its person is shown it."""

    delegation: Delegation
    tool: str  # its name
    person: str  # whom it speaks for
    sentence: Sequence[Condition]
    pairs: Sequence[str]  # that it does not allow together, in words
    ceilings: Sequence[str]  # of amounts by a value, in words
    examples: Sequence[Example]  # of what was approved, newest first, at most 5
    still_asks: Example | None
    still_asks_why: str | None
    backtest: Backtest | None
    used_today: Day
    uses: int  # in all
    last_use: datetime | None
    last_check: datetime | None
    last_check_verdict: str | None
    checks: int  # answered
    checks_refused: int
    would_have: int = 0  # shadow: so many it would have allowed before it could
    would_have_refused: int = 0  # of which the person refused


@dataclass(frozen=True, slots=True)
class Sections:
    suggested: list[Card] = field(default_factory=list)
    active: list[Card] = field(default_factory=list)
    paused: list[Card] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DayCount:
    """How many calls a person was asked about on a day, and how many ran without."""

    day: date
    asked: int
    ran: int


@dataclass(frozen=True, slots=True)
class Removed:
    """How much of what a person may be asked about ran without asking."""

    user: UUID
    name: str
    asked: int
    ran: int
    share: float  # 0..1
    careless: int  # of the last approvals that taught nothing
    approvals: int  # of how many


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """What delegation saves in a tenant, and how wrong it is estimated to be."""

    p10: float | None
    p90: float | None
    wrong_rate: float | None  # of what ran, by the spot checks; None: none was answered
    wrong_rate_bound: float | None  # at most, with 95 %
    checks: int
    people: list[Removed] = field(default_factory=list)


def of_person(user_id: UUID) -> Sections:
    """Return a person's open rules."""
    raise NotImplementedError


def card(delegation_id: UUID) -> Card:
    """Return one rule, whatever became of it. Raises Delegation.DoesNotExist."""
    raise NotImplementedError


def uses(delegation_id: UUID, after: UUID | None = None) -> list[DelegationUse]:
    """Return what ran under a rule, the newest first, at most 100, older than ``after``."""
    raise NotImplementedError


def events(delegation_id: UUID) -> list[DecisionEvent]:
    """Return the events that a rule rests on, the newest first, at most 100."""
    raise NotImplementedError


def chart(user_id: UUID, days: int = 30) -> list[DayCount]:
    """Return by UTC day what the person was asked about and what ran without, the oldest first."""
    raise NotImplementedError


def tenant_figures() -> TenantFigures:
    """Return what is saved and how wrong it may be, over the last 30 days."""
    raise NotImplementedError


def offer(gate: Gate, user_id: UUID) -> dict[str, Any] | None:
    """Return the suggestion that the person may accept for calls like the gate's; None: none.

    ``{id, version, sentence, allowed, refused, asked}``: the back-test's figures.
    """
    raise NotImplementedError


def why_asked(gate: Gate, user_id: UUID) -> str | None:
    """Say in plain words why the person is asked although they approve the like; None: no rule.

    A spot check is not told from another prompt.
    """
    raise NotImplementedError


def shadow(user_id: UUID) -> list[LearnerState]:
    """Return by tool what would have run before it was proven, and how the person decided it."""
    raise NotImplementedError


def asks_everything(user_id: UUID) -> bool:
    """Say whether the person asked to see everything."""
    raise NotImplementedError
