"""Conditions: what they may say, what they answer, what they cost."""

import logging
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.policy.conditions import Condition, ConditionError, Facts, condition_faults

AMOUNT = "decimal(arguments.amount) > decimal('100')"


def facts(arguments: Any, **others: Any) -> Facts:
    return Facts(
        arguments=arguments,
        tool=others.get("tool", {"name": "payments.refund", "effect": "reversible", "risk": "low"}),
        agent={"name": "support-bot"},
        run={"workflow": "refunds"},
    )


def holds(source: str, arguments: Any) -> bool:
    assert condition_faults(source) == []
    return Condition(source).holds(facts(arguments))


def why_not(source: str, arguments: Any) -> str:
    assert condition_faults(source) == []
    with pytest.raises(ConditionError) as caught:
        Condition(source).holds(facts(arguments))
    return str(caught.value)


# Answers


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("true", True),
        ("arguments.n == 5", True),
        ("arguments.n > 4 && arguments.n < 6.5", True),
        ("arguments.name.startsWith('Ann') || false", True),
        ("arguments.name.matches('^[A-Z][a-z]+$')", True),
        ("arguments.name.matches(r'^\\d+$')", False),
        ('arguments.name in ["Bob", "Ann"]', True),
        ("!(arguments.n == 5)", False),
        ("has(arguments.none)", False),
        ("has(arguments.n) ? arguments.n == 5 : false", True),
        ("arguments['odd name'] == 1", True),
        ("size(arguments.lines) == 2", True),
        ("arguments.lines.size() == 2", True),
        ("arguments.lines.all(line, line.sku != '')", True),
        ("arguments.lines.exists(line, line.sku == 'b')", True),
        ("arguments.lines.exists_one(line, line.sku == 'a')", True),
        ("arguments.lines.exists(line, decimal(line.price) > decimal('9.99'))", True),
        ("arguments.lines.all(line, decimal(line.price) < decimal(arguments.cap))", True),
        ("arguments.lines.all(x, x.sku != '') && arguments.lines.exists(x, x.sku == 'a')", True),
        ("decimal(arguments.lines[0].price) == decimal(arguments.lines[1].price)", False),
        ("decimal(arguments.deep.er.value) == decimal('1')", True),
        (
            "tool.name == 'payments.refund' && tool.effect == 'reversible' && tool.risk == 'low'",
            True,
        ),
        ("agent.name == 'support-bot' && run.workflow == 'refunds'", True),
        ("timestamp(arguments.at) > timestamp('2026-01-01T00:00:00Z')", True),
        ("arguments.n * 2 + 1 == 11", True),
    ],
)
def test_a_condition_is_answered_from_the_facts(source: str, answer: bool) -> None:
    arguments = {
        "n": 5,
        "name": "Ann",
        "odd name": 1,
        "cap": "100",
        "at": "2026-06-01T00:00:00Z",
        "deep": {"er": {"value": 1}},
        "lines": [{"sku": "a", "price": "9.99"}, {"sku": "b", "price": "10"}],
    }
    assert holds(source, arguments) is answer


@pytest.mark.parametrize(
    ("amount", "more"),
    [
        ("100", False),
        ("100.00", False),
        ("1e2", False),
        ("+100.00", False),
        (100, False),
        (100.0, False),
        ("100.00000000000000001", True),
        ("99.99999999999999999999", False),
        ("9007199254740993", True),
        (100.01, True),
        ("-200", False),
    ],
)
def test_decimals_are_compared_to_the_last_digit(amount: Any, more: bool) -> None:
    assert holds(AMOUNT, {"amount": amount}) is more


def test_decimals_are_exact_where_binary_fractions_are_not() -> None:
    bound = "decimal(arguments.amount) <= decimal('9007199254740992')"
    assert holds(bound, {"amount": "9007199254740992.00"})
    assert not holds(bound, {"amount": "9007199254740993.00"})
    assert not holds(bound, {"amount": "9007199254740992.0000000001"})
    assert holds("decimal(arguments.amount) == decimal(arguments.same)", {"amount": "1", "same": 1})


@given(st.decimals(-(10**6), 10**6, places=3), st.decimals(-(10**6), 10**6, places=3))
def test_each_comparison_agrees_with_exact_arithmetic(one: Any, other: Any) -> None:
    call = facts({"a": str(one), "list": [{"b": str(other)}]})
    for sign, expected in {
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
        "==": one == other,
        "!=": one != other,
    }.items():
        written_out = Condition(f"decimal(arguments.a) {sign} decimal('{other}')")
        evaluated = Condition(f"decimal(arguments['a']) {sign} decimal(arguments.list[0].b)")
        assert written_out.holds(call) is evaluated.holds(call) is expected


# No answer


@pytest.mark.parametrize(
    ("source", "arguments", "why"),
    [
        (AMOUNT, {}, "decimal() was given what is no decimal number"),
        (AMOUNT, {"amount": "1 000"}, "decimal() was given what is no decimal number"),
        (AMOUNT, {"amount": "\uff11\uff10\uff11"}, "decimal() was given what is no decimal number"),
        (AMOUNT, {"amount": None}, "decimal() was given what is no decimal number"),
        (AMOUNT, {"amount": True}, "decimal() was given what is no decimal number"),
        (AMOUNT, {"amount": "x" * 1000}, "decimal() was given what is no decimal number"),
        (AMOUNT, [], "decimal() was given what is no decimal number"),
        (
            "arguments.l.all(x, decimal(x) > decimal('1'))",
            {"l": ["2", "y"]},
            "decimal() was given what is no decimal number",
        ),
        (
            "decimal(arguments['a']) == decimal('1')",
            {"a": "y"},
            "decimal() was given what is no decimal number",
        ),
        ("arguments.none == 1", {}, "a member or an item that it names is not there"),
        ("arguments.l[9] == 1", {"l": [1]}, "a member or an item that it names is not there"),
        ("arguments.a > 100", {"a": "101"}, "it compares or combines values of different kinds"),
        ("arguments.a > 1", {"a": None}, "it compares or combines values of different kinds"),
        ("1 / arguments.a > 1", {"a": 0}, "a calculation in it has no result"),
        ("arguments.a", {"a": "true"}, "it is neither true nor false"),
        ("arguments.a", {"a": 1}, "it is neither true nor false"),
        ("int(arguments.a) > 1", {"a": "x"}, "a function in it was given what it does not take"),
    ],
)
def test_what_cannot_be_answered_is_an_error_that_quotes_nothing(
    source: str, arguments: Any, why: str
) -> None:
    assert why_not(source, arguments) == why


def test_an_error_writes_no_value_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        why_not("decimal(arguments['a']) == decimal('1')", {"a": "secret-4111"})
    assert caplog.records == []


def test_a_condition_that_no_longer_compiles_has_no_answer() -> None:
    with pytest.raises(ConditionError, match="no condition that this service reads"):
        Condition("unheard_of(arguments)").holds(facts({}))


# What may be said


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("", "A condition is a text in CEL."),
        (7, "A condition is a text in CEL."),
        ("1 +", "Syntax error: mismatched input '<EOF>'. (column 4)"),
        ("true &&\n  &&", "Syntax error: mismatched input '&&'. (column 11)"),
        ("(true", "( is not closed. (column 1)"),
        ("true)", ") closes nothing. (column 5)"),
        ("[true)", ") closes nothing. (column 6)"),
        ("arguments.a = 1", "= is not taken here. (column 13)"),
        ("true // false", "/ is not taken here. (column 6)"),
        ("'''a''' == 'a'", "' is not taken here. (column 1)"),
        ("b'a' == b'a'", "A text follows what it cannot follow. (column 2)"),
        ("arguments.`a-b` == 1", "` is not taken here. (column 11)"),
        ("'\u00e9' == caf\u00e9", "\u00e9 is not taken here. (column 11)"),
        ("argumnts.a == 1", "There is no argumnts here; there are agent, arguments,"),
        (
            "step.confidence > 0.5",
            "step has no confidence; it has key, number, parallel. (column 6)",
        ),
        ("decimal(usage.costs) > decimal('1')", "usage has no costs; it has cost, seconds,"),
        (
            "arguments.l.all(x, true) && x",
            "There is no x here; there are agent, arguments,",
        ),
        ("lower(arguments.a) == 'x'", "There is no function lower() here. (column 1)"),
        ("arguments.a.lower() == 'x'", "There is no function lower() here. (column 13)"),
        ("all(arguments.l, x, x)", "There is no function all() here. (column 1)"),
        ("cel.bind(x, 1, x == 1)", "There is no function bind() here. (column 5)"),
        (".arguments.a == 1", "A member belongs to something. (column 1)"),
        ("1 in .arguments", "A member belongs to something. (column 6)"),
        ("arguments.l.map(x, x) == []", "map() is not taken; use all(), exists() or exists_one()."),
        ("arguments.l.filter(x, x) == []", "filter() is not taken; use all(), exists() or"),
        ("arguments.l.all(x, arguments.m.all(y, y == x))", "Loops are not nested. (column 32)"),
        ("arguments.l.all(x, x.exists(y, y))", "Loops are not nested. (column 22)"),
        ("arguments.l.all(i, v, v)", "all() takes a name and what holds of it. (column 13)"),
        ("arguments.l.all(x)", "all() takes a name and what holds of it. (column 13)"),
        ("arguments.l.all(x, )", "all() takes a name and what holds of it. (column 13)"),
        ("arguments.l.all(arguments, true)", "arguments already means something else. (column 17)"),
        ("arguments.l.all(decimal, true)", "decimal already means something else. (column 17)"),
        ("arguments.a.matches(arguments.b)", "matches() takes a pattern that is written out."),
        ("arguments.a.matches('a' + 'b')", "matches() takes a pattern that is written out."),
        ("arguments.l.all(x, x.matches('a'))", "matches() does not stand in a loop. (column 22)"),
        ("arguments.a.matches('(a')", "No pattern that runs in linear time and bounded memory."),
        ("arguments.a.matches('(?=a)')", "No pattern that runs in linear time and bounded memory."),
        ("arguments.a.matches('(a{99}){99}')", "No pattern that runs in linear time and bounded"),
        ("(" * 33 + "true" + ")" * 33, "Nested deeper than 32. (column 33)"),
        ("1" + " + 1" * 11 + " == 1", "At most 10 additions. (column 43)"),
        ("true || " * 250 + "true", "At most 2000 characters. (column 2001)"),
    ],
)
def test_what_none_may_say_is_refused_with_its_place(source: Any, fault: str) -> None:
    (found,) = condition_faults(source)
    assert found.startswith(fault)


@pytest.mark.parametrize(
    "source",
    [
        "decimal(arguments.a) > 100",
        "100 < decimal(arguments.a)",
        "decimal(arguments.a) == '100'",
        "decimal(arguments.a) != arguments.b",
        "decimal(arguments.a) in ['100']",
        "decimal(arguments.a) in [decimal('1')]",
        "decimal(arguments.a) + decimal('1') > decimal('2')",
        "decimal('2') > decimal(arguments.a) + decimal('1')",
        "decimal(arguments.a) < decimal('1') == true",
        "decimal(arguments.a) < decimal('1') < decimal('2')",
        "!decimal(arguments.a) < decimal('1')",
        "-decimal(arguments.a) < decimal('1')",
        "decimal(decimal(arguments.a)) < decimal('1')",
        "size(decimal(arguments.a)) < 5",
        "string(decimal(arguments.a)) < decimal('1')",
        "decimal(arguments.a)",
        "(decimal(arguments.a)) < decimal('1')",
        "decimal(arguments.a) < (decimal('1'))",
        "true ? decimal('1') : decimal('2') > decimal(arguments.a)",
        "[decimal('1')] == [decimal('1')]",
        "{'a': decimal('1')}.a > decimal('1')",
        "arguments.decimal('1') < decimal('2')",
        "decimal('1').size() < decimal('2').size()",
        "decimal() < decimal('1')",
        "decimal('1', '2') < decimal('1')",
        "decimal('1') < decimal",
        "decimal('10O') < decimal(arguments.a)",
        "decimal('') < decimal(arguments.a)",
    ],
)
def test_decimals_are_compared_with_decimals_only(source: str) -> None:
    (found,) = condition_faults(source)
    assert "decimal" in found


@pytest.mark.parametrize(
    "source",
    [
        "decimal(arguments.a) > decimal('1') && decimal(arguments.b) < decimal('2')",
        "!(decimal(arguments.a) > decimal('1'))",
        "has(arguments.a) ? decimal(arguments.a) > decimal('1') : decimal('1') == decimal('2')",
        "[decimal('1') < decimal('2'), true] == [true, true]",
        "decimal(arguments.list[size(arguments.list) - 1]) == decimal(5)",
        "arguments.decimal == 'decimal(1) > 5'",
        "decimal(arguments.a)>=decimal(-5)",
    ],
)
def test_decimals_may_stand_wherever_a_comparison_may(source: str) -> None:
    assert condition_faults(source) == []


# What it costs


def slowest(source: str, arguments: Any) -> float:
    condition = Condition(source)
    assert condition_faults(source) == []
    best = float("inf")
    for _ in range(3):
        call = facts(arguments)
        started = time.thread_time()
        try:
            condition.holds(call)
        except ConditionError:
            best = min(best, time.thread_time() - started)
        else:
            best = min(best, time.thread_time() - started)
    return best


LIST = {"l": [{"a": i, "s": "x" * 10} for i in range(2400)], "t": "y" * 20_000}
NEAR_THE_BOUND = [
    ("arguments.l.all(x, x.a >= 0)", LIST),
    ("arguments.l.all(x, decimal(x.a) >= decimal('0'))", LIST),
    ("arguments.l.all(x, !arguments.t.contains(x.s))", LIST),
    ("arguments.l.all(x, x in arguments.l)", LIST),
    ("arguments.l.all(x, x in arguments.l)", {"l": list(range(500))}),
    ("arguments.l.all(x, size(arguments.l) > 0)", {"l": [{"a": i} for i in range(350)]}),
    ("arguments.l.all(x, !arguments.t.contains(x))", {"l": ["yyyyz"] * 250, "t": "y" * 10_000}),
    (" && ".join(["arguments.l == arguments.l"] * 15), LIST),
    (" + ".join(["arguments.t"] * 10) + " == ''", {"t": "y" * 150_000}),
    ("arguments.t.matches('(x+x+)+y')", {"t": "x" * 150_000}),
    (" && ".join(["arguments.l.all(x, x >= 0)"] * 40), {"l": list(range(9000))}),
]


@pytest.mark.parametrize(("source", "arguments"), NEAR_THE_BOUND, ids=lambda value: str(value)[:40])
def test_no_condition_takes_long(source: str, arguments: Any) -> None:
    # 50 ms of the processor's time; the margin is for a slower one.
    assert slowest(source, arguments) < 0.25


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("arguments.l.all(x, x >= 0)", {"l": list(range(10_001))}),
        ("arguments.t != ''", {"t": "y" * 200_000}),
        ("arguments.l.all(x, x in arguments.l)", {"l": list(range(1000))}),
    ],
)
def test_a_call_beyond_the_bounds_has_no_answer(source: str, arguments: Any) -> None:
    assert why_not(source, arguments) == "the call is too large for this condition"


def test_a_large_call_is_still_judged_by_its_decimals() -> None:
    assert holds(AMOUNT, {"amount": "101", "l": list(range(50_000))})
