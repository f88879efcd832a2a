"""Reads for the lists of decisions: what waits for a person, and what they decided."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Case, Count, Exists, IntegerField, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, Now

from approvals import deciders, stages, substitutes
from approvals.models import (
    FITS_BULK,
    OPEN_GATES,
    Assignment,
    Decision,
    Gate,
    GateState,
    Verdict,
)
from interrupts.models import Effect, Risk, Tool
from tenants.models import Agent, User

PAGE: Final = 50
MOST_COUNTED: Final = 999
MOST_SHOWN: Final = 99  # beside the name of the list
MOST_CHOICES: Final = 200
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)  # what one that was handed over is due at
_NEVER: Final = datetime(9999, 1, 1, tzinfo=UTC)  # what a gate that does not expire is due at
# Not read for a list: what may be large, and is not shown there.
_LARGE: Final = (
    "why",
    "what_could_go_wrong",
    "preview",
    *(f"run__{name}" for name in ("goal", "inputs", "labels", "output", "error")),
    "step__proposal",
)


class Edge(NamedTuple):
    """Where a page begins: after the row that is due then, of that rank and id."""

    due: datetime
    rank: int
    id: UUID

    def __str__(self) -> str:
        named = f"{self.due.isoformat()}|{self.rank}|{self.id}"
        return base64.urlsafe_b64encode(named.encode()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of the decisions that wait are listed; an empty text asks for nothing."""

    agent: str = ""
    tool: str = ""
    risk: str = ""
    state: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return any((self.agent, self.tool, self.risk, self.state, self.text))


@dataclass(frozen=True, slots=True)
class Row:
    """A decision that waits: its gate, and how many approvals of it count now.

    ``acting_for`` says for whom it waits, where not for the person themself.
    """

    gate: Gate
    given: int
    acting_for: User | None = None

    @property
    def asked_because(self) -> str:
        """The rule's own sentence, never the agent's."""
        return str(self.gate.triggers[0]["explanation"]) if self.gate.triggers else ""

    @property
    def votes(self) -> Sequence[bool]:
        return [place < self.given for place in range(self.gate.quorum)]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A page of what waits for a person, and where the next one begins."""

    rows: Sequence[Row]
    onward: Edge | None


@dataclass(frozen=True, slots=True)
class Counts:
    """How much waits for a person, up to a bound, and in which states its runs are."""

    decisions: int
    soon: int
    runs: Mapping[str, int]

    @property
    def capped(self) -> bool:
        return self.decisions >= MOST_COUNTED


class Choices(NamedTuple):
    """What the lists can be narrowed to."""

    agents: Sequence[str]
    tools: Sequence[str]


def count(user_id: UUID) -> str:
    """Return how many decisions wait for the person; beyond a bound it says so."""
    found = _mine(user_id, substitutes.stood_for(user_id))[: MOST_SHOWN + 1].count()
    return f"{MOST_SHOWN}+" if found > MOST_SHOWN else str(found)


def counts(user_id: UUID) -> Counts:
    """Count what waits for the person and its runs by suspension, in one bounded statement."""
    mine = _mine(user_id, substitutes.stood_for(user_id)).values("pk")[:MOST_COUNTED]
    soon = Q(expires_at__lt=Now() + timedelta(hours=1))
    by_suspension = Gate.objects.filter(pk__in=mine).values_list("run__suspension")
    found = list(
        by_suspension.annotate(
            gates=Count("pk"), runs=Count("run", distinct=True), soon=Count("pk", filter=soon)
        )
    )
    return Counts(
        decisions=sum(row[1] for row in found),
        soon=sum(row[3] for row in found),
        runs={suspension: runs for suspension, _, runs, _ in found if suspension},
    )


def _mine(user_id: UUID, people: Sequence[UUID]) -> QuerySet[Gate]:
    """Return the gates that wait for the person, or for one of those that they stand in for."""
    waits = substitutes.waits_for(user_id, people)
    return Gate.objects.filter(waits, state__in=sorted(OPEN_GATES))


def waiting(user_id: UUID, wanted: Wanted, after: Edge | None = None) -> Waiting:
    """Return what waits for the person: what was handed to them first, then by when and what.

    That is what is due soonest, then of highest risk, then oldest.
    """
    return _page(user_id, _narrowed(_waiting(user_id), wanted), after)


def _page(user_id: UUID, rows: QuerySet[Any], after: Edge | None) -> Waiting:
    if after is not None:
        rows = rows.filter(
            Q(due__gt=after.due)
            | Q(due=after.due, rank__gt=after.rank)
            | Q(due=after.due, rank=after.rank, id__gt=after.id)
        )
    found = list(rows.order_by("due", "rank", "id")[: PAGE + 1])
    shown = found[:PAGE]
    last: Any = shown[-1] if len(found) > PAGE else None
    onward = edge_after(last) if last else None
    given = _given(shown)
    others = _others(shown, user_id)
    return Waiting(
        [Row(gate, given.get(gate.pk, 0), others.get(gate.pk)) for gate in shown], onward
    )


def _others(rows: Sequence[Any], user_id: UUID) -> Mapping[UUID, User]:
    """Return for whom those gates wait that wait for somebody else."""
    theirs = [gate.pk for gate in rows if not gate.is_own]
    if not theirs:
        return {}
    found = Assignment.objects.filter(
        gate__in=theirs, user__in=substitutes.stood_for(user_id), passed_at=None
    )
    related = found.select_related("user").order_by("-user_id")
    return {one.gate_id: one.user for one in related}


def fit_for_bulk(user_id: UUID, after: Edge | None = None) -> Waiting:
    """Return a page of what the person may approve together, in the order of what waits.

    That is what is of low risk, is asked now and has not their vote yet.
    """
    return _page(user_id, _fit_for_bulk(user_id), after)


def count_fit_for_bulk(user_id: UUID) -> int:
    """Count what the person may approve together, up to MOST_COUNTED."""
    return _fit_for_bulk(user_id)[:MOST_COUNTED].count()


def _fit_for_bulk(user_id: UUID) -> QuerySet[Any]:
    voted = Decision.objects.filter(
        gate=OuterRef("pk"), user=user_id, counts=True, verdict=Verdict.APPROVE
    )
    asked = Q(expires_at=None) | Q(expires_at__gt=Now())
    rows = _waiting(user_id).filter(FITS_BULK, asked, state=GateState.PENDING)
    return rows.exclude(Exists(voted))


def next_waiting(user_id: UUID, after: Gate | None = None) -> UUID | None:
    """Return what else waits for the person, the first in the list's order."""
    rows = _waiting(user_id)
    if after is not None:
        rows = rows.exclude(pk=after.pk)
    return rows.order_by("due", "rank", "id").values_list("id", flat=True).first()


def _waiting(user_id: UUID) -> QuerySet[Any]:
    rank = Case(
        When(effect=Effect.IRREVERSIBLE, then=Value(0)),
        When(risk=Risk.HIGH, then=Value(1)),
        When(risk=Risk.MEDIUM, then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )
    people = substitutes.stood_for(user_id)
    is_own: Any = Value(True)  # noqa: FBT003 - Django's signature
    handed: Any = Q(assignments__handed_at__isnull=False)
    if people:
        own = Assignment.objects.filter(gate=OuterRef("pk"), user=user_id, passed_at=None)
        is_own, handed = Exists(own), Exists(own.filter(handed_at__isnull=False))
    due = Case(
        When(handed, then=Value(_FIRST)),
        default=Coalesce("expires_at", Value(_NEVER)),
    )
    related = _mine(user_id, people).select_related("run__agent", "step").defer(*_LARGE)
    return related.annotate(due=due, rank=rank, is_own=is_own)


def _narrowed(rows: QuerySet[Any], wanted: Wanted) -> QuerySet[Any]:
    if wanted.agent:
        rows = rows.filter(run__agent__name=wanted.agent)
    if wanted.tool:
        rows = rows.filter(tool__name=wanted.tool)
    if wanted.risk == Effect.IRREVERSIBLE:
        rows = rows.filter(effect=Effect.IRREVERSIBLE)
    elif wanted.risk:
        rows = rows.filter(risk=wanted.risk).exclude(effect=Effect.IRREVERSIBLE)
    if wanted.state:
        rows = rows.filter(run__suspension=wanted.state)
    if wanted.text:
        rows = rows.filter(headline__icontains=wanted.text)
    return rows


def _given(rows: Sequence[Gate]) -> Mapping[UUID, int]:
    """Count the approvals that still count, of gates that take more than one."""
    staged = stages.standing(rows)
    return {**_given_together(rows), **{gate: len(votes) for gate, votes in staged.items()}}


def _given_together(rows: Sequence[Gate]) -> Mapping[UUID, int]:
    several = [gate.pk for gate in rows if gate.quorum > 1 and not gate.stages]
    if not several:
        return {}
    votes = Decision.objects.filter(gate__in=several, counts=True, verdict=Verdict.APPROVE)
    found = list(votes.only("gate_id", "user_id", "acting_for_id"))
    entitled = deciders.entitled(several, {one.user_id for one in found}) if found else {}
    given: dict[UUID, int] = {}
    for one in found:
        if (one.user_id, one.holder_id) in entitled.get(one.gate_id, ()):
            given[one.gate_id] = given.get(one.gate_id, 0) + 1
    return given


def choices() -> Choices:
    """Return the names of the tenant's agents and tools, up to a bound."""
    agents = Agent.objects.order_by("name").values_list("name", flat=True)
    tools = Tool.objects.order_by("name").values_list("name", flat=True)
    return Choices(list(agents[:MOST_CHOICES]), list(tools[:MOST_CHOICES]))


def decided(user_id: UUID, before: UUID | None = None) -> tuple[Sequence[Decision], UUID | None]:
    """Return what the person decided, the latest first, and where the next page begins.

    What a rule decided in their name is not among it: the rule's own page lists that.
    """
    rows = Decision.objects.filter(user=user_id, delegation=None)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    related = rows.select_related("gate__run__agent", "gate__step", "acting_for")
    found = list(related.defer(*(f"gate__{name}" for name in _LARGE)).order_by("-pk")[: PAGE + 1])
    shown = found[:PAGE]
    return shown, shown[-1].pk if len(found) > PAGE else None


def edge_after(gate: Any) -> Edge:
    """Return where a page begins that goes on after a gate which was read for a list."""
    return Edge(gate.due, gate.rank, gate.pk)


def edge(text: str) -> Edge | None:
    """Read where a page begins; None where the text is none of ours."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        due, rank, pk = raw.decode().split("|")
        return Edge(datetime.fromisoformat(due), int(rank), UUID(pk))
    except ValueError:
        return None
