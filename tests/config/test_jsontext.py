"""What `config.jsontext` reads, refuses, writes and digests."""

import datetime as dt
import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config import jsontext
from config.errors import InvalidBody, MalformedJson, Problem
from config.jsontext import MAX_INTEGER, canonical, digest, parse

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
TEXT = st.text(CHARACTERS, max_size=8)
NUMBERS = st.integers(-MAX_INTEGER, MAX_INTEGER) | st.floats(
    -MAX_INTEGER, MAX_INTEGER, allow_nan=False
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def refusal(raw: bytes) -> Problem:
    with pytest.raises(Problem) as caught:
        parse(raw)
    return caught.value


# Reading


@given(VALUES, st.booleans())
def test_what_json_can_say_is_read_as_it_was_written(value: Any, ascii_only: bool) -> None:
    assert parse(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"{",
        b'{"a": 1,}',
        b"[1 2]",
        b"{'a': 1}",
        b"[01]",
        b"[+1]",
        b"[.5]",
        b"nul",
        b"[1] x",
        b'["\x00"]',
        b'["\n"]',
        b'["\\x"]',
        b"\xef\xbb\xbf{}",
        b"\xff",
        b'["\xed\xa0\x80"]',
        "[1]".encode("utf-16"),
        "[\u0661]".encode(),
    ],
)
def test_what_is_no_json_in_utf8_is_malformed(raw: bytes) -> None:
    problem = refusal(raw)
    assert isinstance(problem, MalformedJson)
    assert (problem.status, problem.code) == (400, "malformed-json")


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        (b'{"a": 1, "a": 1}', "/a"),
        (b'{"a": [{"b/c": 1, "b/c": 2}]}', "/a/0/b~1c"),
        (b'{"\\u0061": 1, "a": 2}', "/a"),
        (b'{"x": [1, NaN]}', "/x/1"),
        (b'{"x": -Infinity}', "/x"),
        (b'{"x": Infinity}', "/x"),
        (b'{"x": 9007199254740992}', "/x"),
        (b'{"x": -9007199254740992}', "/x"),
        (b'{"x": 1' + b"0" * 5000 + b"}", "/x"),
        (b'{"x": 1e400}', "/x"),
        (b'{"x": -1e400}', "/x"),
        (b'{"x": 1e16}', "/x"),
        (b'{"x": 9007199254740992.0}', "/x"),
        (b'{"x": ["a\\u0000b"]}', "/x/0"),
        (b'{"x": {"a\\u0000b": 1}}', "/x"),
        (b'{"x": ["\\ud800"]}', "/x/0"),
        (b'{"x": ["\\uDC00\\ud800"]}', "/x/0"),
        (b'{"x": {"\\udfff": 1}}', "/x"),
        (b'{"x": "\\uD800"}', "/x"),
        (b'"\\ud83d"', ""),
        (b"[" * 65 + b"]" * 65, "/0" * 64),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "/a" * 64),
        (b'[{"b":' * 40 + b"1" + b"}]" * 40, "/0/b" * 32),
    ],
)
def test_what_readers_would_read_differently_is_refused_with_its_place(
    raw: bytes, place: str
) -> None:
    problem = refusal(raw)
    assert isinstance(problem, InvalidBody)
    assert (problem.status, [fault["pointer"] for fault in problem.errors]) == (422, [place])


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
def test_endless_nesting_is_refused_without_exhausting_the_stack(opening: bytes) -> None:
    assert refusal(opening * 100_000).errors[0]["detail"] == "Nested deeper than 64."


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 64 + b"]" * 64,
        b"[" + b"[],{}," * 500 + b"1]",
        b"[9007199254740991, -9007199254740991, 1e15, 1e-400, -0]",
        b'["\\ud83d\\ude00", "\\\\u0000", "\\\\ud800", "\\u00e9"]',
        b' \t\r\n{"a": null} ',
        b'"top"',
        b"7",
    ],
)
def test_what_only_looks_like_a_refusal_is_read(raw: bytes) -> None:
    assert parse(raw) == json.loads(raw)


def test_a_refusal_quotes_no_value() -> None:
    problem = refusal(b'{"card": "4111111111111111\\u0000"}')
    assert "4111" not in str(problem.document())


# Writing

# RFC 8785, appendix B: IEEE 754 bits and what ECMAScript writes for them.
RFC_NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), RFC_NUMBERS.items())
def test_numbers_are_written_as_the_rfc_lists_them(bits: str, text: str) -> None:
    number = struct.unpack(">d", bytes.fromhex(bits))[0]
    assert canonical(number) == text.encode()
    assert canonical({"a": [number, number]}) == f'{{"a":[{text},{text}]}}'.encode()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 2**53, -(2**53)])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"a": [x]}, lambda x: [1.0, x]])
def test_what_has_no_canonical_form_is_refused(number: float, wrap: Any) -> None:
    with pytest.raises(ValueError, match=r"canonical|JSON"):
        canonical(wrap(number))


def test_a_lone_surrogate_has_no_canonical_form() -> None:
    with pytest.raises(UnicodeEncodeError):
        canonical({"a": "\ud800"})


def test_the_rfc_example_is_written_as_the_rfc_writes_it() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    assert canonical(value).decode() == (
        '{"literals":[null,true,false],'
        '"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_sorted_by_utf16_code_unit() -> None:
    # RFC 8785, section 3.2.3: the emoji's first unit, d83d, sorts before fb33.
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    in_order = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical(dict.fromkeys(keys, 0)))) == in_order
    assert list(json.loads(canonical([dict.fromkeys(keys, 1.0)]))[0]) == in_order


@given(st.dictionaries(st.text(CHARACTERS, max_size=3), st.integers(0, 3), max_size=6))
def test_keys_of_any_plane_are_sorted_by_utf16_code_unit(value: dict[str, int]) -> None:
    written = list(json.loads(canonical(value)))
    assert written == sorted(value, key=lambda key: key.encode("utf-16-be"))


@given(VALUES)
def test_the_canonical_form_is_a_fixed_point(value: Any) -> None:
    written = canonical(value)
    assert parse(written) == value
    assert canonical(parse(written)) == written


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_written_with_its_value(number: float) -> None:
    assert float(canonical([number])[1:-1]) == number


@given(VALUES)
def test_the_short_way_writes_what_the_long_way_writes(value: Any) -> None:
    assert canonical({"v": value}) == jsontext._write({"v": value}).encode()


@given(st.dictionaries(TEXT, VALUES, max_size=5), st.randoms(use_true_random=False))
def test_the_digest_does_not_depend_on_the_order_of_members(
    value: dict[str, Any], random: Any
) -> None:
    members = list(value.items())
    random.shuffle(members)
    assert digest(dict(members)) == digest(value)


def test_the_digest_names_its_algorithm() -> None:
    # printf '{"a":1}' | sha256sum
    assert digest({"a": 1.0}) == (
        "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    )


def test_a_pointer_escapes_tilde_and_slash() -> None:
    assert jsontext.pointer("a/b", 0, "m~n", "") == "/a~1b/0/m~0n/"
    assert jsontext.pointer() == ""


# Values from elsewhere


@given(VALUES)
def test_a_value_that_json_says_has_no_fault(value: Any) -> None:
    assert jsontext.value_faults(value) == []


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 0


@pytest.mark.parametrize(
    ("value", "places"),
    [
        ({"a": [1, dt.date(2026, 1, 1)]}, ["/a/1"]),
        ({"a": {1: "x"}}, ["/a"]),
        ({"a": {"n\x00": 1}, "b": "\ud800"}, ["/a", "/b"]),
        ({"a": math.nan, "b": -math.inf, "c": 2**53, "d": 1e16}, ["/a", "/b", "/c", "/d"]),
        ({"a": {"b": {1, 2}, "c": b"x"}}, ["/a/b", "/a/c"]),
        (nested(65), ["/0" * 64]),
    ],
)
def test_a_value_that_json_cannot_say_is_told_with_its_place(value: Any, places: list[str]) -> None:
    assert [place for place, _ in jsontext.value_faults(value)] == places


def test_a_value_that_aliases_make_huge_or_endless_is_refused() -> None:
    wide: Any = 0
    for _ in range(20):
        wide = [wide] * 10
    endless: list[Any] = []
    endless.append(endless)
    assert ("", "Holds more than 100000 values.") in jsontext.value_faults(wide)
    assert jsontext.value_faults(endless) == [("/0" * 64, "Nested deeper than 64.")]
    assert jsontext.value_faults(nested(64)) == []
