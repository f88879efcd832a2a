"""Random policies and calls, made so that rules meet: globs overlap, conditions hold, fail and err."""

import operator
from datetime import UTC
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from approvals.policy import NOBODY, Subject, Verdict, compile_policy
from approvals.policy.circumstances import step_facts, time_facts, usage_facts
from approvals.policy.conditions import Condition, ConditionError, Facts
from approvals.policy.ends import ENDS, End
from approvals.policy.milestones import Point
from approvals.policy.stages import Stage

RANK = {"allow": 0, "approve": 1, "deny": 2}

TOOLS = ["payments.refund", "payments.refunds", "payroll.get"]
BOUNDS = ["100", "100.00", "99.99", "9007199254740992", "-1"]
AMOUNTS = ["99.99", "100", "100.00000000000000001", "9007199254740993", "1e2", "+100.00"]
NO_AMOUNTS = ["\uff11\uff10\uff10", "x", "", 7, 150, 99.5, None, True, ["100"]]
# Each errs for some calls and not for others, or for all of them, or for none.
CONDITIONS = [
    "true",
    "false",
    "tool.effect == 'read'",
    "run.workflow == 'refunds' && agent.name.startsWith('support')",
    "arguments.amount.size() > 2",
    "arguments.amount > 100",
    "arguments.amount",
    "has(arguments.cap)",
    "arguments.missing == 1",
    "1 / 0 == 1",
    "decimal(arguments.missing) < decimal('1')",
    "decimal(arguments.amount) <= decimal(arguments.cap)",
    "decimal(arguments.amount) == decimal(tool.name)",
    "arguments.lines.all(line, decimal(line.price) < decimal('10'))",
    "arguments.lines.exists(line, line.price == '9')",
    "usage.steps < 3",
    "decimal(usage.cost) <= decimal('9.50')",
    "step.number == 1 && time.weekday < 6",
    "has(step.key) ? step.key == 'k' : run.depth == 0",
]
COMPARED = st.builds(
    "decimal(arguments.amount) {} decimal('{}')".format,
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.sampled_from(BOUNDS),
)
SIMPLE = st.one_of(COMPARED, COMPARED, st.sampled_from(CONDITIONS))
CONDITION = st.one_of(
    SIMPLE,
    st.builds("!({})".format, SIMPLE),
    st.builds("({}) && ({})".format, SIMPLE, SIMPLE),
    st.builds("({}) || ({})".format, SIMPLE, SIMPLE),
    st.builds("has(arguments.cap) ? ({}) : ({})".format, SIMPLE, SIMPLE),
)

PRICES = st.fixed_dictionaries({}, optional={"price": st.sampled_from(["9", "9.99", "y", 12])})
TOO_MANY = [{"price": "9"}] * 10_001
ARGUMENTS = st.fixed_dictionaries(
    {"amount": st.sampled_from(AMOUNTS) | st.sampled_from(AMOUNTS + NO_AMOUNTS)},
    optional={
        "cap": st.sampled_from(["50", "100", "z"]),
        "lines": st.lists(PRICES, max_size=3) | st.just(TOO_MANY),
    },
)
SCORE = st.sampled_from([0, 0.2, 0.5, 0.7, 1]) | st.floats(0, 1)
MILESTONE = st.sampled_from(["deploy", "end", "other"])
SAID = {
    "confidence": st.none() | SCORE,
    "risk_score": st.none() | SCORE,
    "milestone": st.none() | MILESTONE,
}
# What is not known errs.
KNOWN = st.fixed_dictionaries(
    {},
    optional={
        "usage": st.builds(
            usage_facts,
            steps=st.integers(2, 3),
            tokens=st.just(0),
            cost=st.sampled_from([Decimal("9.50"), Decimal("9.5000000001")]),
            seconds=st.just(Decimal(1)),
        ),
        "step": st.builds(
            step_facts,
            number=st.integers(1, 2),
            key=st.sampled_from([None, "k", "l"]),
            parallel=st.booleans(),
        ),
        "time": st.builds(
            time_facts,
            at=st.datetimes(timezones=st.just(UTC)),
            time_zone=st.sampled_from(["UTC", "Europe/Berlin"]),
        ),
    },
)
SUBJECT = st.builds(
    Subject,
    tool=st.sampled_from(TOOLS),
    effect=st.sampled_from(["read", "idempotent", "irreversible"]),
    risk=st.sampled_from(["low", "high"]),
    arguments=ARGUMENTS,
    agent=st.sampled_from(["support-bot", "other"]),
    workflow=st.sampled_from(["refunds", "other"]),
    known=KNOWN,
    reached=st.sampled_from([(), (Point("deploy", "after 2 effects"),)]),
    **SAID,
)

# An action is there twice: the other triggers need a word of the agent.
TRIGGERS = ["action", "action", "risk", "confidence", "milestone"]
OF_TRIGGER = {
    "action": {},
    "risk": {"at_least": st.sampled_from([0, 0.5, 0.7])},
    "confidence": {"below": st.sampled_from([0.3, 0.5, 1])},
    "milestone": {
        "milestones": st.lists(MILESTONE, min_size=1, max_size=2, unique=True),
    },
}
OF_STAGE = {
    "quorum": st.integers(1, 4),
    "approvers": st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2, unique=True),
}
OWN_END = st.sampled_from(
    [{}, {}, {"expires_in": 30}, {"expires_in": 30, "on_expiry": "cancel"}, {"expires_in": 45}]
)
STAGES = st.lists(
    st.builds(operator.or_, st.fixed_dictionaries({}, optional=OF_STAGE), OWN_END),
    min_size=1,
    max_size=3,
)
OF_ASKING = {
    **OF_STAGE,
    "expires_in": st.sampled_from([60, 60, 60, 3600]),
    "cool_down": st.sampled_from([1, 60, 600]),
}
OTHER_ENDS = [None, "reject", "cancel", "cancel", "escalate"]


@st.composite
def globs(draw: Any) -> str:
    """The name of a tool, in which up to two stars stand for parts of it."""
    name = draw(st.sampled_from(TOOLS))
    stars = draw(st.sampled_from([0, 1, 1, 2]))
    places = st.integers(0, len(name))
    cuts = sorted(draw(st.lists(places, min_size=2 * stars, max_size=2 * stars, unique=True)))
    kept = [0, *cuts, len(name)]
    return "*".join(name[start:end] for start, end in zip(kept[::2], kept[1::2], strict=True))


@st.composite
def rules_of(draw: Any, *thens: str, triggers: list[str] = TRIGGERS) -> Any:
    """A rule without a name, that says one of these."""
    then = draw(st.sampled_from(thens))
    trigger = draw(st.sampled_from(["action"] if then == "allow" else triggers))
    optional = {
        "tools": st.lists(globs(), min_size=1, max_size=3, unique=True),
        "condition": CONDITION,
        "reason": st.sampled_from(["One.", "Two."]),
        **(OF_ASKING if then == "approve" else {}),
    }
    members = draw(st.fixed_dictionaries(OF_TRIGGER[trigger], optional=optional))
    if "expires_in" in members:
        if end := draw(st.sampled_from(OTHER_ENDS)):
            members["on_expiry"] = end
        if end == "escalate":
            members["escalate_to"] = draw(st.sampled_from(["a", "b"]))
        if more := draw(st.sampled_from([0, 0, 30, 9000])):
            members["extendable_to"] = members["expires_in"] + more
    if then == "approve" and draw(st.sampled_from([False, False, True])):
        members = {name: members[name] for name in members if name not in OF_STAGE}
        members["stages"] = draw(STAGES)
    return {"trigger": trigger, "then": then, **members}


def named(rules: list[Any]) -> list[Any]:
    return [{"name": f"r{number}", **rule} for number, rule in enumerate(rules)]


ANY_RULE = rules_of("allow", "approve", "deny")
# A denial hides what the others say, and one that asks what those say that allow.
RULES = st.one_of(
    st.lists(ANY_RULE, max_size=6),
    st.lists(rules_of("allow", "deny", "deny"), max_size=6),
    st.lists(rules_of("allow", "approve"), max_size=6),
    st.lists(rules_of("approve"), min_size=3, max_size=6),
).map(named)
# Of these, all turns on what the agent says: where it says nothing, everything is allowed.
OPEN = {"name": "open", "trigger": "action", "then": "allow"}
HEARD = rules_of("approve", "deny", triggers=TRIGGERS[2:]).map(
    lambda rule: {part: rule[part] for part in rule if part not in ("condition", "tools")}
)
HEARING = st.lists(HEARD, min_size=1, max_size=3).map(lambda rules: [OPEN, *named(rules)])


def verdict_of(rules: list[Any], subject: Subject) -> Verdict:
    return compile_policy({"rules": rules}).judge(subject)


def answer(rule: Any, subject: Subject) -> bool | None:
    """What a rule's condition says of a call, alone; None: it errs. Without one it holds."""
    if "condition" not in rule:
        return True
    facts = Facts(
        arguments=subject.arguments,
        tool={"name": subject.tool, "effect": subject.effect, "risk": subject.risk},
        agent={"name": subject.agent},
        run={"workflow": subject.workflow, "depth": subject.depth},
        **subject.known,
    )
    try:
        return Condition(rule["condition"]).holds(facts)
    except ConditionError:
        return None


def is_as_strict(one: Verdict, other: Verdict) -> bool:
    """Say whether `one` asks for at least what `other` asks for: the order of verdicts.

    Deny is above approve, approve above allow. Of two that ask, the stricter has no smaller quorum,
    ends no later (at the same time: cancels the run rather than rejects the step, and rejects it
    rather than asks others), is extended no further, cools down no shorter, and lets no person
    decide whom the other does not: in each stage of the other, and it may have more. Two of which
    each is stricter in something have no order.
    """
    if one.verdict != other.verdict or one.verdict != "approve":
        return RANK[one.verdict] >= RANK[other.verdict]
    if len(stages_of(one)) < len(stages_of(other)) or one.cool_down < other.cool_down:
        return False
    if not _ends_as_soon(one.end, other.end):
        return False
    return all(
        strict.quorum >= loose.quorum
        and _is_within(strict.approvers, loose.approvers)
        and _ends_as_soon(strict.end, loose.end)
        for strict, loose in zip(stages_of(one), stages_of(other), strict=False)
    )


def stages_of(verdict: Verdict) -> tuple[Stage, ...]:
    """The stages in which a verdict asks; one where it asks all together."""
    return verdict.stages or (Stage(verdict.approvers, verdict.quorum),)


def _ends_as_soon(one: End, other: End) -> bool:
    return _end(one) <= _end(other) and _last(one) <= _last(other)


def _end(end: End) -> tuple[float, int]:
    return end.seconds, -ENDS.index(end.on_expiry or ENDS[0])


def _last(end: End) -> float:
    """Until when people may extend it."""
    return end.extendable_to or end.seconds


def _is_within(narrow: tuple[str, ...], wide: tuple[str, ...]) -> bool:
    if not wide or narrow == (NOBODY,):
        return True
    return bool(narrow) and set(narrow) <= set(wide)
