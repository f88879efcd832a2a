"""Rules as closed JSON: what they allow by themselves, and changes that only narrow."""

import copy
from decimal import Decimal

import pytest

from delegation.canonical import canonical
from delegation.predicates import Spent, Unreadable, Widens, check, matches, narrow, sha256
from tests.delegation.histories import call

RULE = {
    "all": [
        {"f": "@agent", "in": ["agent-a", "agent-b"]},
        {"f": "@env", "in": ["prod", "staging"]},
        {"f": "reason", "in": ["damaged", "late"]},
        {"f": "tier", "in": ["basic", "gold"]},
        {"f": "amount", "le": "75"},
        {"f": "order", "any": True},
    ],
    "except_pairs": [[["@agent", "agent-b"], ["tier", "gold"]]],
    "ceilings": [{"f": "amount", "le": "40", "when": ["tier", "basic"]}],
    "per_day": {"calls": 5, "free": 1, "sum": {"amount": "120"}},
}


def allows(spent=None, **given):
    return matches(RULE, canonical(call(1, **given)), spent)


def changed(at, value):
    conditions = copy.deepcopy(RULE["all"])
    conditions[at] = value
    return {"all": conditions}


def test_a_rule_allows_what_it_says_and_nothing_beside():
    assert allows(amount="40")
    assert not allows(amount="40.01")
    assert allows(tier="gold", amount="75")
    assert not allows(tier="gold", amount="75.01")
    assert not allows(tier="gold", agent="agent-b")
    assert not allows(tier="silver")
    assert not allows(context={"env": "dev"})
    assert not allows(context={})
    assert not allows(context={"env": "prod", "band": "night"})


def test_a_rule_allows_no_more_in_a_day_than_it_says():
    assert allows(Spent(4, {"amount": Decimal(100)}), amount=20)
    assert not allows(Spent(5, {"amount": Decimal(1)}), amount=20)
    assert not allows(Spent(4, {"amount": Decimal("100.01")}), amount=20)
    assert allows(Spent(0, {"amount": Decimal(500)}), amount=20)


def test_the_digest_is_that_of_the_rule_however_it_is_written():
    assert sha256(RULE) == sha256(dict(reversed(RULE.items())))
    assert sha256(RULE) != sha256({**RULE, "per_day": {}})


@pytest.mark.parametrize(
    "change",
    [
        {},
        changed(3, {"f": "tier", "in": ["gold"]}),
        changed(4, {"f": "amount", "le": "40"}),
        {"except_pairs": [*RULE["except_pairs"], [["@env", "prod"], ["tier", "gold"]]]},
        {"ceilings": [{"f": "amount", "le": "39", "when": ["tier", "basic"]}]},
        {"per_day": {"calls": 4, "sum": {"amount": "100"}}},
        {**changed(3, {"f": "tier", "in": ["gold"]}), "ceilings": []},
        {**changed(4, {"f": "amount", "le": "40"}), "ceilings": []},
        {**changed(0, {"f": "@agent", "in": ["agent-a"]}), "except_pairs": []},
    ],
)
def test_a_change_that_narrows_is_taken(change):
    assert narrow(RULE, change) == {**RULE, **change}


@pytest.mark.parametrize(
    "change",
    [
        changed(3, {"f": "tier", "in": ["basic", "gold", "silver"]}),
        changed(4, {"f": "amount", "le": "75.01"}),
        changed(4, {"f": "amount", "any": True}),
        changed(4, {"f": "amount", "in": ["75"]}),
        {"all": RULE["all"][:-1]},
        {"all": [*RULE["all"], {"f": "bcc", "any": True}]},
        {"except_pairs": []},
        {"ceilings": []},
        {"ceilings": [{"f": "amount", "le": "41", "when": ["tier", "basic"]}]},
        {"per_day": {}},
        {"per_day": {"calls": 6, "sum": {"amount": "120"}}},
        {"per_day": {"calls": 5, "sum": {"amount": "121"}}},
        {"per_day": {"calls": 5, "free": 2, "sum": {"amount": "120"}}},
        {"per_day": {"calls": 5}},
    ],
)
def test_a_change_that_would_allow_more_is_refused(change):
    before = copy.deepcopy(RULE)
    with pytest.raises(Widens):
        narrow(RULE, change)
    assert before == RULE


@pytest.mark.parametrize(
    "change",
    [
        {"any": []},
        changed(4, {"f": "amount", "le": 75}),
        changed(4, {"f": "amount", "le": "1e400"}),
        changed(4, {"f": "amount", "le": "-1"}),
        changed(4, {"f": "amount", "matches": ".*"}),
        changed(3, {"f": "tier", "in": "gold"}),
        changed(3, {"f": "tier", "in": ["gold", "gold"]}),
        changed(3, {"f": "tier", "in": ["gold"], "or": []}),
        changed(5, {"f": "order", "any": "yes"}),
        changed(5, {"f": "tier", "any": True}),
        {"all": RULE["all"][1:]},
        {"all": {}},
        {"except_pairs": [["tier", "gold"]]},
        {"ceilings": [{"f": "amount", "le": "1"}]},
        {"per_day": {"calls": True}},
        {"per_day": {"calls": -1}},
        {"per_day": {"calls": 1, "week": 3}},
        {"per_day": {"sum": "120"}},
    ],
)
def test_what_is_no_rule_is_refused(change):
    with pytest.raises(Unreadable):
        check({**RULE, **change})
    with pytest.raises(Unreadable):
        narrow(RULE, change)


@pytest.mark.parametrize(
    "bound",
    [
        {"per_day": {"calls": 5, "sum": {"amonut": "1"}}},
        {"per_day": {"calls": 5, "sum": {"tier": "1"}}},
        {"ceilings": [{"f": "amonut", "le": "1", "when": ["tier", "basic"]}]},
        {"ceilings": [{"f": "amount", "le": "1", "when": ["teir", "basic"]}]},
        {"ceilings": [{"f": "amount", "le": "1", "when": ["order", "o-1"]}]},
        {"except_pairs": [[["@agnet", "agent-b"], ["tier", "gold"]]]},
        {"except_pairs": [[["tier", "gold"], ["@workflow", "refunds"]]]},
    ],
)
def test_a_bound_about_nothing_that_the_rule_names_is_refused(bound):
    plain = {"all": RULE["all"]}
    check(plain)
    for written in ({**plain, **bound}, {**RULE, **bound}):
        with pytest.raises(Unreadable):
            check(written)
    with pytest.raises(Unreadable):
        narrow(plain, bound)
