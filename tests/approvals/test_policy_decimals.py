"""Decimals as texts that compare as the numbers do."""

from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.policy.decimals import ordered

NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=None).filter(
    lambda number: number == 0 or -900 < number.adjusted() < 900
)


@given(NUMBERS, NUMBERS)
def test_texts_compare_as_their_numbers(one: Decimal, other: Decimal) -> None:
    left, right = ordered(f"{one:f}"[:100]), ordered(f"{other:f}"[:100])
    one, other = Decimal(f"{one:f}"[:100]), Decimal(f"{other:f}"[:100])
    assert (left < right) is (one < other)
    assert (left == right) is (one == other)


@given(st.decimals(-1000, 1000, places=2), st.integers(-1, 1), st.integers(0, 60))
def test_neighbours_far_behind_the_point_are_told_apart(
    number: Decimal, step: int, places: int
) -> None:
    text = f"{number:f}"
    text += ("." if "." not in text else "") + "0" * places
    moved = Decimal(text) + Decimal(step).scaleb(-places - 2)
    assert (ordered(text) < ordered(f"{moved:f}")) is (Decimal(text) < moved)


def test_numbers_are_in_order() -> None:
    texts = [
        "-1e999",
        "-9007199254740993",
        "-9007199254740992",
        "-100.00000000000000001",
        "-100",
        "-12.345",
        "-12.34",
        "-1.2",
        "-1",
        "-0.5",
        "-0.05",
        "-1e-999",
        "0",
        "1e-999",
        "0.05",
        "0.5",
        "0.50000000000000000000000000001",
        "1",
        "1.2",
        "12.34",
        "12.345",
        "99.99",
        "100",
        "100.00000000000000001",
        "9007199254740992",
        "9007199254740993",
        "1e17",
        "1e999",
    ]
    assert all(ordered(less) < ordered(more) for less, more in pairwise(texts))


@pytest.mark.parametrize(
    "texts",
    [
        ["100", "100.00", "+100.00", "1e2", "1E+2", "1000e-1", "00100", 100, 100.0],
        ["0", "-0", "0.000", "0e5", "-0.0", 0, -0.0],
        ["-2.5", "-2.50", "-25e-1", -2.5],
        ["0.1", 0.1, "1e-1"],
        ["9007199254740993", 9007199254740993],
    ],
)
def test_equal_numbers_have_equal_texts(texts: list[Any]) -> None:
    assert len({ordered(text) for text in texts}) == 1


@pytest.mark.parametrize(
    "value",
    [
        "",
        " 100",
        "100 ",
        "100\n",
        "1,000",
        "1_000",
        "1.",
        ".5",
        "--1",
        "0x10",
        "1e",
        "1e1000",
        "NaN",
        "Infinity",
        "-inf",
        "\uff11\uff10\uff10",
        "\u0661\u0662",
        "\u2212100",
        "1" * 101,
        "EUR 5",
        None,
        True,
        False,
        [],
        {},
        b"100",
        float("nan"),
        float("inf"),
    ],
)
def test_what_is_no_plain_decimal_is_refused_without_being_quoted(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^no decimal number$"):
        ordered(value)
