"""What pages and the API read of rules, events and what they saved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Count, Max, QuerySet

from approvals.models import OPEN_GATES
from delegation import backtests, calls, words
from delegation.models import (
    DecisionEvent,
    Delegation,
    DelegationDay,
    DelegationPreference,
    DelegationUse,
    EventKind,
    LearnerState,
    SpotCheck,
)
from interrupts.models import Tool
from tenants.clock import database_now
from tenants.models import User
from tenants.statements import prepared_rows

MOST_EXAMPLES: Final = 5
MOST_LOOKED_AT: Final = 50  # approvals of a tool's version, for examples
MOST_LISTED: Final = 100


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
    free: int  # the day's first calls, whose sums are not looked at


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


def of_person(user_id: UUID) -> Sections:
    """Return a person's open rules, the newest first."""
    open_rules = Delegation.objects.filter(
        user=user_id, status__in=["suggested", "active", "paused"]
    )
    found = Sections()
    for one in cards(open_rules.order_by("-id")):
        getattr(found, one.delegation.status).append(one)
    return found


def card(delegation_id: UUID) -> Card:
    """Return one rule, whatever became of it. Raises Delegation.DoesNotExist."""
    (found,) = cards([Delegation.objects.get(pk=delegation_id)])
    return found


def cards(rules: Iterable[Delegation]) -> list[Card]:
    """Return rules as their people are shown them, in a bounded number of statements."""
    rows = list(rules)
    pks = [one.pk for one in rows]
    tools = dict(Tool.objects.filter(pk__in={r.tool for r in rows}).values_list("pk", "name"))
    users = {r.user_id for r in rows}
    people = dict(User.objects.filter(pk__in=users).values_list("pk", "username"))
    today = DelegationDay.objects.filter(
        delegation__in=pks, day=database_now().astimezone(UTC).date()
    )
    days = {one.delegation_id: one for one in today}
    used = DelegationUse.objects.filter(delegation__in=pks).values("delegation")
    uses_of = {row["delegation"]: row for row in used.annotate(n=Count("id"), last=Max("at"))}
    checks = _checks(pks)
    tallies = _tallies(users)
    examples = _examples(rows)
    return [
        _card(
            rule,
            tool=tools.get(rule.tool, ""),
            person=people[rule.user_id],
            day=days.get(rule.pk),
            used=uses_of.get(rule.pk, {"n": 0, "last": None}),
            checks=checks[rule.pk],
            tally=tallies.get((rule.user_id, rule.unit), {}),
            examples=examples[rule.pk],
        )
        for rule in rows
    ]


def _checks(pks: Sequence[UUID]) -> Mapping[UUID, list[SpotCheck]]:
    found: dict[UUID, list[SpotCheck]] = defaultdict(list)
    answered = SpotCheck.objects.filter(delegation__in=pks, verdict__isnull=False)
    for one in answered.order_by("id"):
        found[one.delegation_id].append(one)
    return found


def _tallies(users: Iterable[UUID]) -> dict[tuple[UUID, str], Mapping[str, int]]:
    states = LearnerState.objects.filter(user__in=list(users))
    return {
        (one.user_id, unit.partition(":")[0]): tally
        for one in states
        for unit, tally in one.shadow.items()
    }


def _card(
    rule: Delegation,
    *,
    tool: str,
    person: str,
    day: DelegationDay | None,
    used: Mapping[str, Any],
    checks: Sequence[SpotCheck],
    tally: Mapping[str, int],
    examples: Sequence[Example],
) -> Card:
    still = (rule.backtest or {}).get("still_asks")
    last = checks[-1] if checks else None
    return Card(
        delegation=rule,
        tool=tool,
        person=person,
        sentence=[_condition(one) for one in words.clauses(rule.predicate)],
        pairs=words.exceptions(rule.predicate),
        ceilings=[_ceiling(one) for one in rule.predicate.get("ceilings", ())],
        examples=examples,
        still_asks=None if still is None else _still_asks(still),
        still_asks_why=None if still is None else still["why"],
        backtest=_backtest(rule),
        used_today=_day(rule, day),
        uses=used["n"],
        last_use=used["last"],
        last_check=last.at if last else None,
        last_check_verdict=last.verdict if last else None,
        checks=len(checks),
        checks_refused=sum(one.verdict != "approve" for one in checks),
        would_have=tally.get("would", 0),
        would_have_refused=tally.get("refused", 0),
    )


def _condition(one: words.Clause) -> Condition:
    listed = one.values if one.kind == "in" else ()
    ceiling = one.values[0] if one.kind == "at_most" else None
    return Condition(one.name, one.words, listed, ceiling)


def _ceiling(one: Mapping[str, Any]) -> str:
    by, value = one["when"]
    said = words.value_of(by, value)
    return f"{one['f']} at most {one['le']} where {by.removeprefix('@')} is {said}"


def _examples(rules: Sequence[Delegation]) -> Mapping[UUID, list[Example]]:
    """Return by rule the person's latest approvals of what it covers, in one statement."""
    latest: dict[tuple[UUID, str], list[DecisionEvent]] = defaultdict(list)
    parts = [_approved(one) for one in {(one.user_id, one.unit): one for one in rules}.values()]
    for event in parts[0].union(*parts[1:], all=True) if parts else ():
        latest[event.user_id, f"{event.tool}@{event.data['tool_number']}"].append(event)
    return {one.pk: _covered(one, latest[one.user_id, one.unit]) for one in rules}


def _approved(rule: Delegation) -> QuerySet[DecisionEvent]:
    approved = DecisionEvent.objects.filter(
        user=rule.user_id,
        tool=rule.tool,
        kind=EventKind.APPROVE,
        data__tool_number=rule.tool_number,
        data__has_key="arguments",
    )
    return approved.order_by("-at", "-source")[:MOST_LOOKED_AT]


def _covered(rule: Delegation, approved: Sequence[DecisionEvent]) -> list[Example]:
    newest_first = sorted(approved, key=lambda one: (one.at, one.source), reverse=True)
    covered = (one for one in newest_first if _covers(rule, one))
    return [
        Example(one.gate, one.data["arguments"], "approve", one.at)
        for one in islice(covered, MOST_EXAMPLES)
    ]


def _covers(rule: Delegation, event: DecisionEvent) -> bool:
    call = backtests.call_of(event)
    return call is not None and calls.refusal(rule.predicate, call) is None


def _still_asks(still: Mapping[str, Any]) -> Example:
    gate = None if still["gate"] is None else UUID(still["gate"])
    return Example(gate, still["arguments"], "asked", datetime.fromisoformat(still["at"]))


def _backtest(rule: Delegation) -> Backtest | None:
    told = rule.backtest
    if told is None:
        return None
    return Backtest(told["allowed"], told["refused"], told["asked"], told.get("still_asks"))


def _day(rule: Delegation, day: DelegationDay | None) -> Day:
    bounds = rule.predicate.get("per_day", {})
    sums = {} if day is None else day.sums
    limits = bounds.get("calls"), sums, bounds.get("sum", {}), bounds.get("free", 0)
    return Day(day.calls if day else 0, *limits)


def events(delegation_id: UUID) -> list[DecisionEvent]:
    """Return the events that a rule rests on, the newest first, at most 100."""
    rule = Delegation.objects.get(pk=delegation_id)
    found = DecisionEvent.objects.filter(
        user=rule.user_id, tool=rule.tool, data__tool_number=rule.tool_number
    )
    return list(found.order_by("-at", "-source")[:MOST_LISTED])


def shadow(user_id: UUID) -> Mapping[str, Mapping[str, int]]:
    """Return by tool's version what would have run before it was proven: ``{would, refused}``."""
    kept = LearnerState.objects.filter(user=user_id).first()
    return {} if kept is None else kept.shadow


class Owed(NamedTuple):
    """A spot check that nobody has answered, and whose rule it checks."""

    check: UUID
    person: UUID


_OPEN: Final = ", ".join(f"'{state}'" for state in sorted(OPEN_GATES))


def unanswered_sql(*, shape: str, call: str) -> str:
    """Return the statement of `Owed`, the oldest first; both arguments are SQL.

    Of a check that is open that is the same call alone; of one that was closed whatever is compared
    alike, since its agent chose what is free in it.
    """
    return f"""SELECT one.id, rule.user_id FROM delegation_spotcheck one
    JOIN delegation_delegation rule ON rule.id = one.delegation_id
    WHERE one.shape = {shape} AND one.awaits
        AND NOT EXISTS (SELECT FROM approvals_decision said
            WHERE said.gate_id = one.gate AND said.delegation IS NULL)
        AND (one.call = {call} OR NOT EXISTS (SELECT FROM approvals_gate asked_of
            WHERE asked_of.id = one.gate AND asked_of.state IN ({_OPEN})))
    ORDER BY one.id"""  # noqa: S608 - SQL of ours


_UNANSWERED: Final = unanswered_sql(shape="%b::text", call="%b::text")


def unanswered(shape: str, call: str) -> Sequence[Owed]:
    """Return the spot checks for which a call is asked again, the oldest first."""
    return [Owed(*row) for row in prepared_rows(_UNANSWERED, [shape, call])]


def asks_everything(user_id: UUID) -> bool:
    """Say whether the person asked to see everything."""
    said = DelegationPreference.objects.filter(user=user_id, asks_everything_since__isnull=False)
    return said.exists()
