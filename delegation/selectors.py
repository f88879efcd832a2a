"""What pages and the API read of rules, events and what they saved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Max

from approvals.models import Gate
from delegation import calls, words
from delegation.canonical import Unclear, canonical
from delegation.models import (
    DecisionEvent,
    Delegation,
    DelegationDay,
    DelegationPreference,
    DelegationStatus,
    DelegationUse,
    EventKind,
    LearnerState,
    SpotCheck,
)
from interrupts import catalogue, content
from interrupts.models import Content, Run, Tool
from tenants.clock import database_now
from tenants.models import User
from tenants.scope import current_tenant_id
from tenants.sealing import SealBroken

MOST_EXAMPLES: Final = 5
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
    today = DelegationDay.objects.filter(delegation__in=pks, day=database_now().date())
    days = {one.delegation_id: one for one in today}
    used = DelegationUse.objects.filter(delegation__in=pks).values("delegation")
    uses_of = {row["delegation"]: row for row in used.annotate(n=Count("id"), last=Max("at"))}
    checks = _checks(pks)
    tallies = _tallies(users)
    return [
        _card(
            rule,
            tool=tools.get(rule.tool, ""),
            person=people[rule.user_id],
            day=days.get(rule.pk),
            used=uses_of.get(rule.pk, {"n": 0, "last": None}),
            checks=checks[rule.pk],
            tally=tallies.get((rule.user_id, rule.unit), {}),
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
        examples=_examples(rule),
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
    return f"{one['f']} at most {one['le']} where {by.removeprefix('@')} is {value}"


def _examples(rule: Delegation) -> list[Example]:
    """Return the person's latest approvals of what the rule covers."""
    approved = DecisionEvent.objects.filter(
        user=rule.user_id,
        tool=rule.tool,
        kind=EventKind.APPROVE,
        data__tool_number=rule.tool_number,
        data__has_key="arguments",
    )
    return [
        Example(one.gate, one.data["arguments"], "approve", one.at)
        for one in approved.order_by("-at", "-source")[:MOST_EXAMPLES]
    ]


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
    return Day(day.calls if day else 0, bounds.get("calls"), sums, bounds.get("sum", {}))


def events(delegation_id: UUID) -> list[DecisionEvent]:
    """Return the events that a rule rests on, the newest first, at most 100."""
    rule = Delegation.objects.get(pk=delegation_id)
    found = DecisionEvent.objects.filter(
        user=rule.user_id, tool=rule.tool, data__tool_number=rule.tool_number
    )
    return list(found.order_by("-at", "-source")[:MOST_LISTED])


# Beside a gate


def offer(gate: Gate, user_id: UUID) -> dict[str, Any] | None:
    """Return the suggestion that the person may accept so that the gate's very call is not asked.

    None: there is none.
    ``{id, version, sentence, allowed, refused, asked}``: the back-test's figures.
    """
    suggested = _of_gate(gate, user_id, [DelegationStatus.SUGGESTED])
    covering = [one for one in suggested if one.backtest and _why(one, gate) is None]
    if not covering:
        return None
    rule, told = covering[0], covering[0].backtest or {}
    tool = Tool.objects.values_list("name", flat=True).get(pk=rule.tool)
    figures = {name: told[name] for name in ("allowed", "refused", "asked")}
    sentence = words.sentence(tool, rule.predicate, rule.limits)
    return {"id": str(rule.pk), "version": rule.version, "sentence": sentence, **figures}


def why_asked(gate: Gate, user_id: UUID) -> str | None:
    """Say in plain words why the person is asked although they approve the like; None: no rule.

    A spot check is not told from another prompt.
    """
    rules = _of_gate(gate, user_id, [DelegationStatus.ACTIVE, DelegationStatus.PAUSED])
    if not rules:
        return None
    if asks_everything(user_id):
        return "you asked to see everything"
    found = [_why(rule, gate) for rule in rules]
    # A rule that would have allowed it says nothing, and none speaks for it.
    return None if None in found else next(iter(found))


def _of_gate(gate: Gate, user_id: UUID, statuses: Sequence[DelegationStatus]) -> list[Delegation]:
    version = catalogue.version(current_tenant_id(), gate.tool_version_id)
    rows = Delegation.objects.filter(
        user=user_id, tool=gate.tool_id, tool_number=version.number, status__in=statuses
    )
    return list(rows.order_by("id"))


def _why(rule: Delegation, gate: Gate) -> str | None:
    """Return why a rule did not allow the gate's call; None: it would have, or nobody can say."""
    if rule.status == DelegationStatus.PAUSED:
        return "your rule for the like of it sleeps"
    version = catalogue.version(current_tenant_id(), gate.tool_version_id)
    tool = calls.tool_of(version)
    run = Run.objects.select_related("agent").get(pk=gate.run_id)
    at = gate.opened_at
    asked = calls.Asked(str(gate.step_id), at.timestamp(), run.agent.name, run.workflow)
    try:
        body = content.get(gate.arguments)
        call = None if tool is None else canonical(calls.request_of(asked, tool, body))
    except Unclear as fault:
        return fault.reason.text
    except (Content.DoesNotExist, SealBroken):
        return None
    if call is None:
        return None
    day = DelegationDay.objects.filter(delegation=rule.pk, day=at.astimezone(UTC).date()).first()
    reason = calls.refusal(rule.predicate, call, None if day is None else day.spent)
    return None if reason is None else reason.text


def shadow(user_id: UUID) -> Mapping[str, Mapping[str, int]]:
    """Return by tool's version what would have run before it was proven: ``{would, refused}``."""
    kept = LearnerState.objects.filter(user=user_id).first()
    return {} if kept is None else kept.shadow


def asks_everything(user_id: UUID) -> bool:
    """Say whether the person asked to see everything."""
    said = DelegationPreference.objects.filter(user=user_id, asks_everything_since__isnull=False)
    return said.exists()
