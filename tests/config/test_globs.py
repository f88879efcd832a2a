"""Globs over the names of tools."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.globs import glob_fault, matches, matches_any, overlap

PIECES = st.text("ab.", max_size=4)
GLOBS = st.lists(PIECES, min_size=1, max_size=4).map("*".join)


@pytest.mark.parametrize(
    ("glob", "name", "holds"),
    [
        ("payments.refund", "payments.refund", True),
        ("payments.refund", "payments.refunds", False),
        ("payments.refund", "xpayments.refund", False),
        ("payments.refund", "paymentsXrefund", False),
        ("payments.refund", "Payments.refund", False),
        ("payments.refund", "payments.refund\n", False),
        ("payments.*", "payments.refund", True),
        ("payments.*", "payments.", True),
        ("payments.*", "payments", False),
        ("payments.*", "my.payments.refund", False),
        ("*.get", "crm.get", True),
        ("*.get", "crm.get_all", False),
        ("db.drop*", "db.drop_table", True),
        ("db.drop*", "db.drop", True),
        ("*", "anything.at-all", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*a", "aba", True),
        ("a*b*a", "aab", False),
        ("*b*b*", "ab", False),
    ],
)
def test_a_glob_matches_whole_names(glob: str, name: str, holds: bool) -> None:
    assert matches(glob, name) is holds


@pytest.mark.parametrize(
    "glob", ["", None, 7, "a?", "[ab]", "{a,b}", "a b", "a\n", "**", "a**", "caf\u00e9", "a" * 101]
)
def test_what_would_not_mean_what_it_seems_to_is_refused(glob: Any) -> None:
    assert glob_fault(glob) is not None


@pytest.mark.parametrize("glob", ["*", "payments.*", "a_b-c.d/e:f", "a" * 100])
def test_a_glob_of_names_and_stars_is_taken(glob: str) -> None:
    assert glob_fault(glob) is None


@given(GLOBS, st.lists(PIECES, min_size=4, max_size=4))
def test_a_star_stands_for_any_characters(glob: str, fillings: list[str]) -> None:
    name, left = "", iter(fillings)
    for character in glob:
        name += next(left) if character == "*" else character
    assert matches(glob, name)
    assert matches_any(["none", glob], name)


@given(GLOBS, GLOBS, st.text("ab.", max_size=8))
def test_globs_that_match_one_name_overlap(one: str, other: str, name: str) -> None:
    if matches(one, name) and matches(other, name):
        assert overlap(one, other)


@given(GLOBS, GLOBS)
def test_globs_that_overlap_match_one_name(one: str, other: str) -> None:
    if overlap(one, other):
        parts = one.split("*"), other.split("*")
        start = max((first for first, *_ in parts), key=len)
        end = max((last for *_, last in parts), key=len)
        between = "".join(part for glob in parts for part in glob[1:-1])
        name = next((glob for glob in (one, other) if "*" not in glob), start + between + end)
        assert matches(one, name)
        assert matches(other, name)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("payments.*", "*.refund", True),
        ("payments.*", "mail.*", False),
        ("*.get", "*.search", False),
        ("a*b", "a*c", False),
        ("a", "a", True),
        ("a", "a*", True),
        ("*a", "b*", True),
    ],
)
def test_globs_without_a_common_name_do_not_overlap(one: str, other: str, meet: bool) -> None:
    assert overlap(one, other) is meet
    assert overlap(other, one) is meet


def test_no_glob_takes_long() -> None:
    started = time.monotonic()
    matches("*a" * 49 + "b", "a" * 1000)
    overlap("*a" * 49 + "*b", "a*" * 49 + "c")
    assert time.monotonic() - started < 2


def test_no_glob_matches_nothing() -> None:
    assert not matches_any([], "a")
