"""A rule in plain words."""

from __future__ import annotations

from delegation.words import clauses, exceptions, per_day, sentence

REFUNDS = {
    "all": [
        {"f": "@agent", "in": ["bot"]},
        {"f": "tier", "in": ["basic", "gold"]},
        {"f": "amount", "le": "75"},
        {"f": "payment", "any": True},
    ],
    "except_pairs": [[["@agent", "bot"], ["tier", "gold"]]],
    "per_day": {"calls": 5, "sum": {"amount": "120"}},
}


def test_a_rule_is_one_sentence_with_its_bounds_and_what_it_leaves_out() -> None:
    assert sentence("payments.refund", REFUNDS) == (
        "payments.refund runs without asking where agent is bot, tier is basic or gold,"
        " amount is at most 75 and payment may be anything; at most 5 a day,"
        " amount at most 120 a day in sum; not agent bot with tier gold."
    )
    assert sentence("mail.send", {}) == "mail.send runs without asking."


def test_a_rules_own_limits_take_the_place_of_what_was_learned() -> None:
    assert per_day(REFUNDS).parts == ["at most 5 a day", "amount at most 120 a day in sum"]
    narrowed = {"per_day": {"calls": 2}}
    assert per_day(REFUNDS, narrowed).calls == 2
    assert per_day({}).parts == []


def test_values_are_told_as_they_are_and_of_many_the_rest_is_counted() -> None:
    found = clauses({"all": [{"f": "n", "in": [1, True, "x\u202e", None]}]})
    assert found[0].values == ("1", "true", "x\u202e", "null")
    many = clauses({"all": [{"f": "n", "in": [str(one) for one in range(20)]}]})
    assert many[0].words == "is 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 or 9 more"
    assert exceptions({"except_pairs": [[["a", "x"], ["b", 1]]]}) == ["a x with b 1"]
