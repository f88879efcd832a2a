"""What a policy that is not in force would have said of recorded steps and of runs that completed,
and what was said of one step.

Nothing is recorded by it, and nothing is decided again: each step is judged as it stands on record,
with the tool's version, the arguments and the agent's own words that it was proposed with, or edited
to. What the draft asks of people is set against what the version asked that judged the step then.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from approvals import circumstances, judging, reaching
from approvals.circumstances import Memo
from approvals.models import Gate, PolicyStatus, PolicyVersion
from approvals.policy import (
    RuleSaid,
    Verdict,
    compile_policy,
    ends,
    explain,
    judge_completion,
    offered,
    validate_policy,
)
from approvals.policy.differing import Difference, differences
from approvals.policy.judging import STRICTEST, CompiledPolicy, Kind, Subject
from approvals.policy.milestones import Point
from config.errors import InvalidBody, faults
from interrupts import catalogue, selectors
from interrupts.models import Interrupt, Reason, Run, RunStatus, Step, StepStatus
from interrupts.transitions.steps import AGENT_ENDED
from tenants.clock import database_now
from tenants.ids import first_id
from tenants.scope import current_tenant_id
from tenants.services.groups import members_of_groups

MOST_STEPS: Final = 5_000
USUAL_STEPS: Final = 500
LOOKED_BACK: Final = timedelta(days=30)
MOST_SECONDS: Final = 10.0  # then what was found so far is told, and where to go on
EXAMPLES: Final = 5
_AT_ONCE: Final = 200


def is_looser(decided: Kind, simulated: Kind) -> bool:
    """Say whether a draft would have let through what was held or stopped."""
    return STRICTEST.index(simulated) > STRICTEST.index(decided)


@dataclass(frozen=True, slots=True)
class Tried:
    """A recorded step: what was decided of it, and what the draft says.

    ``differences`` are what it would ask of people otherwise, where both ask, the looser first.
    """

    step: Step
    decided: Kind
    verdict: Verdict
    differences: tuple[Difference, ...] = ()

    @property
    def changed(self) -> bool:
        return self.decided != self.verdict.verdict or bool(self.differences)


@dataclass(frozen=True, slots=True)
class Completion:
    """A run that completed or was to: whether it was let, or people were asked, and the draft's word."""

    run: Run
    decided: Kind
    verdict: Verdict

    @property
    def changed(self) -> bool:
        return self.decided != self.verdict.verdict


T = TypeVar("T", Tried, Completion)


class Change(NamedTuple, Generic[T]):
    """What one rule of a draft would have decided or asked otherwise, in one way; some as examples."""

    decided: Kind
    simulated: Kind
    rule: str
    differences: tuple[Difference, ...]
    number: int
    examples: Sequence[T]

    @property
    def looser(self) -> bool:
        """Whether the draft lets through what was held or stopped, or asks for less."""
        milder = any(one.looser for one in self.differences)
        return is_looser(self.decided, self.simulated) or milder


@dataclass(slots=True)
class Simulated:
    """The steps that were tried, newest first, and where to go on; None: there are no more.

    ``unjudged`` counts steps of which policy was never asked, and ``erased`` those whose arguments
    are gone; neither is among ``tried``. ``completions`` are of the runs whose newest step is among
    those that were looked at, where the draft says something of it or people were asked then.
    """

    tried: list[Tried] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)
    unjudged: int = 0
    erased: int = 0
    after: UUID | None = None

    @property
    def changed(self) -> list[Tried]:
        return [one for one in self.tried if one.changed]

    @property
    def looser(self) -> int:
        """How many steps it would decide looser, or ask less about."""
        return sum(one.number for one in self.changes() if one.looser)

    @property
    def stricter(self) -> int:
        """How many of the changed steps it would not."""
        return len(self.changed) - self.looser

    @property
    def changed_completions(self) -> list[Completion]:
        return [one for one in self.completions if one.changed]

    def by_rule(self) -> dict[str, tuple[int, int]]:
        """Return for each rule that would decide: how many steps, and how many otherwise."""
        steps = Counter(one.verdict.rule for one in self.tried)
        changed = Counter(one.verdict.rule for one in self.changed)
        return {rule: (steps[rule], changed[rule]) for rule in sorted(steps)}

    def changes(self) -> list[Change[Tried]]:
        """Return the changed steps by what was and would be said, and by rule, the looser first."""
        return _changes(self.changed, lambda one: one.differences)

    def changes_of_completions(self) -> list[Change[Completion]]:
        return _changes(self.changed_completions, lambda _: ())


def _changes(
    changed: Sequence[T], differ: Callable[[T], tuple[Difference, ...]]
) -> list[Change[T]]:
    found: dict[tuple[Kind, Kind, str, tuple[Difference, ...]], list[T]] = defaultdict(list)
    for one in changed:
        found[one.decided, one.verdict.verdict, one.verdict.rule, differ(one)].append(one)
    made = [Change(*key, len(those), those[:EXAMPLES]) for key, those in found.items()]
    return sorted(made, key=lambda one: (not one.looser, -one.number, one.rule))


def simulate(
    document: Mapping[str, Any],
    *,
    since: datetime | None = None,
    limit: int = USUAL_STEPS,
    after: UUID | None = None,
) -> Simulated:
    """Try a policy on the newest ``limit`` steps since then (30 days), or on those before ``after``.

    Raises InvalidBody where the policy could not be published.
    """
    if wrong := validate_policy(document, members_of_groups()):
        raise InvalidBody(errors=faults(wrong, "/policy"))
    draft = _Draft(document, compile_policy(document))
    memo: Memo = {}
    since = since or database_now() - LOOKED_BACK
    made, until = Simulated(), time.monotonic() + MOST_SECONDS
    start, met = after, set[UUID]()
    while True:
        asked = min(limit, _AT_ONCE)
        rows = _before(after, since, asked)
        _try(made, draft, rows, memo)
        _try_completions(made, draft, _met_first(rows, met, start))
        if len(rows) < asked:
            return made
        after, limit = rows[-1].pk, limit - asked
        if limit == 0 or time.monotonic() > until:
            made.after = after if _before(after, since, 1) else None
            return made


def _before(after: UUID | None, since: datetime, limit: int) -> Sequence[Step]:
    """Return steps newest first, from the end of an index and no further back than since then."""
    rows = Step.objects.filter(pk__gte=first_id(since), created_at__gte=since)
    # Apart: joined, a plan that knows of few runs goes through all of an agent's for each step.
    rows = rows.prefetch_related("run__agent")
    if after is not None:
        rows = rows.filter(pk__lt=after)
    return list(rows.order_by("-pk")[:limit])


def _met_first(rows: Sequence[Step], met: set[UUID], start: UUID | None) -> list[Run]:
    """Return the runs of which no step was looked at before these, here or on the pages before.

    What was is in ``met``, and newer than ``start``, where the page begins; so each run is tried on
    the page of its newest step, and on no other.
    """
    found = {step.run_id: step.run for step in rows if step.run_id not in met}
    met.update(found)
    if start is not None and found:
        newer = Step.objects.filter(run__in=list(found), pk__gte=start)
        for run_id in newer.values_list("run_id", flat=True).distinct():
            del found[run_id]
    return list(found.values())


class _Draft(NamedTuple):
    document: Mapping[str, Any]
    compiled: CompiledPolicy


def _try(made: Simulated, draft: _Draft, rows: Sequence[Step], memo: Memo) -> None:
    bodies = selectors.bodies(step.arguments for step in rows)
    versions = _versions_of_gates(rows)
    for step in rows:
        decided = decided_of(step)
        if decided is None:
            made.unjudged += 1
        elif bytes(step.arguments) not in bodies:
            made.erased += 1
        else:
            arguments = bodies[bytes(step.arguments)]
            reached = reaching.reached_then(draft.compiled, step, step.run)
            subject = _subject(draft.compiled, step, arguments, memo, reached)
            one = Tried(step, decided, draft.compiled.judge(subject))
            if decided == one.verdict.verdict == "approve":
                number = versions[step.gate]
                differ = _asked_otherwise(draft, one.verdict, number, step, arguments, memo)
                one = replace(one, differences=differ)
            made.tried.append(one)


def _versions_of_gates(rows: Sequence[Step]) -> Mapping[UUID | None, int]:
    """Return under which version each gate of the steps was opened or updated last."""
    gates = [step.gate for step in rows if step.gate is not None]
    return dict(Gate.objects.filter(pk__in=gates).values_list("pk", "policy_version"))


def _asked_otherwise(
    draft: _Draft, verdict: Verdict, number: int, step: Step, arguments: Any, memo: Memo
) -> tuple[Difference, ...]:
    """Return what the draft asks of people that the version which asked them did not, or not so.

    Nothing where that one asked by no rule of its own: a newer version of a tool is asked about.
    """
    then = judging.policy(number)
    was = then.compiled.judge(_subject(then.compiled, step, arguments, memo, _reached(step)))
    if was.verdict != "approve":
        return ()
    tool = step.tool_name
    reasons = [offered(one.document.get("reasons") or (), tool) for one in (then, draft)]
    return differences(was, verdict, *reasons)


def _try_completions(made: Simulated, draft: _Draft, runs: Sequence[Run]) -> None:
    """Try what was decided of the completion of these runs, where anything gates it: one statement."""
    if not runs:
        return
    asked = Interrupt.objects.filter(run__in=runs, reason=Reason.MILESTONE, step=None)
    opened = dict(asked.order_by("-opened_at").values_list("run_id", "opened_at"))
    for run in runs:
        at = opened.get(run.pk) or run.ended_at
        if run.pk in opened or run.status == RunStatus.COMPLETED:
            decided: Kind = "approve" if run.pk in opened else "allow"
            verdict = judge_completion(draft.compiled, _ending(draft.compiled, run, at))
            if decided == "approve" or ends(draft.compiled, run.workflow):
                made.completions.append(Completion(run, decided, verdict))


def _ending(compiled: CompiledPolicy, run: Run, at: datetime | None) -> Subject:
    known = circumstances.of_completion(run, at or run.updated_at, compiled.time_zone)
    return judging.completing(run, run.agent.name, known)


def decided_of(step: Step) -> Kind | None:
    """Return what policy said of a step when it was last asked; None: it never was.

    An agent's end is no word of policy, and neither is a person's.
    """
    if step.status == StepStatus.DENIED:
        return None if step.reason == AGENT_ENDED else "deny"
    if step.gate is not None:
        return "approve"
    return "allow" if step.authorized_by == "policy" else None


def _subject(
    compiled: CompiledPolicy, step: Step, arguments: Any, memo: Memo, reached: tuple[Point, ...]
) -> Subject:
    run: Run = step.run
    return judging.subject(
        step.tool_name,
        catalogue.version(current_tenant_id(), step.tool_version_id),
        arguments,
        step.proposal,
        circumstances.as_recorded(compiled, step, run, memo),
        reached,
        agent=run.agent.name,
        workflow=run.workflow,
        depth=len(run.path),
    )


@dataclass(frozen=True, slots=True)
class Explained:
    """What was said of a step, rule by rule, under the version that it was judged by.

    ``rules`` is None where the arguments were erased; ``now`` is what the policy in force says.
    """

    step: Step
    decided: Kind | None
    policy_version: int
    rules: list[RuleSaid] | None
    verdict: Verdict | None
    now: Verdict | None
    version_now: int


def why(step_id: UUID) -> Explained:
    """Explain the verdict on a step. Raises Step.DoesNotExist."""
    step = Step.objects.select_related("run__agent").get(pk=step_id)
    number, number_now = _judged_by(step), judging.number_now()
    bodies = selectors.bodies([step.arguments])
    judged = judging.policy(number)
    rules = verdict = now = None
    memo: Memo = {}
    if (arguments := bodies.get(bytes(step.arguments), _ERASED)) is not _ERASED:
        reached = _reached(step)
        subject = _subject(judged.compiled, step, arguments, memo, reached)
        rules = explain(judged.document, subject)
        verdict = judged.compiled.judge(subject)
        in_force = judging.policy(number_now).compiled
        if number != number_now:
            reached = reaching.reached_then(in_force, step, step.run)
        now = in_force.judge(_subject(in_force, step, arguments, memo, reached))
    return Explained(step, decided_of(step), number, rules, verdict, now, number_now)


def _reached(step: Step) -> tuple[Point, ...]:
    """Return the milestones that it reached when it was judged."""
    return reaching.points_of((step.judged or {}).get("milestones", []))


_ERASED: Final = object()


def _judged_by(step: Step) -> int:
    """Return the number of the policy version that spoke last of a step; 0: there was none."""
    if step.status != StepStatus.DENIED:
        if step.gate is not None:
            return int(Gate.objects.values_list("policy_version", flat=True).get(pk=step.gate))
        if step.authorized_policy_version is not None:
            return step.authorized_policy_version
    at = step.settled_at or step.created_at
    published = PolicyVersion.objects.filter(status=PolicyStatus.PUBLISHED, published_at__lte=at)
    last = published.order_by("-number").values_list("number", flat=True).first()
    return last or judging.NO_POLICY
