"""What a policy that is not in force would have said of recorded steps, and what was said of one.

Nothing is recorded by it, and nothing is decided again: each step is judged as it stands on record,
with the tool's version, the arguments and the agent's own words that it was proposed with, or edited
to.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from approvals import circumstances, judging, reaching
from approvals.circumstances import Memo
from approvals.models import Gate, PolicyStatus, PolicyVersion
from approvals.policy import RuleSaid, Verdict, compile_policy, explain, validate_policy
from approvals.policy.judging import STRICTEST, CompiledPolicy, Kind, Subject
from approvals.policy.milestones import Point
from config.errors import InvalidBody, faults
from interrupts import catalogue, selectors
from interrupts.models import Run, Step, StepStatus
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


@dataclass(frozen=True, slots=True)
class Tried:
    """A recorded step: what was decided of it, and what the draft says."""

    step: Step
    decided: Kind
    verdict: Verdict

    @property
    def changed(self) -> bool:
        return self.decided != self.verdict.verdict


class Change(NamedTuple):
    """Steps that one rule of a draft would have decided otherwise, in one way; some as examples."""

    decided: Kind
    simulated: Kind
    rule: str
    steps: int
    examples: Sequence[Tried]

    @property
    def looser(self) -> bool:
        """Whether the draft would have let through what was held or stopped."""
        return STRICTEST.index(self.simulated) > STRICTEST.index(self.decided)


@dataclass(slots=True)
class Simulated:
    """The steps that were tried, newest first, and where to go on; None: there are no more.

    ``unjudged`` counts steps of which policy was never asked, and ``erased`` those whose arguments
    are gone; neither is among ``tried``.
    """

    tried: list[Tried] = field(default_factory=list)
    unjudged: int = 0
    erased: int = 0
    after: UUID | None = None

    @property
    def changed(self) -> list[Tried]:
        return [one for one in self.tried if one.changed]

    def by_rule(self) -> dict[str, tuple[int, int]]:
        """Return for each rule that would decide: how many steps, and how many otherwise."""
        steps = Counter(one.verdict.rule for one in self.tried)
        changed = Counter(one.verdict.rule for one in self.changed)
        return {rule: (steps[rule], changed[rule]) for rule in sorted(steps)}

    def changes(self) -> list[Change]:
        """Return the changed steps by verdict before and after and by rule, the looser first."""
        found: dict[tuple[Kind, Kind, str], list[Tried]] = defaultdict(list)
        for one in self.changed:
            found[one.decided, one.verdict.verdict, one.verdict.rule].append(one)
        made = [Change(*key, len(steps), steps[:EXAMPLES]) for key, steps in found.items()]
        return sorted(made, key=lambda one: (not one.looser, -one.steps, one.rule))


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
    draft = compile_policy(document)
    memo: Memo = {}
    since = since or database_now() - LOOKED_BACK
    made, until = Simulated(), time.monotonic() + MOST_SECONDS
    while True:
        asked = min(limit, _AT_ONCE)
        rows = _before(after, since, asked)
        _try(made, draft, rows, memo)
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


def _try(made: Simulated, draft: CompiledPolicy, rows: Sequence[Step], memo: Memo) -> None:
    bodies = selectors.bodies(step.arguments for step in rows)
    for step in rows:
        decided = decided_of(step)
        if decided is None:
            made.unjudged += 1
        elif bytes(step.arguments) not in bodies:
            made.erased += 1
        else:
            reached = reaching.reached_then(draft, step, step.run)
            subject = _subject(draft, step, bodies[bytes(step.arguments)], memo, reached)
            made.tried.append(Tried(step, decided, draft.judge(subject)))


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
