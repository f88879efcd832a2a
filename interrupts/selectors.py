"""Reads of the engine: each a bounded number of statements, whatever the size of the page."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Count, F, Q, QuerySet

from interrupts.content import unseal
from interrupts.models import (
    Attempt,
    Checkpoint,
    Content,
    Freeze,
    FreezeScope,
    Guidance,
    InFlight,
    Interrupt,
    InterruptStatus,
    Question,
    Receipt,
    Run,
    Step,
    StepStatus,
    Tool,
    ToolVersion,
    Verdict,
)
from tenants.models import JournalEntry, User
from tenants.scope import current_tenant_id

# A step in one of these states and without an attempt has no receipt yet.
_WITHOUT_RECEIPT = frozenset(
    {
        StepStatus.PROPOSED,
        StepStatus.WAITING,
        StepStatus.READY,
        StepStatus.DENIED,
        StepStatus.REJECTED,
        StepStatus.REVISED,
    }
)
_MOST_VERSIONS = 4096
# What a freeze finds a step as, by its state; the others have nothing to stop.
_REACHED_AS: Final = {
    "in_flight": (StepStatus.EXECUTING,),
    "held": (StepStatus.READY,),
    "waiting": (StepStatus.PROPOSED, StepStatus.WAITING),
}
_REACHED: Final = [status for statuses in _REACHED_AS.values() for status in statuses]
# What may be large of a run, and is not shown of it beside its steps, interrupts and checkpoints.
_LARGE = tuple(f"run__{name}" for name in ("goal", "inputs", "labels", "output", "error"))
NOTHING_KNOWN: Final[Mapping[bytes, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RunShown:
    """A run with what is shown beside it."""

    run: Run
    guidance: Sequence[Guidance]
    open_interrupts: Sequence[UUID]
    questions: Sequence[Question] = ()


@dataclass(frozen=True, slots=True)
class StepShown:
    """A step with its receipts, and the bodies that both name."""

    step: Step
    receipts: Sequence[Receipt]
    bodies: Mapping[bytes, Any]
    sensitive: Sequence[str]
    questions: Sequence[Question] = ()
    verdict: Verdict | None = None


class EntryShown(NamedTuple):
    """A journal entry as it was hashed, and its hash."""

    seq: int
    kind: str
    text: str
    hash: bytes


# Runs


def runs(agent_id: UUID | None = None) -> QuerySet[Run]:
    """Return the tenant's runs, or one agent's."""
    found = Run.objects.select_related("agent", "requested_by")
    return found if agent_id is None else found.filter(agent_id=agent_id)


def run_seen(run_id: UUID) -> Run:
    """Return whose run it is and how far it is; the rest of it is not read."""
    return Run.objects.only("agent", "status", "state_version", "journal_seq").get(pk=run_id)


def shown_runs(rows: Sequence[Run]) -> list[RunShown]:
    """Add to each run its guidance, open interrupts and questions, in three statements at most."""
    guidance = _by_run(
        Guidance.objects.filter(run__in=rows).select_related("by").order_by("id") if rows else ()
    )
    held = [run for run in rows if run.open_interrupts]
    opened: dict[UUID, list[UUID]] = defaultdict(list)
    if held:
        found = Interrupt.objects.filter(run__in=held, status=InterruptStatus.OPEN).order_by("id")
        for run_id, interrupt_id in found.values_list("run_id", "id"):
            opened[run_id].append(interrupt_id)
    asked = questions(run__in=held) if held else ()
    return [
        RunShown(
            run,
            guidance.get(run.pk, ()),
            opened.get(run.pk, ()),
            [one for one in asked if one.run_id == run.pk],
        )
        for run in rows
    ]


def shown_run(run_id: UUID) -> RunShown:
    """Return one run; raises Run.DoesNotExist for an unknown id or another tenant's."""
    return shown_runs([runs().get(pk=run_id)])[0]


def is_startable(run: Run, at: datetime) -> bool:
    """Say whether a worker could have begun a step of the run at that time, nothing being begun."""
    if Attempt.objects.filter(run=run, settled_at=None, lapsed_at=None).exists():
        return False
    if run.reading is not None or run.verdicts_holding:
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT verdict FROM interrupts_find_startable(%s, %s, %s, %s, true)",
            [run.pk, run.agent_id, run.next_step, at],
        )
        (verdict,) = cursor.fetchone()
    return bool(verdict == "found")


def asked_to_cancel(attempts: Collection[UUID]) -> list[UUID]:
    """Return those of the attempts that a stop has asked to be cancelled."""
    asked = Attempt.objects.filter(pk__in=attempts, cancel_requested=True)
    return list(asked.values_list("pk", flat=True))


def is_stopped_at_once(run_id: UUID) -> bool:
    """Say whether the run, or one above it, is stopped and what is in flight to be cancelled.

    Said of the run and not of an attempt: a read has none while it is made.
    """
    family = [run_id, *Run.objects.values_list("path", flat=True).get(pk=run_id)]
    stops = Interrupt.objects.filter(
        run__in=family, status=InterruptStatus.OPEN, in_flight=InFlight.CANCEL
    )
    return bool(stops.exists())


def unacknowledged(run: Run) -> list[Guidance]:
    """Return what a person told the agent to do differently and it has not acknowledged."""
    told = Guidance.objects.filter(run=run, acknowledged_at=None)
    return list(told.select_related("by").order_by("id"))


def questions(**of: Any) -> list[Question]:
    """Return the questions that wait for an agent's answer: asked of a gate that holds its step."""
    waiting = Question.objects.filter(
        answer=None, step__status=StepStatus.WAITING, step__gate=F("gate")
    )
    return list(waiting.filter(**of).order_by("id"))


def _by_run(rows: Iterable[Guidance]) -> dict[UUID, list[Guidance]]:
    grouped: dict[UUID, list[Guidance]] = defaultdict(list)
    for row in rows:
        grouped[row.run_id].append(row)
    return grouped


# Steps


def steps() -> QuerySet[Step]:
    return Step.objects.select_related("run").defer(*_LARGE)


def shown_steps(
    rows: Sequence[Step], known: Mapping[bytes, Any] = NOTHING_KNOWN
) -> list[StepShown]:
    """Add to each step its receipts and the bodies named, in three statements at most; to those
    that wait for a gate what is asked about them, and to those that a verifier judges its verdict,
    in one each.

    ``known`` holds bodies that the caller has: they are not read.
    """
    ids = [step.pk for step in rows if step.attempts or step.status not in _WITHOUT_RECEIPT]
    receipts: dict[UUID, list[Receipt]] = defaultdict(list)
    for receipt in Receipt.objects.filter(step__in=ids).order_by("id") if ids else ():
        receipts[receipt.step_id].append(receipt)
    named = [body for step in rows for body in (step.arguments, step.result)]
    named += [receipt.result for of_step in receipts.values() for receipt in of_step]
    found = bodies(named, known)
    masks = sensitive_paths({step.tool_version_id for step in rows})
    said = verdicts(rows)
    waiting = [step.gate for step in rows if step.status == StepStatus.WAITING and step.gate]
    asked = questions(gate__in=waiting) if waiting else ()
    return [
        StepShown(
            step,
            receipts.get(step.pk, ()),
            found,
            masks[step.tool_version_id],
            [one for one in asked if one.step_id == step.pk],
            said.get(step.pk),
        )
        for step in rows
    ]


def shown_step(step: Step) -> StepShown:
    return shown_steps([step])[0]


def bodies(
    digests: Iterable[bytes | memoryview | None], known: Mapping[bytes, Any] = NOTHING_KNOWN
) -> Mapping[bytes, Any]:
    """Return the JSON values of bodies by digest, in one statement; an erased one is left out."""
    wanted = {bytes(digest) for digest in digests if digest is not None} - known.keys()
    if not wanted:
        return known
    tenant = current_tenant_id()
    rows = Content.objects.filter(tenant_id=tenant, digest__in=wanted)
    read = {
        bytes(digest): json.loads(unseal(tenant, bytes(body), cipher))
        for digest, body, cipher in rows.values_list("digest", "body", "cipher")
    }
    return {**known, **read}


class _OfVersion(NamedTuple):
    sensitive: tuple[str, ...]
    is_judged: bool


_of_versions: dict[UUID, _OfVersion] = {}


def sensitive_paths(version_ids: Iterable[UUID]) -> Mapping[UUID, Sequence[str]]:
    """Return the paths of tool versions that are never shown in clear."""
    return {pk: version.sensitive for pk, version in _versions(version_ids).items()}


def verdicts(rows: Iterable[Step]) -> Mapping[UUID, Verdict]:
    """Return the verdicts on steps, by their ids; none are read where no tool has a verifier."""
    done = [step for step in rows if step.attempts]
    known = _versions(step.tool_version_id for step in done)
    judged = [step.pk for step in done if known[step.tool_version_id].is_judged]
    found = Verdict.objects.filter(step__in=judged) if judged else ()
    return {one.step_id: one for one in found}


def _versions(version_ids: Iterable[UUID]) -> Mapping[UUID, _OfVersion]:
    """A version never changes, so what was read once is kept.

    The caller has read a row that names it, and so is of its tenant.
    """
    wanted = set(version_ids)
    found = {pk: version for pk in wanted if (version := _of_versions.get(pk)) is not None}
    if missing := wanted - found.keys():
        rows = ToolVersion.objects.filter(pk__in=missing)
        named = rows.values_list("pk", "sensitive", "verifier")
        read = {pk: _OfVersion(tuple(paths), said is not None) for pk, paths, said in named}
        if len(_of_versions) > _MOST_VERSIONS:
            _of_versions.clear()
        _of_versions.update(read)
        found.update(read)
    return found


# Interrupts, checkpoints, tools, freezes


def interrupts(agent_id: UUID | None = None) -> QuerySet[Interrupt]:
    found = Interrupt.objects.select_related("run").defer(*_LARGE)
    return found if agent_id is None else found.filter(run__agent_id=agent_id)


def usernames(rows: Iterable[Interrupt]) -> dict[str, str]:
    """Return the names, by id, of the people who opened or resolved these interrupts."""
    actors = [actor for row in rows for actor in (row.opened_by, row.resolved_by) if actor]
    ids = {actor["id"] for actor in actors if actor["kind"] == "user"}
    if not ids:
        return {}
    named = User.objects.filter(pk__in=ids).values_list("pk", "username")
    return {str(pk): username for pk, username in named}


def checkpoints(run_id: UUID) -> QuerySet[Checkpoint]:
    return Checkpoint.objects.filter(run_id=run_id)


def checkpoint(checkpoint_id: UUID) -> Checkpoint:
    return Checkpoint.objects.select_related("run").defer(*_LARGE).get(pk=checkpoint_id)


def tools() -> QuerySet[Tool]:
    """Return the tools that can be proposed."""
    return Tool.objects.filter(retired_at=None, current__isnull=False).select_related("current")


def tool(name: str) -> Tool:
    """Return a tool by its name, a retired one too."""
    return Tool.objects.select_related("current").get(name=name, current__isnull=False)


def is_tool(name: str) -> bool:
    return Tool.objects.filter(name=name).exists()


def freezes() -> QuerySet[Freeze]:
    """Return the freezes in force."""
    return Freeze.objects.filter(lifted_at=None)


class ReachOfTool(NamedTuple):
    """The part of one tool in what a freeze would find."""

    tool: str
    in_flight: int
    held: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Reach:
    """What a freeze of a scope would find: steps of runs that have not ended, by tool.

    ``in_flight`` had begun and would end; ``held`` would start next, and ``waiting`` once decided.
    """

    tools: Sequence[ReachOfTool]
    runs: int  # that have one of these steps

    @property
    def in_flight(self) -> int:
        return sum(one.in_flight for one in self.tools)

    @property
    def held(self) -> int:
        return sum(one.held for one in self.tools)

    @property
    def waiting(self) -> int:
        return sum(one.waiting for one in self.tools)


def freeze_reach(scope: str, name: str) -> Reach:
    """Return what a freeze would find now; the tools with most of it first."""
    reached = Step.objects.filter(run__ended_at=None, status__in=_REACHED)
    if scope == FreezeScope.TOOL:
        reached = reached.filter(tool_name=name)
    elif scope == FreezeScope.AGENT:
        reached = reached.filter(run__agent__name=name)
    counted = {
        what: Count("pk", filter=Q(status__in=statuses)) for what, statuses in _REACHED_AS.items()
    }
    rows = reached.order_by().values_list("tool_name").annotate(**counted)
    tools = sorted(ReachOfTool(*row) for row in rows)
    return Reach(
        sorted(tools, key=lambda one: -sum(one[1:])),
        reached.order_by().values("run").distinct().count(),
    )


# Journals


def entries(stream: UUID, *, after: int, limit: int) -> list[EntryShown]:
    """Return up to ``limit`` entries of a stream whose sequence follows ``after``."""
    rows = JournalEntry.objects.filter(stream=stream, seq__gt=after).order_by("seq")[:limit]
    named = rows.values_list("seq", "kind", "text", "hash")
    return [EntryShown(seq, kind, text, bytes(chained)) for seq, kind, text, chained in named]
