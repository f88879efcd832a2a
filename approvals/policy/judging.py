"""What a policy says of one call: the strictest of the rules that match, in any order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from approvals.policy.conditions import Condition, ConditionError, Facts, names_of
from approvals.policy.ends import NEVER, End, joined_end, parse_end
from approvals.policy.milestones import Milestone, Point, parse_milestone, told_reached
from approvals.policy.scoring import Score, Scorer, parse_scorer, score
from approvals.policy.stages import Stage, joined, needed, parse_stages
from config.globs import matches_any
from tenants.zones import UTC

Kind = Literal["allow", "approve", "deny"]

STRICTEST: Final[tuple[Kind, ...]] = ("deny", "approve", "allow")  # first
DEFAULT: Final = "default"
MAX_TOOLS_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Subject:
    """A call as policy sees it; from `confidence` on, the agent's own words, which may be missing.

    Once the policy's scorers have spoken, `risk_score` is the larger of theirs and the agent's, and
    `scored` says how a scorer's came about where it is that one. `known` is what is known around
    the call (`circumstances`), by the name that conditions have for it. `reached` are the declared
    milestones at which the run stands with it. Of a run that completes, `tool` is empty.
    """

    tool: str
    effect: str
    risk: str
    arguments: Any
    agent: str
    workflow: str
    confidence: float | None = None
    risk_score: float | None = None
    milestone: str | None = None
    scored: str | None = None
    depth: int = 0  # of the run: how many runs are above it
    known: Mapping[str, Any] = field(default_factory=dict)
    reached: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the policy says; `quorum` and what follows it belong to `approve`. Times in seconds.

    `rule` is the one that decided, `triggers` are all of its kind that matched, by name.
    `approvers` are groups, of one of which a person must be; none: whoever may decide the tool.
    Where there are several `stages` they name the approvers, and `quorum` is that of all together;
    `expires_in` and what belongs to it is of the whole decision, beside what each stage says.
    `score` is what the scorers say, whatever the agent says; None: there is none for the tool.
    `points` are the declared milestones that were asked about.
    """

    verdict: Kind
    rule: str
    reason: str | None = None
    triggers: tuple[Mapping[str, str], ...] = ()
    quorum: int = 1
    stages: tuple[Stage, ...] = ()
    approvers: tuple[str, ...] = ()
    expires_in: int | None = None
    on_expiry: str | None = None
    escalate_to: str | None = None
    warn_before: int | None = None
    cool_down: int = 0
    extendable_to: int | None = None
    score: float | None = None
    points: tuple[Point, ...] = ()

    @property
    def end(self) -> End:
        """When the whole decision ends unanswered."""
        return End(*(getattr(self, name) for name in End._fields))


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a policy, its condition compiled."""

    name: str
    trigger: str
    then: Kind
    tools: tuple[str, ...] | None
    condition: Condition | None
    at_least: float
    below: float
    milestones: frozenset[str]
    reason: str | None
    stages: tuple[Stage, ...]  # one where the rule names none
    end: End  # of the whole decision; stages may have their own
    cool_down: int

    @property
    def is_fixed(self) -> bool:
        """Whether the rule says the same of every call of its tools."""
        return self.trigger == "action" and self.condition is None

    def explanation(self, subject: Subject, facts: Facts) -> str | None:
        """Return why the rule matches; None: it does not.

        A condition without an answer makes a rule match that allows nothing.
        """
        if not self.is_triggered(subject):
            return None
        if self.condition is None:
            return self._words(subject)
        try:
            if not self.condition.holds(facts):
                return None
        except ConditionError as why:
            if self.then == "allow":
                return None
            told = f"Its condition could not be evaluated ({why}), so the rule counts."
            return f"{self._words(subject)} {told}"
        return f"{self._words(subject)} Its condition holds: {self.condition.source}"

    def is_triggered(self, subject: Subject) -> bool:
        """Whether what the rule looks at, its condition aside, is so of the call."""
        if self.trigger == "risk":
            return subject.risk_score is not None and subject.risk_score >= self.at_least
        if self.trigger == "confidence":
            return subject.confidence is not None and subject.confidence < self.below
        if self.trigger == "milestone":
            return subject.milestone in self.milestones or any(self.points(subject))
        return True

    def points(self, subject: Subject) -> tuple[Point, ...]:
        """Return the declared milestones that it is about and that the call reaches."""
        return tuple(point for point in subject.reached if point.name in self.milestones)

    def _words(self, subject: Subject) -> str:
        if self.trigger == "risk":
            return told_score(subject, f"is at least {self.at_least}.")
        if self.trigger == "confidence":
            return f"The stated confidence {subject.confidence} is below {self.below}."
        if self.trigger == "milestone":
            return told_reached(self.points(subject), subject.milestone, of_step=bool(subject.tool))
        return f"The policy has a rule for {subject.tool}."


def told_score(subject: Subject, compared: str) -> str:
    """Say how the score compares, and where it comes from if it is a scorer's."""
    told = f"The risk score {subject.risk_score} {compared}"
    return told if subject.scored is None else f"{told} {subject.scored}"


_Matched = list[tuple[Rule, str]]


@dataclass(slots=True)
class _Applicable:
    """The rules that can match calls of one tool, by kind; the verdict where it is always one."""

    deny: list[Rule] = field(default_factory=list)
    approve: list[Rule] = field(default_factory=list)
    allow: list[Rule] = field(default_factory=list)
    scorers: list[Scorer] = field(default_factory=list)
    fixed: dict[str, Verdict] | None = None  # by effect
    names: frozenset[str] = frozenset()  # what conditions and scorers ask about
    milestones: list[Milestone] = field(default_factory=list)  # that a rule speaks of


class CompiledPolicy:
    """A policy version made ready; it may be kept for as long as the version."""

    __slots__ = ("_by_tool", "_scorers", "declared", "rules", "time_zone")

    def __init__(
        self,
        rules: Iterable[Rule],
        scorers: Iterable[Scorer] = (),
        milestones: Iterable[Milestone] = (),
        time_zone: str = UTC,
    ) -> None:
        self.time_zone = time_zone
        self.declared = list(milestones)
        self.rules = sorted(rules, key=lambda rule: rule.name)
        self._scorers = list(scorers)
        self._by_tool: dict[str, _Applicable] = {}

    def judge(self, subject: Subject) -> Verdict:
        """Say what the strictest matching rule says: deny over approve over allow.

        Among those that ask, the largest quorum, the shortest expiry and the common approvers
        count, and of stages those that meet each rule's. Where no rule matches, `read` is allowed
        and everything else asks. The risk score is the larger of what the scorers say and what the
        agent says.
        """
        applicable = self._applicable(subject.tool)
        if applicable.fixed is not None:
            if (known := applicable.fixed.get(subject.effect)) is None:
                known = applicable.fixed[subject.effect] = _judge(applicable, subject)
            return known
        return _judge(applicable, subject)

    def asks_about(self, tool: str) -> frozenset[str]:
        """Return what conditions and scorers for calls of the tool ask about, by name."""
        return self._applicable(tool).names

    def milestones(self, tool: str, workflow: str) -> list[Milestone]:
        """Return those declared for the workflow that rules for calls of the tool speak of."""
        known = self._applicable(tool).milestones
        return [one for one in known if matches_any([one.workflow], workflow)]

    def _applicable(self, tool: str) -> _Applicable:
        return self._by_tool.get(tool) or self._learn(tool)

    def _learn(self, tool: str) -> _Applicable:
        found = _Applicable()
        for rule in self.rules:
            if rule.tools is None or matches_any(rule.tools, tool):
                getattr(found, rule.then).append(rule)
        rules = (*found.deny, *found.approve, *found.allow)
        # What no rule looks at is scored too: the score is kept, to be compared with decisions.
        found.scorers = [one for one in self._scorers if matches_any(one.tools, tool)]
        if not found.scorers and all(rule.is_fixed for rule in rules):
            found.fixed = {}
        expressions = [scorer.expression for scorer in found.scorers]
        found.names = names_of(rule.condition for rule in rules) | names_of(expressions)
        spoken_of = frozenset[str]().union(*(rule.milestones for rule in rules))
        found.milestones = [one for one in self.declared if one.name in spoken_of]
        if len(self._by_tool) >= MAX_TOOLS_KEPT:
            self._by_tool.clear()
        self._by_tool[tool] = found
        return found


def facts_of(subject: Subject) -> Facts:
    """Return what conditions may ask about the call."""
    return Facts(
        arguments=subject.arguments,
        tool={"name": subject.tool, "effect": subject.effect, "risk": subject.risk},
        agent={"name": subject.agent},
        run=run_of(subject),
        **subject.known,
    )


def run_of(subject: Subject) -> Mapping[str, Any]:
    return {"workflow": subject.workflow, "depth": subject.depth}


def with_score(subject: Subject, found: Score | None) -> Subject:
    """Return the call with what the scorers say of it; the agent's own score only raises."""
    if found is None or (subject.risk_score is not None and subject.risk_score >= found.value):
        return subject
    return replace(subject, risk_score=found.value, scored=found.explanation)


def _judge(applicable: _Applicable, subject: Subject) -> Verdict:
    facts = facts_of(subject)
    if not applicable.scorers:
        return _strictest(applicable, subject, facts)
    found = score(applicable.scorers, facts)
    verdict = _strictest(applicable, with_score(subject, found), facts)
    return verdict if found is None else replace(verdict, score=found.value)


def strict(
    deny: Sequence[Rule], approve: Sequence[Rule], subject: Subject, facts: Facts
) -> Verdict | None:
    """Return what the rules say that deny or ask; None: none of them matches."""
    if matched := _matching(deny, subject, facts):
        return _denied(matched)
    if matched := _matching(approve, subject, facts):
        verdict = _asked(matched)
        points = {point for rule, _ in matched for point in rule.points(subject)}
        return replace(verdict, points=tuple(sorted(points))) if points else verdict
    return None


def _strictest(applicable: _Applicable, subject: Subject, facts: Facts) -> Verdict:
    found = strict(applicable.deny, applicable.approve, subject, facts)
    if found is not None:
        return found
    if matched := _matching(applicable.allow, subject, facts):
        return Verdict("allow", matched[0][0].name, triggers=_triggers(matched))
    return _default(subject)


def _matching(rules: Sequence[Rule], subject: Subject, facts: Facts) -> _Matched:
    return [(rule, why) for rule in rules if (why := rule.explanation(subject, facts)) is not None]


def _triggers(matched: _Matched) -> tuple[Mapping[str, str], ...]:
    return tuple(
        {"rule": rule.name, "trigger": rule.trigger, "explanation": why} for rule, why in matched
    )


def _denied(matched: _Matched) -> Verdict:
    # One that gives a reason tells the agent more than one that gives none.
    decided = min((rule for rule, _ in matched), key=lambda rule: (rule.reason is None, rule.name))
    return Verdict("deny", decided.name, reason=decided.reason, triggers=_triggers(matched))


def _asked(matched: _Matched) -> Verdict:
    rules = [rule for rule, _ in matched]
    decided = min(rules, key=lambda rule: (-needed(rule.stages), rule.end.seconds, rule.name))
    stages = joined(rule.stages for rule in rules)
    end = joined_end(rule.end for rule in rules)
    return Verdict(
        "approve",
        decided.name,
        reason=decided.reason,
        triggers=_triggers(matched),
        quorum=needed(stages),
        stages=stages if len(stages) > 1 else (),
        approvers=stages[0].approvers if len(stages) == 1 else (),
        **end._asdict(),
        cool_down=max(rule.cool_down for rule in rules),
    )


def _default(subject: Subject) -> Verdict:
    if subject.effect == "read":
        why = f"No rule matches, and {subject.tool} only reads."
        return Verdict("allow", DEFAULT, triggers=(_default_trigger(why),))
    why = f"No rule matches, and {subject.tool} does more than read."
    return Verdict("approve", DEFAULT, triggers=(_default_trigger(why),))


def _default_trigger(why: str) -> Mapping[str, str]:
    return {"rule": DEFAULT, "trigger": DEFAULT, "explanation": why}


def compile_policy(document: Mapping[str, Any]) -> CompiledPolicy:
    """Make a validated policy document ready.

    A condition that was saved and no longer compiles has no answer from then on: its rule counts
    where it denies or asks, and never allows; such a score counts as 1.
    """
    return CompiledPolicy(
        (parse_rule(rule) for rule in document.get("rules") or ()),
        map(parse_scorer, document.get("scorers") or ()),
        map(parse_milestone, document.get("milestones") or ()),
        document.get("time_zone", UTC),
    )


def parse_rule(rule: Mapping[str, Any]) -> Rule:
    """Read one validated rule."""
    condition = rule.get("condition")
    tools = rule.get("tools")
    stages, end = parse_stages(rule), parse_end(rule)
    if len(stages) == 1:  # its end is that of the whole decision, whatever other rules ask after it
        end, stages = joined_end([end, stages[0].end]), (stages[0]._replace(end=NEVER),)
    return Rule(
        name=rule["name"],
        trigger=rule["trigger"],
        then=rule["then"],
        tools=None if tools is None else tuple(tools),
        condition=None if condition is None else Condition(condition),
        at_least=rule.get("at_least", 0),
        below=rule.get("below", 1),
        milestones=frozenset(rule.get("milestones", ())),
        reason=rule.get("reason"),
        stages=stages,
        end=end,
        cool_down=rule.get("cool_down", 0),
    )
