"""Paths into arguments."""

import copy
from typing import Any

import pytest

from interrupts.paths import MISSING, covered, look_up, parse_pointer, parse_pointers, replace

ARGUMENTS = {
    "cards": [{"number": "4111", "name": "Ann"}, {"number": "4222"}, "loose"],
    "a/b": {"~": 1},
    "0": {"number": "zero"},
}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("/", ("",)),
        ("/a", ("a",)),
        ("/a~1b/~0", ("a/b", "~")),
        ("/~01", ("~1",)),
        ("/cards/*/number", ("cards", "*", "number")),
    ],
)
def test_a_pointer_is_split_into_its_parts(text: str, parts: tuple[str, ...]) -> None:
    assert parse_pointer(text) == parts


@pytest.mark.parametrize("text", ["a", "a/b", "#/a", "/a~", "/a~2", "/a" * 65])
def test_what_is_no_pointer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="pointer"):
        parse_pointer(text)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/cards/0/number", "4111"),
        ("/a~1b/~0", 1),
        ("/0/number", "zero"),
        ("/cards/2", "loose"),
        ("/cards/3", MISSING),
        ("/cards/-1", MISSING),
        ("/cards/00000000000", MISSING),
        ("/cards/\u0661", MISSING),
        ("/cards/2/number", MISSING),
        ("/nothing/below", MISSING),
    ],
)
def test_what_stands_at_a_path_is_found(path: str, expected: Any) -> None:
    assert look_up(ARGUMENTS, parse_pointer(path)) == expected


def test_each_place_a_pattern_names_is_replaced_and_the_value_kept() -> None:
    before = copy.deepcopy(ARGUMENTS)
    made = replace(ARGUMENTS, parse_pointers(["/cards/*/number", "/a~1b"]), lambda _: "x")
    assert made == {
        "cards": [{"number": "x", "name": "Ann"}, {"number": "x"}, "loose"],
        "a/b": "x",
        "0": {"number": "zero"},
    }
    assert before == ARGUMENTS


def test_the_higher_of_two_patterns_replaces_the_whole() -> None:
    made = replace({"a": {"b": 1}}, parse_pointers(["/a/b", "/a"]), lambda was: [was])
    assert made == {"a": [{"b": 1}]}


def test_what_a_pattern_does_not_reach_is_left() -> None:
    assert replace({"a": 1}, parse_pointers(["/b", "/a/b", "/*/c"]), lambda _: "x") == {"a": 1}


@pytest.mark.parametrize(
    ("path", "length"),
    [
        (("cards", 0, "number"), 3),
        (("cards", 0, "number", "part"), 3),
        (("secret", "deep"), 1),
        (("cards", 0), None),
        (("cards", 0, "name"), None),
        ((), None),
    ],
)
def test_a_place_at_or_below_a_pattern_is_covered(path: tuple[Any, ...], length: int) -> None:
    assert covered(path, parse_pointers(["/cards/*/number", "/secret"])) == length
