"""A body has the declared shape, or every fault of it is told with its pointer."""

from datetime import UTC, datetime, timedelta
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.errors import InvalidBody
from tenants.api.body import (
    ANY,
    FREE,
    ID,
    INSTANT,
    MONEY,
    EitherShape,
    Shape,
    members,
    nullable,
    text,
)
from tenants.api.checks import compile_check, is_instant, read_instant

NUMBERS = members(
    {"n": {"type": "integer", "minimum": 1, "maximum": 5}},
    {"x": {"type": "number", "exclusiveMinimum": 0}, "yes": {"type": "boolean"}},
)
NESTED = members(
    {"items": {"type": "array", "minItems": 1, "maxItems": 2, "items": NUMBERS}},
    {"free": FREE, "any": ANY, "kind": {"type": "string", "enum": ["a", "b"]}},
)


def faults(schema: Any, value: Any) -> dict[str, str]:
    return {fault["pointer"]: fault["detail"] for fault in Shape(schema).faults(value)}


@pytest.mark.parametrize(
    ("value", "pointers"),
    [
        ({"items": [{"n": 1}]}, set()),
        ({"items": [{"n": 1, "x": 0.5, "yes": False}], "free": {"a": [1]}, "any": None}, set()),
        ({}, {"/items"}),
        ([], {""}),
        (None, {""}),
        ({"items": []}, {"/items"}),
        ({"items": [{"n": 1}] * 3}, {"/items"}),
        ({"items": [{"n": 0}, {"n": 6}]}, {"/items/0/n", "/items/1/n"}),
        ({"items": [{"n": True}]}, {"/items/0/n"}),
        ({"items": [{"n": 1.0}]}, {"/items/0/n"}),
        ({"items": [{"n": "1"}]}, {"/items/0/n"}),
        ({"items": [{"n": 1, "x": 0}]}, {"/items/0/x"}),
        ({"items": [{"n": 1, "x": True}]}, {"/items/0/x"}),
        ({"items": [{"n": 1, "yes": 1}]}, {"/items/0/yes"}),
        ({"items": [{"n": 1}], "free": []}, {"/free"}),
        ({"items": [{"n": 1}], "kind": "c"}, {"/kind"}),
        ({"items": [{}], "kind": 1, "a/b~": 2}, {"/items/0/n", "/kind", "/a~1b~0"}),
    ],
)
def test_each_fault_has_its_pointer(value: Any, pointers: set[str]) -> None:
    assert set(faults(NESTED, value)) == pointers


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (MONEY, ["0", "0.10", "12345.6789", "9" * 18], ["", "1e3", "-1", "+1", "01", ".5", "1.",
         "1,5", "٣", "9" * 19, "0." + "1" * 11, 1, 0.1, None, "1\n"]),
        (ID, ["00000000-0000-7000-8000-000000000000", "0" * 8 + "-ABCD-0000-0000-" + "f" * 12],
         ["", "0" * 32, "{00000000-0000-7000-8000-000000000000}", 7, None]),
        (INSTANT, ["2026-01-01T00:00:00Z", "2026-01-01t00:00:00.123456789z",
         "2026-01-01T00:00:00+02:00"], ["2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z",
         "2026-02-30T00:00:00Z", "20260101T000000Z", "2026-01-01T24:00:01Z", 0]),
        (text(3, least=1), ["a", "äöü", "😀😀😀"], ["", "abcd", None]),
        (nullable(text(3)), [None, ""], [0, False, []]),
        ({"const": 1}, [1], [True, 1.0, "1"]),
    ],
)  # fmt: skip
def test_values_are_taken_exactly(schema: Any, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert faults(schema, value) == {}, value
    for value in bad:
        assert set(faults(schema, value)) == {""}, value


def test_two_shapes_are_told_apart_by_a_member() -> None:
    shape = EitherShape("many", members({"many": FREE}), members({"one": text(3)}))
    assert shape.faults({"one": "x"}) == []
    assert shape.faults({"many": {}}) == []
    assert {fault["pointer"] for fault in shape.faults({"many": {}, "one": "x"})} == {"/one"}
    assert {fault["pointer"] for fault in shape.faults({})} == {"/one"}
    assert {fault["pointer"] for fault in shape.faults([])} == {""}
    assert [set(one["properties"]) for one in shape.schema["oneOf"]] == [{"one"}, {"many"}]


def test_of_several_forms_the_one_that_was_meant_is_told_about() -> None:
    schema = {"oneOf": [{"type": "boolean"}, members({"a": members({"b": text(3)})})]}
    assert set(faults(schema, {"a": {"b": 7}})) == {"/a/b"}
    assert faults(schema, value=True) == {}


def test_a_schema_that_is_not_understood_is_an_error_at_once() -> None:
    for schema in ({"allOf": []}, {"type": "object", "properties": {"a": {"not": {}}}}):
        with pytest.raises(ValueError, match="does not understand"):
            compile_check(schema)


def test_all_faults_are_raised_at_once() -> None:
    with pytest.raises(InvalidBody) as refusal:
        Shape(NESTED).check({"x": 1})
    assert {fault["pointer"] for fault in refusal.value.errors} == {"/items", "/x"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.sampled_from([0.5, -1.5])
    | st.sampled_from(["", "a", "b", "abcd", "0.10", "2026-01-01T00:00:00Z"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["items", "n", "x", "yes", "free", "any", "kind", "other"]), inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(VALUES)
def test_what_is_published_means_what_is_enforced(value: Any) -> None:
    """The checker agrees with a validator of JSON Schema about the schema that is published."""
    for schema in (NESTED, NUMBERS, MONEY, nullable(text(3)), members({"n": nullable(MONEY)})):
        valid = jsonschema_rs.Draft202012Validator(schema).is_valid(value)
        assert (not Shape(schema).faults(value)) == valid


@given(st.datetimes(timezones=st.sampled_from([UTC])))
def test_every_time_reads_back(moment: datetime) -> None:
    for written in (moment.isoformat(), moment.isoformat().replace("+00:00", "Z")):
        if moment.year >= 1000:
            assert is_instant(written)
            assert abs(read_instant(written) - moment) < timedelta(microseconds=1)
