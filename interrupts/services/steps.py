"""Proposing steps, and the claim of those the agent runs itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from config import jsontext
from config.errors import InvalidBody, faults
from interrupts import catalogue, content, imprints, templates
from interrupts.authorizer import Judgement, authorizer
from interrupts.digests import call_digest, step_digest
from interrupts.errors import (
    InvalidArguments,
    RunSuspended,
    StepKeyReused,
)
from interrupts.models import (
    Interrupt,
    Resolution,
    Run,
    RunStatus,
    Step,
    StepStatus,
    ToolVersion,
)
from interrupts.services import agentstate
from interrupts.services.acting import as_agent, not_ended
from interrupts.transitions import checkpoints, needs, reservations, runs, steps
from interrupts.transitions.moves import move_step
from interrupts.work import Work
from tenants.conditions import ANY_VERSION, IfMatch
from tenants.ids import uuid7
from tenants.principal import Principal
from tenants.scope import current_tenant_id

# Where something waits that announces nothing by time, it is looked at again after this.
PATROL = timedelta(seconds=5)
TWIN = "The same call was made before, and nobody knows whether it was performed."
# What the agent says of its proposal; kept as its words, trusted in nothing.
WORDS = ("reasoning", "confidence", "risk_score", "milestone", "failure_modes", "cost", "context")
MAX_DRY_RUN_BYTES = 64 * 1024


@dataclass(slots=True)
class Draft:
    """One proposed call, canonical: not yet a step."""

    index: int
    document: dict[str, Any]
    arguments: bytes
    same_call: str  # digest of tool and arguments, whatever the version

    @property
    def key(self) -> str | None:
        return self.document.get("key")

    @property
    def tool(self) -> str:
        return str(self.document["tool"])


def propose(
    principal: Principal,
    run_id: UUID,
    *,
    proposals: Sequence[dict[str, Any]],
    session: int | None = None,
    parallel: bool = False,
    group: UUID | None = None,
    if_match: IfMatch = ANY_VERSION,
    single: bool = False,
) -> tuple[list[Step], bool]:
    """Record the calls of one model turn as a group, judged one by one; all of them or none.

    Returns the steps in the order proposed, and whether any is new: a key that names a step of the
    run (or a succeeded one of the runs it was forked from) gives that step. Checked in the order
    session, key, state. ``single`` says how pointers begin. Raises NotYourRun, StaleSession,
    StepKeyReused, RunEnded, RunSuspended, UnknownTool, InvalidArguments (of which the journal tells,
    and nothing else), InvalidBody.
    """
    drafts = [_draft(index, document) for index, document in enumerate(proposals)]
    _ensure_readable(drafts, single=single)
    with as_agent(principal, run_id, session=session, if_match=if_match) as work:
        known = _known(work.run, drafts)
        new = [draft for draft in drafts if draft.index not in known]
        if not new:
            work.state_unchanged()
            return [known[draft.index] for draft in drafts], False
        not_ended(work.run)
        if work.run.status == RunStatus.SUSPENDED:
            raise RunSuspended
        versions = {
            draft.tool: catalogue.current_version(
                draft.tool, work.authority_version, at="" if single else f"/steps/{draft.index}"
            )
            for draft in new
        }
        refusal = _refusal(work, new, versions, single=single)
        if refusal is None:
            group = _group(work.run, group)
            made = _record(work, new, versions, parallel=parallel, group=group)
            _state(work, new, single=single)
            _judge(work, made)
    if refusal is not None:
        raise refusal
    fresh = dict(zip((draft.index for draft in new), made, strict=True))
    return [known.get(draft.index) or fresh[draft.index] for draft in drafts], True


def _draft(index: int, document: dict[str, Any]) -> Draft:
    arguments = jsontext.canonical(document["arguments"])
    return Draft(index, document, arguments, call_digest(document["tool"], arguments))


def _ensure_readable(drafts: Iterable[Draft], *, single: bool) -> None:
    """Refuse what nobody could read before deciding. Raises InvalidBody."""
    for draft in drafts:
        said = draft.document.get("dry_run")
        if said is not None and len(jsontext.canonical(said)) > MAX_DRY_RUN_BYTES:
            at = "/dry_run" if single else f"/steps/{draft.index}/dry_run"
            raise InvalidBody.at(at, f"Must have {MAX_DRY_RUN_BYTES} bytes at most.")


def _words(draft: Draft, version: ToolVersion) -> dict[str, Any]:
    """Return what the agent says of its proposal; its dry run without what is sensitive."""
    words = {name: draft.document[name] for name in WORDS if name in draft.document}
    if (said := draft.document.get("dry_run")) is not None:
        arguments = draft.document["arguments"]
        words["dry_run"] = templates.concealed(_whole(said), arguments, version.sensitive)
    return words


def _whole(dry_run: dict[str, Any]) -> dict[str, Any]:
    """Return a dry run with each member that it left out."""
    return {
        "summary": dry_run["summary"],
        "changes": [{"before": None, "after": None, **one} for one in dry_run["changes"]],
        "warnings": dry_run.get("warnings", []),
    }


def _known(run: Run, drafts: Iterable[Draft]) -> dict[int, Step]:
    """The steps that the drafts' keys name already, by the draft's index."""
    keys = {draft.key: draft for draft in drafts if draft.key is not None}
    if not keys:
        return {}
    if len(keys) < sum(draft.key is not None for draft in drafts):
        raise InvalidBody.at("/steps", "a key stands twice in one group")
    known: dict[int, Step] = {}
    rows = Step.objects.filter(key_scope=run.key_scope, key__in=list(keys))
    for step in rows.order_by("id"):
        if step.run_id != run.pk and step.status != StepStatus.SUCCEEDED:
            continue  # never done there: proposed anew here
        draft = keys[step.key or ""]
        if step.proposed_digest != draft.same_call:
            raise StepKeyReused(f"{draft.key!r} names another call.")
        known[draft.index] = step
    return known


def _group(run: Run, group: UUID | None) -> UUID:
    if group is not None and not Step.objects.filter(run=run, group=group).exists():
        raise InvalidBody.at("/group", "is no group of this run")
    return group or uuid7()


def _refusal(
    work: Work, drafts: list[Draft], versions: dict[str, ToolVersion], *, single: bool
) -> InvalidArguments | None:
    """Say of the first draft that breaks its tool's schema where it does, and tell the journal."""
    for draft in drafts:
        version = versions[draft.tool]
        checker = catalogue.validator(current_tenant_id(), version.pk)
        if wrong := checker.validate(draft.document["arguments"]):
            work.note("proposal.refused", tool=draft.tool, tool_version=version.number)
            work.state_unchanged()
            at = "/arguments" if single else f"/steps/{draft.index}/arguments"
            return InvalidArguments(
                "The arguments break the tool's schema.", errors=faults(wrong, at)
            )
    return None


def _record(
    work: Work,
    drafts: list[Draft],
    versions: dict[str, ToolVersion],
    *,
    parallel: bool,
    group: UUID,
) -> list[Step]:
    made = []
    for draft in drafts:
        version = versions[draft.tool]
        work.run.last_position += 1
        digest = step_digest(draft.tool, version.number, draft.arguments)
        step = Step(
            run=work.run,
            position=work.run.last_position,
            group=group,
            parallel=parallel,
            key=draft.key,
            key_scope=work.run.key_scope,
            session=work.run.session,
            tool_id=version.tool_id,
            tool_version=version,
            tool_name=draft.tool,
            tool_number=version.number,
            executor=version.executor_kind,
            effect=version.effect,
            risk=version.risk,
            timeout_seconds=version.timeout_seconds,
            arguments=content.put(draft.arguments, sensitive=bool(version.sensitive)),
            digest=digest,
            proposed_digest=draft.same_call,
            proposal=_words(draft, version),
            created_at=work.now,
        )
        work.note(
            "step.proposed",
            step=step.pk,
            position=step.position,
            tool=step.tool_name,
            tool_version=step.tool_number,
            arguments=bytes(step.arguments).hex(),
            group=group,
            key=step.key,
            imprint=work.imprint(step, imprints.STEP),
        )
        needs.state(work, step, version)
        made.append(step)
    Step.objects.bulk_create(made)
    return made


def _state(work: Work, drafts: list[Draft], *, single: bool) -> None:
    """Take a checkpoint with the agent's state that came with the proposals: the last one given."""
    given = [draft for draft in drafts if draft.document.get("agent_state")]
    if given:
        at = "/agent_state" if single else f"/steps/{given[-1].index}/agent_state"
        state = agentstate.read(given[-1].document["agent_state"], work.run, at=at)
        checkpoints.take(work, agent_state=state)


def _judge(work: Work, made: list[Step]) -> None:
    """Settle what was rejected before, hold what has a twin or no budget, judge the rest."""
    alike = _alike(work, made)
    judged: list[tuple[Step, Judgement]] = []
    for step in made:
        before = alike.get(step.proposed_digest)
        if before is not None and before.status == StepStatus.REJECTED:
            steps.settle_without_running(
                work, step, StepStatus.REJECTED, before.reason, before.reason_code
            )
            continue
        if before is not None:
            step.twin = before.pk
            if not before.run.ended:
                hold(work, step, "twin")
                continue
        work.admitted = _counting(judged)
        verdict = judge(work, step)
        if verdict.verdict == "deny" or _may_be_let_in(work, step, _counting(judged)):
            judged.append((step, verdict))
    steps.apply(work, judged)


def _may_be_let_in(work: Work, step: Step, others: int) -> bool:
    """Whether the step knows what it needs and fits into the budgets; else the run is held."""
    if missed := needs.lacking(step, work.now):
        needs.hold(work, step, missed)
        return False
    return steps.is_counted(step) or _within_budget(work, step, others)


def _counting(judged: list[tuple[Step, Judgement]]) -> int:
    """How many of these count as used steps from now on: those that are not denied."""
    return sum(verdict.verdict != "deny" and not steps.is_counted(step) for step, verdict in judged)


def _alike(work: Work, made: list[Step]) -> dict[str, Step]:
    """Equal calls: rejected in this run, or of unknown outcome in another of the same work.

    A person's refusal in this run comes first, then a twin that is being found out, then one that
    stays unknown for good.
    """
    run = work.run
    rows = Step.objects.filter(
        Q(run=run, status=StepStatus.REJECTED)
        | Q(status=StepStatus.UNKNOWN, run__agent=run.agent_id, run__workflow=run.workflow),
        tenant=current_tenant_id(),
        proposed_digest__in=[step.proposed_digest for step in made],
    ).exclude(pk__in=[step.pk for step in made])
    found = list(rows.select_related("run"))
    expired = _expired(found)
    alike = [row for row in found if row.interrupt not in expired]
    alike.sort(key=lambda row: (row.run_id == run.pk, not row.run.ended))
    return {row.proposed_digest: row for row in alike}


def _expired(found: list[Step]) -> set[UUID | None]:
    """The interrupts that nobody answered in time: what they rejected, no person has refused."""
    asked = [step.interrupt for step in found if step.interrupt is not None]
    if not asked:
        return set()
    timed_out = Interrupt.objects.filter(pk__in=asked, resolution=Resolution.TIME_OUT)
    return set(timed_out.values_list("pk", flat=True))


def hold(work: Work, step: Step, by: str) -> None:
    """Have the step wait for the budget, or for its twin, which is looked at from time to time."""
    if step.status != StepStatus.WAITING:
        move_step(step, StepStatus.WAITING)
    step.held_by = by
    step.save(update_fields=["status", "held_by", "twin"])
    work.note("step.held", step=step.pk, by=by, twin=step.twin)
    if by == "twin":
        work.due(work.now + PATROL)


def judge(work: Work, step: Step) -> Judgement:
    """Say what policy says of a proposal; one whose twin stays unknown for good is asked about."""
    ended = steps.of_agent(work)
    if ended is not None:  # since the proposal was let in, or while it waited
        return ended
    judgement = authorizer().judge(work, step, content.get(step.arguments))
    if judgement.verdict == "allow" and step.twin is not None:
        twin = Step.objects.select_related("run").get(pk=step.twin)
        if twin.status == StepStatus.UNKNOWN and twin.run.ended:
            return dataclasses.replace(judgement, verdict="approve", reason=TWIN, detail={})
    return judgement


def _within_budget(work: Work, step: Step, more: int) -> bool:
    """Reserve what the step costs; one that is over a budget waits, and the run is suspended."""
    cost = reservations.estimate(step)
    over = runs.over_any(work, more_steps=more + 1, more_cost=cost)
    if over is None:
        reservations.take(work, step, cost)
        return True
    if step.held_by != "budget":
        hold(work, step, "budget")
    runs.hold_for_budget(work, over)
    return False


def held(work: Work, by: str) -> list[Step]:
    """The steps that wait for the budget, or for their twins, in order of position."""
    rows = Step.objects.filter(run=work.run, status=StepStatus.WAITING, held_by=by)
    return list(rows.order_by("position"))


def release_twins(work: Work) -> None:
    """Judge the steps whose twins' outcomes are known now, or never will be."""
    waiting = held(work, "twin")
    alike = _alike(work, waiting) if waiting else {}
    released = []
    for step in waiting:
        twin = alike.get(step.proposed_digest)
        if twin is not None and twin.status == StepStatus.UNKNOWN:
            step.twin = twin.pk
            if not twin.run.ended:
                continue
        released.append(step)
    rejudge(work, released)


def rejudge(work: Work, waiting: list[Step]) -> None:
    """Judge again what waited for the budget, for its twin's outcome, or for what it needs to know."""
    judged: list[tuple[Step, Judgement]] = []
    for step in waiting:
        work.admitted = _counting(judged)
        verdict = judge(work, step)
        if verdict.verdict == "deny" or _may_be_let_in(work, step, _counting(judged)):
            judged.append((step, verdict))
    steps.apply(work, judged)
