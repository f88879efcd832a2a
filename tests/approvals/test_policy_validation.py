"""Which policy documents can be published."""

import copy
import datetime as dt
import time
from typing import Any

import pytest
import yaml

from approvals.policy import validate_policy

GROUPS = {"finance": ["bob", "carol"], "leads": ["alice"], "empty": []}

# The policy of the contract's tenant file.
DOCUMENT = """
allowed_hosts: ["127.0.0.1:9000", "[::1]:80", "tools.internal.:8443"]
rules:
  - {name: reads, trigger: action, tools: ["*.get", "*.search"], then: allow}
  - {name: never-drop, trigger: action, tools: ["db.drop*"], then: deny, reason: "Never."}
  - {name: big-refunds, trigger: action, tools: ["payments.refund"],
     condition: "decimal(arguments.amount) > decimal('100')", then: approve, quorum: 2,
     expires_in: 3600, on_expiry: reject, approvers: [finance]}
  - {name: payouts, trigger: action, tools: ["payments.payout"], then: approve, cool_down: 60,
     stages: [{approvers: [finance], quorum: 1}, {approvers: [leads]}]}
  - {name: risky, trigger: risk, at_least: 0.7, then: approve}
  - {name: unsure, trigger: confidence, below: 0.5, then: approve}
  - {name: before-deploy, trigger: milestone, milestones: ["deploy"], then: deny}
budgets: {steps: 200, cost: "50.00", seconds: 3600, tokens: 100000}
delegation:
  low: automatic
  medium: suggest
  preset: eager
  never: [{tools: [payments.*], condition: "decimal(arguments.amount) > decimal('20')"}]
"""


def document() -> Any:
    return yaml.safe_load(DOCUMENT)


def rule(**members: Any) -> dict[str, Any]:
    return {"name": "r", "trigger": "action", "then": "approve", **members}


def faults_of(*rules: Any, groups: Any = None) -> list[tuple[str, str]]:
    return validate_policy({"rules": list(rules)}, groups)


def test_the_policy_of_the_contract_is_valid() -> None:
    assert validate_policy(document(), GROUPS) == []
    assert validate_policy({}) == []


def test_validating_changes_nothing() -> None:
    before = copy.deepcopy(document())
    given = document()
    validate_policy(given, GROUPS)
    assert given == before


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ([], None, ""),
        ([], [], ""),
        ([], "allow", ""),
        (["rule"], [], "/rule"),
        (["scorers"], {}, "/scorers"),
        (["rules"], {}, "/rules"),
        (["rules"], None, "/rules"),
        (["rules", 0], "reads", "/rules/0"),
        (["budgets"], [], "/budgets"),
        (["budgets", "money"], 1, "/budgets/money"),
        (["budgets", "steps"], -1, "/budgets/steps"),
        (["budgets", "steps"], 1.5, "/budgets/steps"),
        (["budgets", "steps"], True, "/budgets/steps"),
        (["budgets", "steps"], "200", "/budgets/steps"),
        (["budgets", "tokens"], None, "/budgets/tokens"),
        (["budgets", "seconds"], -0.5, "/budgets/seconds"),
        (["budgets", "cost"], 50.0, "/budgets/cost"),
        (["budgets", "cost"], "-1", "/budgets/cost"),
        (["budgets", "cost"], "1e3", "/budgets/cost"),
        (["budgets", "cost"], "\uff15", "/budgets/cost"),
        (["delegation"], "off", "/delegation"),
        (["delegation"], {"mode": "on"}, "/delegation/mode"),
        (["delegation"], {"mode": {}}, "/delegation/mode"),
        (["delegation"], {"mode": "off", "low": "off"}, "/delegation/low"),
        (["delegation", "limit"], 1, "/delegation/limit"),
        (["delegation", "high"], "suggest", "/delegation/high"),
        (["delegation", "medium"], "always", "/delegation/medium"),
        (["delegation", "preset"], "brave", "/delegation/preset"),
        (["delegation", "never"], [], "/delegation/never"),
        (["delegation", "never", 0, "tools"], ["["], "/delegation/never/0/tools/0"),
        (["delegation", "never", 0], {}, "/delegation/never/0/tools"),
        (
            ["delegation", "never", 0, "condition"],
            "usage.steps > 1",
            "/delegation/never/0/condition",
        ),
        (["allowed_hosts"], "127.0.0.1:9000", "/allowed_hosts"),
        (["allowed_hosts"], ["127.0.0.1"], "/allowed_hosts/0"),
        (["allowed_hosts"], ["http://a:80"], "/allowed_hosts/0"),
        (["allowed_hosts"], ["a:0"], "/allowed_hosts/0"),
        (["allowed_hosts"], ["a:65536"], "/allowed_hosts/0"),
        (["allowed_hosts"], ["*:80"], "/allowed_hosts/0"),
        (["allowed_hosts"], ["10.0.0.0/8:80"], "/allowed_hosts/0"),
        (["allowed_hosts"], ["a:80", "a:80"], "/allowed_hosts/1"),
        (["rules", 0, "name"], dt.date(2026, 1, 1), "/rules/0/name"),
    ],
)
def test_what_is_not_declared_or_of_the_wrong_kind_is_refused_with_its_place(
    path: list[Any], value: Any, place: str
) -> None:
    given = document()
    target: Any = {"document": given}
    for step in ["document", *path][:-1]:
        target = target[step]
    target[["document", *path][-1]] = value
    given = target["document"] if not path else given
    assert [found for found, _ in validate_policy(given, GROUPS)] == [place]


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"name": None}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "a\nb"}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"name": "default"}, "/name"),
        ({"trigger": "budget"}, "/trigger"),
        ({"trigger": ["action"]}, "/trigger"),
        ({"trigger": {}}, "/trigger"),
        ({"trigger": None}, "/trigger"),
        ({"then": "ask"}, "/then"),
        ({"then": "Approve"}, "/then"),
        ({"then": []}, "/then"),
        ({"tools": []}, "/tools"),
        ({"tools": "payments.*"}, "/tools"),
        ({"tools": None}, "/tools"),
        ({"tools": ["a?"]}, "/tools/0"),
        ({"tools": ["a", ""]}, "/tools/1"),
        ({"tools": ["a", "a"]}, "/tools/1"),
        ({"tools": [["a"]]}, "/tools/0"),
        ({"condition": "1 +"}, "/condition"),
        ({"condition": True}, "/condition"),
        ({"condition": None}, "/condition"),
        ({"reason": 7}, "/reason"),
        ({"reason": "x" * 501}, "/reason"),
        ({"quorum": 0}, "/quorum"),
        ({"quorum": 21}, "/quorum"),
        ({"quorum": 1.0}, "/quorum"),
        ({"quorum": True}, "/quorum"),
        ({"quorum": "2"}, "/quorum"),
        ({"approvers": []}, "/approvers"),
        ({"approvers": "finance"}, "/approvers"),
        ({"approvers": [7]}, "/approvers/0"),
        ({"expires_in": 0}, "/expires_in"),
        ({"expires_in": 1.5}, "/expires_in"),
        ({"expires_in": "60"}, "/expires_in"),
        ({"expires_in": 366 * 86_400 + 1}, "/expires_in"),
        ({"on_expiry": "reject"}, "/on_expiry"),
        ({"expires_in": 60, "on_expiry": "approve"}, "/on_expiry"),
        ({"expires_in": 60, "on_expiry": "escalate"}, "/escalate_to"),
        ({"expires_in": 60, "on_expiry": None}, "/on_expiry"),
        ({"at_least": 0.5}, "/at_least"),
        ({"milestones": ["x"]}, "/milestones"),
        ({"trigger": "risk"}, "/at_least"),
        ({"trigger": "risk", "at_least": 1.1}, "/at_least"),
        ({"trigger": "risk", "at_least": "0.5"}, "/at_least"),
        ({"trigger": "risk", "at_least": True}, "/at_least"),
        ({"trigger": "risk", "at_least": 0.5, "below": 0.5}, "/below"),
        ({"trigger": "confidence"}, "/below"),
        ({"trigger": "confidence", "below": 0}, "/below"),
        ({"trigger": "milestone"}, "/milestones"),
        ({"trigger": "milestone", "milestones": []}, "/milestones"),
        ({"trigger": "milestone", "milestones": [1]}, "/milestones/0"),
        ({"quroum": 2}, "/quroum"),
        ({"tool": "a"}, "/tool"),
        ({"stages": []}, "/stages"),
        ({"stages": {}}, "/stages"),
        ({"stages": [{}] * 11}, "/stages"),
        ({"stages": [{}, 7]}, "/stages/1"),
        ({"stages": [{"approvers": []}, {}]}, "/stages/0/approvers"),
        ({"stages": [{}, {"quorum": 0}]}, "/stages/1/quorum"),
        ({"stages": [{}, {"expires_in": 60}]}, "/stages/1/expires_in"),
        ({"stages": [{}, {}], "quorum": 2}, "/quorum"),
        ({"stages": [{}, {}], "approvers": ["finance"]}, "/approvers"),
        ({"then": "deny", "stages": [{}, {}]}, "/stages"),
        ({"escalate_to": "leads"}, "/on_expiry"),
        ({"expires_in": 60, "escalate_to": "leads"}, "/on_expiry"),
        ({"expires_in": 60, "on_expiry": "cancel", "escalate_to": "leads"}, "/on_expiry"),
        ({"expires_in": 60, "on_expiry": "escalate", "escalate_to": 7}, "/escalate_to"),
        ({"warn_before": 60}, "/warn_before"),
        ({"expires_in": 60, "warn_before": 60}, "/warn_before"),
        ({"expires_in": 60, "warn_before": 0}, "/warn_before"),
        ({"cool_down": 0}, "/cool_down"),
        ({"cool_down": "60"}, "/cool_down"),
        ({"then": "allow", "cool_down": 60}, "/cool_down"),
    ],
)
def test_a_rule_that_could_mean_something_else_is_refused_with_its_place(
    members: dict[str, Any], place: str
) -> None:
    assert [found for found, _ in faults_of(rule(**members))] == ["/rules/0" + place]


@pytest.mark.parametrize("missing", ["name", "trigger", "then"])
def test_a_rule_says_its_name_its_trigger_and_its_verdict(missing: str) -> None:
    incomplete = rule()
    del incomplete[missing]
    assert [place for place, _ in faults_of(incomplete)] == [f"/rules/0/{missing}"]


def test_two_rules_do_not_share_a_name() -> None:
    assert [place for place, _ in faults_of(rule(), rule(then="deny"))] == ["/rules/1/name"]


@pytest.mark.parametrize("then", ["allow", "deny"])
@pytest.mark.parametrize(
    "members", [{"quorum": 2}, {"approvers": ["finance"]}, {"expires_in": 60}], ids=str
)
def test_what_belongs_to_asking_stands_in_no_other_rule(then: str, members: Any) -> None:
    (found,) = faults_of(rule(then=then, **members))
    assert found[0] == f"/rules/0/{next(iter(members))}"


@pytest.mark.parametrize(
    "members",
    [
        {"trigger": "risk", "at_least": 0.5},
        {"trigger": "confidence", "below": 0.5},
        {"trigger": "milestone", "milestones": ["x"]},
    ],
    ids=str,
)
def test_what_an_agent_says_of_itself_never_allows(members: Any) -> None:
    assert [place for place, _ in faults_of(rule(then="allow", **members))] == ["/rules/0/then"]


def test_a_condition_is_refused_with_the_column_of_its_fault() -> None:
    (found,) = faults_of(rule(), rule(name="s", condition="decimal(arguments.amount) > 100"))
    assert found[0] == "/rules/1/condition"
    assert found[1].endswith("(column 1)")


def test_every_fault_is_told() -> None:
    found = faults_of(rule(then="ask", tools=["?"]), 7, rule(name="s", quorum=0, what=1))
    assert [place for place, _ in found] == [
        "/rules/0/then",
        "/rules/0/tools/0",
        "/rules/1",
        "/rules/2/what",
        "/rules/2/quorum",
    ]


# Approvers


def test_approvers_are_groups_that_exist_and_can_reach_the_quorum() -> None:
    assert faults_of(rule(approvers=["finance"], quorum=2), groups=GROUPS) == []
    assert faults_of(rule(approvers=["finance", "leads"], quorum=3), groups=GROUPS) == []
    for approvers, quorum, place in [
        (["board"], 1, "/rules/0/approvers/0"),
        (["finance", "Leads"], 1, "/rules/0/approvers/1"),
        (["leads"], 2, "/rules/0/approvers"),
        (["empty"], 1, "/rules/0/approvers"),
    ]:
        found = faults_of(rule(approvers=approvers, quorum=quorum), groups=GROUPS)
        assert [one for one, _ in found] == [place]


@pytest.mark.parametrize(
    ("one", "other", "can_meet"),
    [
        ({}, {}, True),
        ({"tools": ["payments.*"]}, {}, True),
        ({"tools": ["payments.*"]}, {"tools": ["*.refund"]}, True),
        ({"tools": ["payments.*"]}, {"tools": ["mail.*", "db.*"]}, False),
        ({"tools": ["payments.*"]}, {"tools": ["mail.*", "payments.refund"]}, True),
    ],
)
def test_rules_that_can_match_one_call_share_an_approving_group(
    one: Any, other: Any, can_meet: bool
) -> None:
    rules = [
        rule(name="a", approvers=["finance"], **one),
        rule(name="b", approvers=["leads"], **other),
    ]
    assert [place for place, _ in faults_of(*rules)] == ["/rules/1/approvers"] * can_meet
    rules[1]["approvers"] = ["leads", "finance"]
    assert faults_of(*rules) == []


def test_the_stages_of_a_rule_have_enough_different_people() -> None:
    finance, leads = {"approvers": ["finance"]}, {"approvers": ["leads"]}
    twice = {"approvers": ["finance"], "quorum": 2}
    both = {"approvers": ["finance", "leads"], "quorum": 2}
    escalates = {"expires_in": 60, "on_expiry": "escalate", "escalate_to": "leads"}
    for stages, more, places in [
        ([finance, leads], {}, []),
        ([finance, finance], {}, []),
        ([finance, both], {}, []),
        ([finance, twice], {}, ["/stages"]),
        ([twice, both], {}, ["/stages"]),
        ([{"approvers": ["board"]}, leads], {}, ["/stages/0/approvers/0"]),
        ([leads, {**leads, "quorum": 2}], {}, ["/stages/1/approvers"]),
        ([{}, leads], escalates, []),
        ([finance, twice, leads], escalates, ["/escalate_to", "/stages"]),
    ]:
        found = faults_of(rule(stages=stages, **more), groups=GROUPS)
        assert [place for place, _ in found] == [f"/rules/0{place}" for place in places]


def test_rules_with_stages_that_can_meet_share_a_group_in_each_place() -> None:
    one = rule(name="a", stages=[{"approvers": ["finance"]}, {"approvers": ["leads"]}])
    assert faults_of(one, rule(name="b", approvers=["finance"])) == []
    assert faults_of(one, rule(name="b", stages=[{}, {"approvers": ["leads"]}])) == []
    apart = rule(name="b", stages=[{"approvers": ["finance"]}, {"approvers": ["finance"]}])
    assert [place for place, _ in faults_of(one, apart)] == ["/rules/1/stages/1/approvers"]
    found = faults_of(one, rule(name="b", approvers=["leads"]))
    assert [place for place, _ in found] == ["/rules/1/approvers"]


# Size


def test_the_size_of_a_policy_is_bounded() -> None:
    many = [rule(name=f"r{number}", tools=["a.*"]) for number in range(501)]
    assert [place for place, _ in faults_of(*many)] == ["/rules"]
    assert faults_of(*many[:500]) == []
    wide = rule(tools=[f"t{number}" for number in range(101)])
    assert [place for place, _ in faults_of(wide)] == ["/rules/0/tools"]


def test_the_largest_policy_is_checked_in_bounded_time() -> None:
    rules = [
        rule(
            name=f"r{number}",
            tools=[f"{'*a' * 20}-{number}-{glob}" for glob in range(10)],
            approvers=[f"g{number}"],
            condition="decimal(arguments.amount) > decimal('1')",
        )
        for number in range(100)
    ]
    started = time.monotonic()
    assert faults_of(*rules) == []
    assert time.monotonic() - started < 10
    rules.append(rule(approvers=["a"]))
    assert faults_of(*rules) == [("/rules", "The rules with approvers name too many tools.")]
