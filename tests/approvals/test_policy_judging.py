"""What a policy says of a call."""

from typing import Any

import pytest

from approvals.policy import NOBODY, Subject, Verdict, compile_policy, validate_policy
from approvals.policy.stages import Stage, can_be_filled


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


def test_stages_of_several_rules_are_joined_place_by_place() -> None:
    two = [{"approvers": ["finance", "board"]}, {"approvers": ["leads"], "quorum": 2}]
    rules = [
        rule("a", stages=two),
        rule("b", approvers=["finance"], quorum=2),
        rule("c", stages=[{}, {"approvers": ["leads", "board"]}, {"quorum": 3}]),
    ]
    verdict = judge(rules)
    assert verdict.stages == (
        Stage(("finance",), 2),
        Stage(("leads",), 2),
        Stage((), 3),
    )
    assert (verdict.quorum, verdict.approvers, verdict.rule) == (7, (), "c")
    alone = judge([rule("a", stages=two[:1])])
    assert (alone.stages, alone.approvers, alone.quorum) == ((), ("board", "finance"), 1)


@pytest.mark.parametrize(
    ("places", "can"),
    [
        ([(1, ["bob"]), (1, ["bob"])], False),
        ([(1, ["bob", "carol"]), (1, ["bob"])], True),
        ([(1, ["bob", "carol"]), (2, ["bob", "carol"])], False),
        ([(2, ["ann", "bob", "carol"]), (1, ["ann"]), (1, ["bob", "dan"])], True),
        ([(0, []), (1, ["bob"])], True),
        ([(1, [])], False),
        ([(20, range(1000))] * 10, True),
    ],
)
def test_enough_people_for_each_stage_are_found_where_there_are(places: Any, *, can: bool) -> None:
    assert can_be_filled(places) is can
    assert can_be_filled(places[::-1]) is can


def test_rules_without_a_common_group_let_nobody_decide() -> None:
    rules = [rule("a", approvers=["finance"]), rule("b", approvers=["leads"])]
    assert compile_policy({"rules": rules}).judge(call()).approvers == (NOBODY,)
