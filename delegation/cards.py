"""What pages and API show of rules: plain values that selectors fill, without a query of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from uuid import UUID

from delegation import words
from delegation.models import Delegation


@dataclass(frozen=True, slots=True)
class Example:
    """A call that a rule is told by: one that was decided, or one that it would still ask about."""

    gate: UUID
    headline: str
    at: datetime
    why: str = ""  # why it still asks


@dataclass(frozen=True, slots=True)
class Evidence:
    """The person's own answers that a rule rests on."""

    answered: int = 0
    approved: int = 0
    refused: int = 0
    undone: int = 0
    days: int = 0  # between the first and the last of them


@dataclass(frozen=True, slots=True)
class Backtest:
    """What the rule would have done with what the person decided before.

    ``refused`` are calls that it would have let through and the person refused.
    """

    considered: int = 0
    allowed: int = 0
    refused: int = 0
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """The latest time that it asked although it would not have had to; not answered: no verdict."""

    at: datetime
    verdict: str | None
    gate: UUID


@dataclass(frozen=True, slots=True)
class Used:
    """What ran under a rule in the UTC day that it is."""

    calls: int = 0
    sums: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Card:
    """A rule as its person is shown it."""

    delegation: Delegation
    tool: str  # its name
    evidence: Evidence = Evidence()
    examples: Sequence[Example] = ()
    still_asks: Sequence[Example] = ()
    backtest: Backtest | None = None
    used_today: Used = Used()
    uses: int = 0
    last_check: Check | None = None
    checks: int = 0
    checks_fine: int = 0
    paused_because: str = ""

    @property
    def sentence(self) -> str:
        return words.sentence(self.tool, self.delegation.predicate, self.delegation.limits)

    @property
    def clauses(self) -> list[words.Clause]:
        return words.clauses(self.delegation.predicate)

    @property
    def exceptions(self) -> list[str]:
        return words.exceptions(self.delegation.predicate)

    @property
    def per_day(self) -> words.PerDay:
        return words.per_day(self.delegation.predicate, self.delegation.limits)

    @property
    def share_used(self) -> int | None:
        """How much of the day's calls is used, in hundredths; None: they have no bound."""
        most = self.per_day.calls
        return None if most is None else min(100, 100 * self.used_today.calls // max(most, 1))


@dataclass(frozen=True, slots=True)
class Shadow:
    """What is proved of a person so far, and what their answers so far would have saved.

    ``needed`` is how many answers without a refusal are missing before a rule can be suggested.
    """

    risk: str
    answered: int = 0
    refused: int = 0
    would_have_run: int = 0
    needed: int = 0
    uncounted: int = 0  # approvals that teach nothing: too quick, unopened, several at once


@dataclass(frozen=True, slots=True)
class Sections:
    """A person's rules as the page has them."""

    suggested: Sequence[Card] = ()
    active: Sequence[Card] = ()
    paused: Sequence[Card] = ()


@dataclass(frozen=True, slots=True)
class ChartDay:
    """How many calls asked a person in a day, and how many ran by their rules."""

    day: date
    asked: int = 0
    ran: int = 0


@dataclass(frozen=True, slots=True)
class PersonFigures:
    """A person's share of calls that ran without asking, and the rules that they have."""

    user: UUID
    username: str
    asked: int
    ran: int
    active: int

    @property
    def share(self) -> float:
        return self.ran / max(self.asked + self.ran, 1)


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """How far a tenant's people delegate, and how often that is estimated to be wrong.

    ``p10`` and ``p90`` are of the people's shares; ``wrong`` is refused spot checks weighed by how
    seldom they were made, of all that ran or was checked, and ``wrong_at_most`` its upper bound
    (95 %). None: too little was seen.
    """

    people: Sequence[PersonFigures] = ()
    p10: float | None = None
    p90: float | None = None
    checked: int = 0
    refused: int = 0
    wrong: float | None = None
    wrong_at_most: float | None = None

    @property
    def asked(self) -> int:
        return sum(one.asked for one in self.people)

    @property
    def ran(self) -> int:
        return sum(one.ran for one in self.people)


Offer = Mapping[str, Any]
