"""What a policy says of a call."""

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.policy import NOBODY, Subject, Verdict, compile_policy, validate_policy

RANK = {"allow": 0, "approve": 1, "deny": 2}


def call(tool: str = "payments.refund", effect: str = "reversible", **others: Any) -> Subject:
    said: dict[str, Any] = {
        "risk": "medium",
        "arguments": {"amount": "100.00"},
        "agent": "support-bot",
        "workflow": "refunds",
    }
    return Subject(tool=tool, effect=effect, **{**said, **others})


def rule(name: str = "r", trigger: str = "action", then: str = "approve", **others: Any) -> Any:
    return {"name": name, "trigger": trigger, "then": then, **others}


def judge(rules: list[Any], subject: Subject | None = None) -> Verdict:
    document = {"rules": rules}
    assert validate_policy(document) == []
    return compile_policy(document).judge(subject or call())


# One rule


def test_without_a_rule_reads_are_allowed_and_everything_else_asks() -> None:
    for document in [{}, {"rules": []}]:
        policy = compile_policy(document)
        allowed = policy.judge(call(effect="read"))
        assert (allowed.verdict, allowed.rule) == ("allow", "default")
        for effect in ["idempotent", "reversible", "irreversible"]:
            asked = policy.judge(call(effect=effect))
            assert (asked.verdict, asked.rule, asked.quorum) == ("approve", "default", 1)
            assert [one["trigger"] for one in asked.triggers] == ["default"]
            assert "payments.refund" in asked.triggers[0]["explanation"]


@pytest.mark.parametrize("then", ["allow", "approve", "deny"])
def test_a_rule_says_what_it_says_of_its_tools_only(then: str) -> None:
    rules = [rule("mine", then=then, tools=["payments.*"])]
    verdict = judge(rules)
    assert (verdict.verdict, verdict.rule) == (then, "mine")
    assert [(one["rule"], one["trigger"]) for one in verdict.triggers] == [("mine", "action")]
    assert judge(rules, call("payment")).rule == "default"
    assert judge(rules, call("my.payments.refund")).rule == "default"
    assert judge(rules, call("Payments.refund")).rule == "default"


def test_a_read_is_asked_about_where_a_rule_says_so() -> None:
    assert judge([rule("all", tools=["*"])], call("crm.get", "read")).verdict == "approve"


def test_a_denial_gives_its_reason() -> None:
    assert judge([rule(then="deny", reason="Never.")]).reason == "Never."


@pytest.mark.parametrize(
    ("given", "matches"), [(None, False), (0, False), (0.69, False), (0.7, True), (1, True)]
)
def test_a_risk_rule_matches_from_its_score_on(given: float | None, matches: bool) -> None:
    rules = [rule("open", then="allow"), rule("risky", "risk", at_least=0.7)]
    verdict = judge(rules, call(risk_score=given))
    assert (verdict.verdict == "approve") is matches
    if matches:
        assert verdict.triggers[0]["trigger"] == "risk"
        assert "0.7" in verdict.triggers[0]["explanation"]


@pytest.mark.parametrize(
    ("given", "matches"), [(None, False), (0, True), (0.49, True), (0.5, False), (1, False)]
)
def test_a_confidence_rule_matches_below_its_score(given: float | None, matches: bool) -> None:
    rules = [rule("open", then="allow"), rule("unsure", "confidence", below=0.5)]
    verdict = judge(rules, call(confidence=given))
    assert (verdict.verdict == "approve") is matches
    if matches:
        assert verdict.triggers[0]["trigger"] == "confidence"


@pytest.mark.parametrize(("given", "matches"), [(None, False), ("deploy", True), ("Deploy", False)])
def test_a_milestone_rule_matches_its_milestones(given: str | None, matches: bool) -> None:
    rules = [rule("open", then="allow"), rule("stop", "milestone", milestones=["deploy", "end"])]
    verdict = judge(rules, call(milestone=given))
    assert (verdict.verdict == "approve") is matches
    if matches:
        assert verdict.triggers[0]["trigger"] == "milestone"


def test_a_rule_of_any_trigger_matches_its_tools_only() -> None:
    said = {"risk_score": 1, "confidence": 0, "milestone": "deploy"}
    rules = [
        rule("open", then="allow"),
        rule("r", "risk", at_least=0.5, tools=["db.*"]),
        rule("c", "confidence", below=0.5, tools=["db.*"]),
        rule("m", "milestone", milestones=["deploy"], tools=["db.*"]),
    ]
    assert judge(rules, call(**said)).verdict == "allow"
    assert len(judge(rules, call("db.drop", **said)).triggers) == 3


# Conditions


def test_a_condition_decides_exactly_at_its_bound() -> None:
    rules = [
        rule("small", then="allow", condition="decimal(arguments.amount) <= decimal('100')"),
        rule("big", condition="decimal(arguments.amount) > decimal('100')", quorum=2),
    ]
    for amount, verdict in [
        ("100", "allow"),
        ("1e2", "allow"),
        ("+100.00", "allow"),
        ("100.00000000000000001", "approve"),
        ("9007199254740993", "approve"),
        ("\uff11\uff10\uff10", "approve"),
        ("", "approve"),
    ]:
        assert judge(rules, call(arguments={"amount": amount})).verdict == verdict


ERRS = [
    "decimal(arguments.missing) > decimal('1')",
    "decimal(arguments.missing) < decimal('1')",
    "!(decimal(arguments.missing) < decimal('1'))",
    "arguments.missing == 1",
    "arguments.amount > 5",
    "arguments.amount",
    "1 / 0 == 1",
    "arguments.amount.size() > 1 && arguments.missing",
]


@pytest.mark.parametrize("condition", ERRS)
def test_a_condition_that_errs_never_allows(condition: str) -> None:
    assert judge([rule(then="allow", condition=condition)]).rule == "default"
    open_house = rule("open", then="allow")
    for then in ["approve", "deny"]:
        verdict = judge([open_house, rule("strict", then=then, condition=condition)])
        assert (verdict.verdict, verdict.rule) == (then, "strict")
        assert "could not be evaluated" in verdict.triggers[0]["explanation"]


def test_a_condition_that_errs_does_not_make_a_rule_match_that_is_not_triggered() -> None:
    rules = [
        rule("open", then="allow"),
        rule("risky", "risk", at_least=0.7, condition=ERRS[0]),
        rule("other", tools=["db.*"], condition=ERRS[0]),
    ]
    assert judge(rules, call(risk_score=0.1)).verdict == "allow"
    assert judge(rules, call(risk_score=0.9)).verdict == "approve"


def test_a_saved_condition_that_no_longer_compiles_counts_where_it_is_strict() -> None:
    stale = {"condition": "no_such_function(arguments)"}
    for then, verdict in [("allow", "approve"), ("approve", "approve"), ("deny", "deny")]:
        document = {"rules": [rule("stale", then=then, **stale)]}
        assert compile_policy(document).judge(call()).verdict == verdict


def test_an_explanation_quotes_no_argument() -> None:
    rules = [rule(condition="decimal(arguments.amount) > decimal('1')")]
    for amount in ["secret-4111", "4111"]:
        assert "4111" not in str(judge(rules, call(arguments={"amount": amount})))


# Several rules


def test_the_strictest_rule_wins() -> None:
    rules = [rule("a", then="allow"), rule("b"), rule("c", then="deny", reason="No.")]
    assert judge(rules).rule == "c"
    assert judge(rules[:2]).rule == "b"
    assert judge(rules[:1]).rule == "a"


def test_every_rule_of_the_winning_kind_is_told() -> None:
    rules = [rule("b"), rule("z", "risk", at_least=0), rule("a"), rule("x", then="allow")]
    verdict = judge(rules, call(risk_score=0.5))
    assert [one["rule"] for one in verdict.triggers] == ["a", "b", "z"]


def test_the_largest_quorum_and_the_shortest_expiry_count() -> None:
    rules = [
        rule("many", quorum=3),
        rule("slow", quorum=2, expires_in=3600, on_expiry="cancel"),
        rule("quick", expires_in=60, on_expiry="reject"),
    ]
    verdict = judge(rules)
    assert (verdict.rule, verdict.quorum) == ("many", 3)
    assert (verdict.expires_in, verdict.on_expiry) == (60, "reject")


def test_an_expiry_rejects_where_nothing_else_is_said_and_cancels_where_one_rule_says_so() -> None:
    assert judge([rule(expires_in=60)]).on_expiry == "reject"
    assert judge([rule()]).on_expiry is None
    both = [rule("a", expires_in=60), rule("b", expires_in=60, on_expiry="cancel")]
    assert judge(both).on_expiry == "cancel"


def test_a_denial_with_a_reason_speaks_before_one_without() -> None:
    assert judge([rule("a", then="deny"), rule("b", then="deny", reason="B.")]).reason == "B."
    two = [rule("b", then="deny", reason="B."), rule("a", then="deny", reason="A.")]
    assert judge(two).reason == "A."


def test_approvers_are_the_groups_that_every_rule_names() -> None:
    rules = [
        rule("a", approvers=["finance", "leads"]),
        rule("b", approvers=["leads", "board"]),
        rule("c"),
    ]
    assert judge(rules).approvers == ("leads",)
    assert judge(rules[2:]).approvers == ()


def test_rules_without_a_common_group_let_nobody_decide() -> None:
    rules = [rule("a", approvers=["finance"]), rule("b", approvers=["leads"])]
    assert compile_policy({"rules": rules}).judge(call()).approvers == (NOBODY,)


# Properties

TOOLS = ["payments.refund", "payments.payout", "crm.get", "db.drop"]
GLOBS = ["*", "payments.*", "*.get", "payments.refund", "db.drop*", "*.re*d"]
CONDITIONS = [
    *ERRS[:4],
    "true",
    "false",
    "decimal(arguments.amount) > decimal('100')",
    "decimal(arguments.amount) <= decimal('100')",
    "tool.effect == 'read'",
    "arguments.amount.size() > 2",
]
SCORES = st.none() | st.sampled_from([0, 0.2, 0.5, 0.7, 1])
SUBJECTS = st.builds(
    call,
    st.sampled_from(TOOLS),
    st.sampled_from(["read", "idempotent", "irreversible"]),
    arguments=st.fixed_dictionaries(
        {"amount": st.sampled_from(["99.99", "100", "100.01", "x", 7, None])}
    ),
    confidence=SCORES,
    risk_score=SCORES,
    milestone=st.none() | st.sampled_from(["deploy", "end"]),
)
OF_TRIGGER = {
    "action": {},
    "risk": {"at_least": st.sampled_from([0, 0.5, 0.7])},
    "confidence": {"below": st.sampled_from([0.3, 0.5, 1])},
    "milestone": {"milestones": st.sampled_from([["deploy"], ["deploy", "end"]])},
}
OF_ASKING = {
    "quorum": st.integers(1, 4),
    "approvers": st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, unique=True),
    "expires_in": st.sampled_from([60, 3600]),
}


@st.composite
def rules_of(draw: Any, *thens: str) -> Any:
    then = draw(st.sampled_from(thens))
    trigger = draw(st.sampled_from(["action"] if then == "allow" else list(OF_TRIGGER)))
    optional = {
        "tools": st.lists(st.sampled_from(GLOBS), min_size=1, max_size=2, unique=True),
        "condition": st.sampled_from(CONDITIONS),
        "reason": st.sampled_from(["One.", "Two."]),
        **(OF_ASKING if then == "approve" else {}),
    }
    members = draw(st.fixed_dictionaries(OF_TRIGGER[trigger], optional=optional))
    if "expires_in" in members and draw(st.booleans()):
        members["on_expiry"] = draw(st.sampled_from(["reject", "cancel"]))
    return {"trigger": trigger, "then": then, **members}


def named(rules: list[Any]) -> list[Any]:
    return [{"name": f"r{number}", **rule} for number, rule in enumerate(rules)]


def verdict_of(rules: list[Any], subject: Subject) -> Verdict:
    return compile_policy({"rules": rules}).judge(subject)


def is_no_looser(one: Verdict, other: Verdict) -> bool:
    """Say whether `one` asks for at least what `other` asks for."""
    if RANK[one.verdict] != RANK[other.verdict] or one.verdict != "approve":
        return RANK[one.verdict] >= RANK[other.verdict]
    never = float("inf")
    is_narrower = (
        not other.approvers
        or one.approvers == (NOBODY,)
        or (bool(one.approvers) and set(one.approvers) <= set(other.approvers))
    )
    is_sooner = (one.expires_in or never) <= (other.expires_in or never)
    return one.quorum >= other.quorum and is_sooner and is_narrower


RULES = st.lists(rules_of("allow", "approve", "deny"), max_size=6).map(named)


@given(RULES, SUBJECTS, st.integers())
def test_the_verdict_does_not_depend_on_the_order_of_rules(
    rules: list[Any], subject: Subject, seed: int
) -> None:
    shuffled = random.Random(seed).sample(rules, len(rules))  # noqa: S311
    assert verdict_of(shuffled, subject) == verdict_of(rules, subject)


@given(RULES, rules_of("approve", "deny"), SUBJECTS)
def test_a_further_rule_that_asks_or_denies_never_loosens(
    rules: list[Any], added: Any, subject: Subject
) -> None:
    before = verdict_of(rules, subject)
    after = verdict_of([*rules, {"name": "added", **added}], subject)
    assert is_no_looser(after, before)


@given(RULES, rules_of("allow"), SUBJECTS)
def test_a_further_rule_that_allows_changes_nothing_but_the_default(
    rules: list[Any], added: Any, subject: Subject
) -> None:
    before = verdict_of(rules, subject)
    after = verdict_of([*rules, {"name": "added", **added}], subject)
    if before.rule != "default" and before.verdict != "allow":
        assert after == before


@given(RULES, SUBJECTS)
def test_a_policy_says_the_strictest_of_what_its_rules_say_alone(
    rules: list[Any], subject: Subject
) -> None:
    alone = [verdict_of([rule], subject) for rule in rules]
    matched = [verdict for verdict in alone if verdict.rule != "default"]
    together = verdict_of(rules, subject)
    if not matched:
        assert together == verdict_of([], subject)
        return
    strictest = max(RANK[verdict.verdict] for verdict in matched)
    decided = [verdict for verdict in matched if RANK[verdict.verdict] == strictest]
    assert RANK[together.verdict] == strictest
    assert together.quorum == max(verdict.quorum for verdict in decided)
    expiries = [verdict.expires_in for verdict in decided if verdict.expires_in]
    assert together.expires_in == min(expiries, default=None)
    assert {one["rule"] for one in together.triggers} == {verdict.rule for verdict in decided}


@given(RULES, SUBJECTS)
def test_what_the_agent_says_never_loosens(rules: list[Any], subject: Subject) -> None:
    silent = call(subject.tool, subject.effect, arguments=subject.arguments)
    assert is_no_looser(verdict_of(rules, subject), verdict_of(rules, silent))


@given(RULES, SUBJECTS, st.sampled_from([*ERRS[:4], "1 / 0 == 1"]))
def test_no_condition_that_errs_allows(rules: list[Any], subject: Subject, errs: str) -> None:
    verdict = verdict_of([{**rule, "condition": errs} for rule in rules], subject)
    assert verdict.verdict != "allow" or (verdict.rule, subject.effect) == ("default", "read")


@given(RULES, SUBJECTS)
def test_judging_again_says_the_same(rules: list[Any], subject: Subject) -> None:
    policy = compile_policy({"rules": rules})
    first = policy.judge(subject)
    other = call(subject.tool, "read" if subject.effect != "read" else "irreversible")
    policy.judge(other)
    assert policy.judge(subject) == first
    assert policy.judge(other) == verdict_of(rules, other)


@given(RULES)
def test_random_policies_are_valid_but_for_their_approvers(rules: list[Any]) -> None:
    assert all("/approvers" in place for place, _ in validate_policy({"rules": rules}))


# Cost


def calls_of(act: Callable[[], object]) -> int:
    """Count the calls, of Python and of C, that a deed makes."""
    made = 0

    def count(_frame: FrameType | None, event: str, _argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return made


def test_two_hundred_rules_cost_a_call_no_more_than_the_one_that_is_for_it() -> None:
    condition = "decimal(arguments.amount) > decimal('100')"
    one = [rule("mine", tools=["payments.refund"], condition=condition)]
    others = [
        rule(f"r{i}", tools=[f"tool{i}.*", f"other{i}"], condition=condition) for i in range(199)
    ]
    subject = call()

    def cost(rules: list[Any]) -> int:
        policy = compile_policy({"rules": rules})
        policy.judge(subject)  # which rules are for a tool is found out at its first call
        return calls_of(lambda: policy.judge(subject))

    assert 0 < cost(one) == cost([*one, *others]) < cost([*one, rule("all", condition=condition)])
