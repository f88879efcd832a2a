"""Reads for the pages about runs: each a bounded number of statements, whatever a run holds."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Count, QuerySet

from interrupts import selectors
from interrupts.models import (
    Attempt,
    Checkpoint,
    Effect,
    Executor,
    Guidance,
    Interrupt,
    InterruptStatus,
    Question,
    Reason,
    Receipt,
    Run,
    Step,
    StepStatus,
    Verdict,
)
from interrupts.templates import mask
from interrupts.transitions import compensation, finding
from interrupts.transitions.wording import plain
from tenants.models import Agent, JournalEntry, User
from tenants.scope import current_tenant_id

PAGE: Final = 50
ENTRIES: Final = 100
MOST: Final = 200  # of anything that is listed beside the journal
MOST_COUNTED: Final = 999
# Not read for a list: what may be large, and is not shown there.
_LARGE: Final = ("inputs", "labels", "output", "error")
EFFECTS: Final = (
    "attempt.started",
    "attempt.lapsed",
    "receipt.recorded",
    "receipt.late",
    "receipt.conflict",
    "effect.doubled",
    "step.settled",
    "step.unknown",
    "step.retried",
    "step.unresolvable",
    "reconciliation.asked",
    "reconciliation.requested",
    "reconciliation.exhausted",
    "compensation.requested",
    "compensation.wanted",
    "compensation.started",
    "compensation.recorded",
    "compensation.left",
    "verdict.awaited",
    "verdict.unanswered",
    "verdict.recorded",
)
DECISIONS: Final = (
    "gate.opened",
    "gate.decided",
    "gate.reassigned",
    "gate.question_asked",
    "gate.question_answered",
    "gate.decision_withdrawn",
    "gate.approved",
    "gate.rejected",
    "gate.changes_requested",
    "gate.responded",
    "gate.expired",
    "gate.withdrawn",
    "gate.superseded",
    "gate.reopened",
    "gate.escalated",
    "gate.stage_opened",
    "gate.undecidable",
    "gate.decidable",
    "interrupt.resolved",
    "interrupt.expired",
    "interrupt.escalated",
    "step.authorized",
    "step.denied",
    "run.revised",
    "run.cancelling",
    "run.forked",
    "budget.extended",
    "day.extended",
    "reconciliation.requested",
    "compensation.requested",
)
FILTERS: Final[Mapping[str, Sequence[str]]] = {"effects": EFFECTS, "decisions": DECISIONS}
_CHECKS: Final = ("reconciliation.asked", "reconciliation.requested", "reconciliation.exhausted")
_WITHDRAWABLE: Final = (StepStatus.PROPOSED, StepStatus.WAITING, StepStatus.READY)


# The list


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs are listed; an empty text asks for nothing."""

    status: str = ""
    suspension: str = ""
    workflow: str = ""
    agent: str = ""

    def __bool__(self) -> bool:
        return any((self.status, self.suspension, self.workflow, self.agent))


class Listed(NamedTuple):
    """A page of runs, the newest first, and before which one the next page begins."""

    rows: Sequence[Run]
    onward: UUID | None


def listed(wanted: Wanted, before: UUID | None = None) -> Listed:
    """Return a page of the tenant's runs, the newest first."""
    rows = selectors.runs().defer(*_LARGE)
    named = {
        "status": wanted.status,
        "suspension": wanted.suspension,
        "workflow": wanted.workflow,
        "agent__name": wanted.agent,
    }
    rows = rows.filter(**{name: value for name, value in named.items() if value})
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: PAGE + 1])
    shown = found[:PAGE]
    return Listed(shown, shown[-1].pk if len(found) > PAGE else None)


def suspended_counts() -> Mapping[str, int]:
    """Count the runs that are suspended or cancelling by how they are, up to a bound.

    Found by what stands in partial indexes: open interrupts, and what is due.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT run.suspension, count(*) FROM (
                (SELECT run_id AS id FROM interrupts_interrupt
                    WHERE tenant_id = %(tenant)s AND status = 'open' LIMIT %(most)s)
                UNION
                (SELECT id FROM interrupts_run
                    WHERE tenant_id = %(tenant)s AND due_at IS NOT NULL AND status = 'cancelling'
                    LIMIT %(most)s)
            ) held JOIN interrupts_run run ON run.id = held.id
            WHERE run.suspension IS NOT NULL GROUP BY run.suspension
            """,
            {"most": MOST_COUNTED, "tenant": current_tenant_id()},
        )
        return dict(cursor.fetchall())


def agent_names() -> list[str]:
    return list(Agent.objects.order_by("name").values_list("name", flat=True)[:MOST])


# One run


@dataclass(slots=True)
class Branch:
    """A run of the family with those that it started."""

    run: Run
    children: list[Branch] = field(default_factory=list)


class Tally(NamedTuple):
    """What is true of a run's steps now, in numbers."""

    effects: int
    reads: int
    unknown: int
    in_flight: int
    undoing: int
    undone: int
    waiting: int
    not_done: int


@dataclass(frozen=True, slots=True)
class Check:
    """One time that somebody or something asked what became of a call."""

    at: datetime
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Recovery:
    """What is known of a call that nobody knows the outcome of."""

    checks: Sequence[Check]
    asked: int
    bound: int
    next_at: datetime | None
    how: str | None
    set_aside: bool  # its tries ended without a word so often that none follows by itself
    key_until: datetime | None
    sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class Held:
    """An open interrupt, its step where it is about one, and who opened it."""

    interrupt: Interrupt
    step: Step | None
    arguments: Any
    opened_by: str
    recovery: Recovery | None = None
    receipt: Receipt | None = None  # what a verifier judged
    result: Any = None  # of that receipt, what is sensitive masked


@dataclass(frozen=True, slots=True)
class Watched:
    """A run as its page shows it beside the journal."""

    run: Run
    guidance: Sequence[Guidance]
    held: Sequence[Held]
    tally: Tally
    in_flight: Sequence[Attempt]
    tree: Branch
    family: int  # runs in the tree, up to a bound
    below: int  # runs below this one that have not ended
    withdrawable: Sequence[Step]
    undoable: Sequence[Step]
    checkpoints: Sequence[Checkpoint]

    @property
    def used(self) -> Mapping[str, str]:
        """What counts against the budget, as plain numbers."""
        run = self.run
        return {
            "steps": str(run.usage_steps),
            "cost": plain(run.usage_cost),
            "seconds": plain(run.usage_seconds),
            "tokens": str(run.usage_tokens),
        }


def watched(run_id: UUID) -> Watched:
    """Return a run with what its page shows; Run.DoesNotExist for another tenant's."""
    run = selectors.runs().select_related("parent", "checkpoint").get(pk=run_id)
    below = Run.objects.filter(root=run.root, path__contains=[run.pk], ended_at=None).count()
    tree, family = _tree(run)
    return Watched(
        run=run,
        guidance=list(Guidance.objects.filter(run=run).select_related("by").order_by("id")[:MOST]),
        held=_held(run),
        tally=_tally(run),
        in_flight=list(_live(run).select_related("step").order_by("started_at")[:MOST]),
        tree=tree,
        family=family,
        below=below,
        withdrawable=[] if run.ended else list(_withdrawable(run)),
        undoable=_undoable(run),
        checkpoints=list(_checkpoints(run)) if run.ended else [],
    )


def _live(run: Run) -> QuerySet[Attempt]:
    return Attempt.objects.filter(run=run, settled_at=None, lapsed_at=None)


def _withdrawable(run: Run) -> QuerySet[Step]:
    return Step.objects.filter(run=run, status__in=_WITHDRAWABLE).order_by("position")[:MOST]


def _checkpoints(run: Run) -> QuerySet[Checkpoint]:
    return Checkpoint.objects.filter(run=run).order_by("-sequence")[:MOST]


def _undoable(run: Run) -> list[Step]:
    """Return the latest effects that happened, can be undone and are not asked to be."""
    done = Step.objects.filter(run=run, status=StepStatus.SUCCEEDED, undo_wanted=False)
    found = done.exclude(effect=Effect.READ).order_by("-position")[:MOST]
    return [step for step in found if compensation.can_be_undone(step)]


def _tally(run: Run) -> Tally:
    rows = Step.objects.filter(run=run).values_list("status", "effect").annotate(n=Count("id"))
    counted: dict[str, int] = defaultdict(int)
    for status, effect, n in rows.order_by():
        read = status == StepStatus.SUCCEEDED and effect == Effect.READ
        counted["read" if read else status] += n
    return Tally(
        effects=counted["succeeded"],
        reads=counted["read"],
        unknown=counted["unknown"],
        in_flight=counted["executing"],
        undoing=counted["compensating"],
        undone=counted["compensated"],
        waiting=counted["proposed"] + counted["waiting"] + counted["ready"],
        not_done=sum(counted[one] for one in ("failed", "denied", "rejected", "revised"))
        + counted["cancelled"],
    )


def _tree(run: Run) -> tuple[Branch, int]:
    """Return the run's family from its root, each run below the one that started it."""
    family = list(
        Run.objects.filter(root=run.root)
        .select_related("agent")
        .defer(*_LARGE, "goal")
        .order_by("id")[:MOST]
    )
    branches = {one.pk: Branch(one) for one in family}
    branches.setdefault(run.pk, Branch(run))
    top = branches.get(run.root, branches[run.pk])
    for branch in branches.values():
        above = branches.get(branch.run.parent_id) if branch.run.parent_id else None
        if above is not None:
            above.children.append(branch)
    return top, len(branches)


# What holds it


def _held(run: Run) -> list[Held]:
    rows = Interrupt.objects.filter(run=run, status=InterruptStatus.OPEN).order_by("id")[:MOST]
    found = list(rows)
    steps = {
        step.pk: step
        for step in Step.objects.filter(pk__in=[one.step for one in found if one.step])
    }
    receipts = _judged(found)
    named = [step.arguments for step in steps.values()]
    bodies = selectors.bodies(named + [one.result for one in receipts.values()])
    hidden = selectors.sensitive_paths({step.tool_version_id for step in steps.values()})
    names = people(one.opened_by for one in found)
    held = []
    for one in found:
        step = steps.get(one.step) if one.step else None
        body = bodies.get(bytes(step.arguments)) if step else None
        # Of the others, agents wrote the evidence: it may name anything, of any shape.
        is_judged = one.reason == Reason.VERIFIER_REJECTED
        receipt = receipts.get(one.evidence["receipt"]) if is_judged else None
        result = bodies.get(bytes(receipt.result)) if receipt and receipt.result else None
        held.append(
            Held(
                interrupt=one,
                step=step,
                arguments=mask(body, hidden[step.tool_version_id]) if step else None,
                opened_by=who(one.opened_by, names, run.agent.name),
                recovery=_recovery(one, step) if step and step.status == "unknown" else None,
                receipt=receipt,
                result=mask(result, hidden[step.tool_version_id]) if step else None,
            )
        )
    return held


def _judged(rows: Iterable[Interrupt]) -> Mapping[str, Receipt]:
    """Return the receipts that verifiers did not pass, by their ids."""
    judged = [one.evidence["receipt"] for one in rows if one.reason == Reason.VERIFIER_REJECTED]
    found = Receipt.objects.filter(pk__in=judged) if judged else ()
    return {str(one.pk): one for one in found}


def _recovery(interrupt: Interrupt, step: Step) -> Recovery:
    first = Attempt.objects.filter(step=step).order_by("fence").first()
    lifetime = finding.version_of(step).key_lifetime
    lapses = first is not None and lifetime is not None and step.executor != Executor.AGENT
    return Recovery(
        checks=_checks(interrupt, step),
        asked=step.asked,
        bound=finding.bound(step),
        next_at=step.ask_at,
        how=finding.how(step),
        set_aside=finding.set_aside(step),
        key_until=first.started_at + timedelta(seconds=lifetime or 0) if first and lapses else None,
        sent_at=first.started_at if first else None,
    )


def _checks(interrupt: Interrupt, step: Step) -> list[Check]:
    """Return who was asked about the step since the interrupt opened, oldest first."""
    taken = Checkpoint.objects.filter(pk=interrupt.checkpoint)
    after = taken.values_list("receipts_through", flat=True).first() or 0
    rows = JournalEntry.objects.filter(stream=step.run_id, seq__gt=after, kind__in=_CHECKS)
    found = []
    for kind, at, text in rows.order_by("seq").values_list("kind", "at", "text")[:MOST]:
        data = json.loads(text)["data"]
        if data.get("step") == str(step.pk):
            found.append(Check(at, kind, data))
    return found


# The journal


class Entry(NamedTuple):
    """A journal entry, read."""

    seq: int
    at: datetime
    kind: str
    actor: Mapping[str, str]
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Journal:
    """A page of a run's journal, oldest first, with what its entries name."""

    entries: Sequence[Entry]
    onward: int | None
    steps: Mapping[str, Step]
    interrupts: Mapping[str, Interrupt]
    guidance: Mapping[str, Guidance]
    questions: Mapping[str, Question]
    verdicts: Mapping[str, Verdict]
    names: Mapping[str, str]


def journal(run: Run, *, show: str = "", after: int = 0) -> Journal:
    """Return the entries after a sequence number, all or those of a filter."""
    rows = JournalEntry.objects.filter(stream=run.pk, seq__gt=after)
    if show in FILTERS:
        rows = rows.filter(kind__in=FILTERS[show])
    found = list(rows.order_by("seq").values_list("seq", "at", "kind", "text")[: ENTRIES + 1])
    entries = []
    for seq, at, kind, text in found[:ENTRIES]:
        read = json.loads(text)
        entries.append(Entry(seq, at, kind, read["actor"], read["data"]))
    interrupts = _named(Interrupt.objects.all(), entries, "interrupt")
    return Journal(
        entries=entries,
        onward=entries[-1].seq if len(found) > ENTRIES else None,
        steps=_named(Step.objects.all(), entries, "step"),
        interrupts=interrupts,
        guidance=_named(Guidance.objects.all(), entries, "guidance"),
        questions=_named(Question.objects.all(), entries, "question"),
        verdicts=_named(Verdict.objects.all(), entries, "verdict", of="verdict."),
        names=people(one.actor for one in entries),
    )


def _named(
    rows: QuerySet[Any], entries: Iterable[Entry], name: str, *, of: str = ""
) -> dict[str, Any]:
    """Return the rows that the entries name, those of kinds that begin with ``of``, by their ids."""
    said = [one.data for one in entries if one.kind.startswith(of)]
    ids = {data[name] for data in said if isinstance(data.get(name), str)}
    return {str(row.pk): row for row in rows.filter(pk__in=ids)} if ids else {}


# Names


def people(actors: Iterable[Mapping[str, str] | None]) -> Mapping[str, str]:
    """Return the names, by id, of the people among these actors."""
    ids = {one["id"] for one in actors if one and one.get("kind") == "user" and one.get("id")}
    if not ids:
        return {}
    found = User.objects.filter(pk__in=ids)
    return {str(user.pk): user.get_full_name() or user.username for user in found}


def who(actor: Mapping[str, str] | None, names: Mapping[str, str], agent: str) -> str:
    """Say who acted: a person by name, the run's agent, or the service."""
    if actor is None:
        return "nobody"
    if actor["kind"] == "user":
        return names.get(actor["id"], "somebody")
    if actor["kind"] == "agent":
        return f"{agent} (agent)"
    return "a rule that runs without asking" if actor["kind"] == "delegation" else "the service"
