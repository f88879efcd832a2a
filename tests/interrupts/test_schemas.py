"""JSON Schemas of arguments and responses."""

import time
from typing import Any

import pytest

from interrupts.schemas import (
    Validator,
    check_response_schema,
    check_schema,
    declares,
    validate_value,
    validator_for,
)

REFUND: dict[str, Any] = {
    "type": "object",
    "required": ["payment", "amount"],
    "properties": {
        "payment": {"type": "string"},
        "amount": {"type": "string", "pattern": "^[0-9]+(\\.[0-9]{2})?$"},
        "card": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "additionalProperties": False,
}


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


# Registering


def test_a_schema_of_arguments_is_taken() -> None:
    assert check_schema(REFUND) == []
    assert check_schema({**REFUND, "$schema": "https://json-schema.org/draft/2020-12/schema"}) == []


def test_a_schema_of_a_response_may_be_of_any_type() -> None:
    assert check_response_schema({"enum": ["a", 1]}) == []
    assert check_schema({"enum": [{}]}) != []


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ([], ""),
        (None, ""),
        (True, ""),
        ({}, "/type"),
        ({"type": "string"}, "/type"),
        ({"type": ["object", "null"]}, "/type"),
        (object_of(a={"type": "strin"}), "/properties/a/type"),
        (object_of(a={"minLength": -1}), "/properties/a/minLength"),
        (object_of(a=7), "/properties/a"),
        ({"type": "object", "required": "a"}, "/required"),
        ({"type": "object", "properties": []}, "/properties"),
        ({"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema"),
        (object_of(a={"$ref": "https://example.com/schema"}), "/properties/a/$ref"),
        (object_of(a={"$ref": "file:///etc/passwd"}), "/properties/a/$ref"),
        (object_of(a={"$ref": "other.json#/x"}), "/properties/a/$ref"),
        (object_of(a={"$ref": "#/$defs/none"}), "/properties/a/$ref"),
        (object_of(a={"$ref": "#/$defs/~2"}), "/properties/a/$ref"),
        (object_of(a={"$ref": "#/properties/a/const", "const": {}}), "/properties/a/$ref"),
        (object_of(a={"$id": "https://example.com/"}), "/properties/a/$id"),
        (object_of(a={"$dynamicRef": "#x"}), "/properties/a/$dynamicRef"),
        ({"type": "object", "$ref": "#"}, ""),
        ({"type": "object", "allOf": [{"anyOf": [{"$ref": "#"}]}]}, "/allOf/0"),
        (object_of(a={"pattern": "(a"}), "/properties/a/pattern"),
        (object_of(a={"pattern": "(?=a)b"}), "/properties/a/pattern"),
        (object_of(a={"pattern": "(a)\\1"}), "/properties/a/pattern"),
        (object_of(a={"pattern": "((a{100}){100}){100}"}), "/properties/a/pattern"),
        (object_of(a={"pattern": "a" * 1001}), "/properties/a/pattern"),
        (object_of(**{f"p{i}": {"pattern": "a"} for i in range(101)}), ""),
        (object_of(a={"const": float("nan")}), "/properties/a/const"),
        (object_of(a={"const": 2**60}), "/properties/a/const"),
        (object_of(a={1: 2}), "/properties/a"),
        (object_of(a={"description": "x" * 70_000}), ""),
    ],
)
def test_an_unusable_schema_is_refused_with_its_place(schema: Any, place: str) -> None:
    assert [found for found, _ in check_schema(schema)][:1] == [place]


@pytest.mark.parametrize("target", ["https://example.com/s", "s.json#/x", "a/$defs/x", "#anchor"])
def test_nothing_outside_the_schema_is_referred_to(target: str) -> None:
    schema = object_of(a={"$ref": target}) | {"$defs": {"x": {"$anchor": "anchor"}}}
    detail = "A reference stays in its schema: it begins with #/."
    assert check_schema(schema) == [("/properties/a/$ref", detail)]


@pytest.mark.parametrize(
    "schema",
    [
        object_of(a={"$ref": "#/$defs/a%20b"}) | {"$defs": {"a b": {"type": "string"}}},
        object_of(a={"$ref": "#/definitions/x"}) | {"definitions": {"x": {}}},
        object_of(a={"$ref": "#"}),
        object_of(a={"enum": [{"$ref": "https://example.com"}]}),
        {"type": "object", "$id": "https://example.com/s", "allOf": [{"$ref": "#/$defs/x"}]}
        | {"$defs": {"x": {"required": ["y"]}}},
        {"type": "object", "x-extra": {"$ref": 1}, "title": "T"},
        object_of(a=True, b=False),
    ],
)
def test_a_usable_schema_is_taken(schema: Any) -> None:
    assert check_schema(schema) == []
    Validator(schema).validate({"a": 1})


def branching(levels: int) -> dict[str, Any]:
    """Build a schema of some hundred bytes a level that takes 2^levels evaluations of one value."""
    definitions: dict[str, Any] = {
        f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]}
        for i in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "string"}
    return object_of(x={"$ref": "#/$defs/d0"}) | {"$defs": definitions}


def test_a_schema_that_branches_without_bound_is_refused() -> None:
    assert check_schema(branching(6)) == []
    assert check_schema(branching(60)) == [
        ("", "The schema branches too much to be checked within bounds.")
    ]


def test_the_largest_schema_is_checked_in_bounded_time() -> None:
    started = time.monotonic()
    check_schema(object_of(**{f"p{i}": {"type": "string"} for i in range(2400)}))
    check_schema(branching(700))
    check_schema({"type": "object", "$defs": {"a": {}}, "allOf": [{"$ref": "#/$defs/a"}] * 2500})
    assert time.monotonic() - started < 5


# Validating


def test_what_holds_breaks_nothing() -> None:
    assert Validator(REFUND).validate({"payment": "p", "amount": "12.00"}) == []


def test_what_breaks_is_told_with_its_place() -> None:
    value = {"payment": 7, "extra/member": 1, "card": {"number": "x"}}
    assert sorted(Validator(REFUND).validate(value)) == [
        ("/amount", "This member is required."),
        ("/card/number", 'The value is not of type "integer".'),
        ("/extra~1member", "No such member is declared."),
        ("/payment", 'The value is not of type "string".'),
    ]


SECRET = "4111111111111111"
EVERY_FAULT = [
    ({"type": "integer"}, SECRET),
    ({"const": "x"}, SECRET),
    ({"enum": ["x"]}, SECRET),
    ({"pattern": "^x"}, SECRET),
    ({"maxLength": 3}, SECRET),
    ({"format": "email"}, SECRET),
    ({"maximum": 3}, int(SECRET)),
    ({"multipleOf": 7}, int(SECRET)),
    ({"not": {"type": "string"}}, SECRET),
    ({"anyOf": [{"type": "integer"}, {"const": 1}]}, SECRET),
    ({"oneOf": [{"type": "string"}, {"minLength": 1}]}, SECRET),
    ({"items": {"type": "integer"}}, [SECRET]),
    ({"contains": {"type": "integer"}}, [SECRET]),
    ({"uniqueItems": True}, [SECRET, SECRET]),
    ({"additionalProperties": False}, {SECRET: 1}),
    ({"properties": {}, "additionalProperties": False}, {SECRET: 1}),
    ({"unevaluatedProperties": False}, {SECRET: 1}),
    ({"propertyNames": {"maxLength": 3}}, {SECRET: 1}),
    ({"additionalProperties": {"type": "string"}}, {SECRET: 1}),
    ({"properties": {"n": {"type": "integer"}}}, {"n": SECRET}),
    ({"required": ["a"]}, {SECRET: 1}),
    ({"dependentRequired": {SECRET: ["a"]}}, {SECRET: 1}),
    (False, SECRET),
]


@pytest.mark.parametrize(("schema", "value"), EVERY_FAULT, ids=str)
def test_no_fault_quotes_what_is_sensitive(schema: Any, value: Any) -> None:
    for sensitive in ["/card", "/*"]:
        found = Validator(object_of(card=schema), [sensitive]).validate({"card": value})
        assert [place for place, _ in found] in (["/card"], ["/card/a"])
        assert SECRET not in str(found)


@pytest.mark.parametrize(("schema", "value"), EVERY_FAULT[:12], ids=str)
def test_no_fault_quotes_a_value_at_all(schema: Any, value: Any) -> None:
    found = Validator(object_of(card=schema)).validate({"card": value})
    assert found
    assert SECRET not in str(found)


def test_faults_below_a_sensitive_place_name_only_it() -> None:
    cards = object_of(cards={"items": object_of(number={"type": "string", "maxLength": 2})})
    found = Validator(cards, ["/cards/*/number"]).validate({"cards": [{"number": SECRET}, {}]})
    assert found == [("/cards/0/number", 'The value breaks "maxLength".')]


@pytest.mark.parametrize(
    ("pattern", "text", "holds"),
    [
        ("^[0-9]+$", "12\n", False),
        ("^\\d$", "\u0663", False),
        ("^\\w$", "\u00e9", False),
        ("^.$", "\U0001f600", True),
        ("^\\p{L}+$", "\u00e9a", True),
        ("b", "abc", True),
    ],
)
def test_patterns_mean_what_ecmascript_means(pattern: str, text: str, holds: bool) -> None:
    assert (validate_value({"pattern": pattern}, text) == []) is holds


@pytest.mark.parametrize(
    ("schema", "value", "holds"),
    [
        ({"type": "integer"}, 1.0, True),
        ({"type": "integer"}, True, False),
        ({"type": "number"}, True, False),
        ({"const": 1}, 1.0, True),
        ({"const": 1}, True, False),
        ({"enum": [0]}, False, False),
        ({"uniqueItems": True}, [1, True], True),
        ({"maximum": 9007199254740990}, 9007199254740991, False),
        ({"maxLength": 1}, "\U0001f600", True),
        ({"format": "date-time"}, "2026-01-01 10:00", False),
        ({"format": "uuid"}, "no", False),
        ({"format": "unheard-of"}, "no", True),
    ],
)
def test_the_corners_of_the_specification_hold(schema: Any, value: Any, holds: bool) -> None:
    assert (validate_value(schema, value) == []) is holds


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*$", "(.*a){30}", "^(([a-z])+.)+[A-Z]([a-z])+$"]
)
def test_no_pattern_takes_more_than_linear_time(pattern: str) -> None:
    assert check_response_schema({"pattern": pattern}) == []
    started = time.monotonic()
    validate_value({"pattern": pattern}, "a" * 500_000 + "!")
    assert time.monotonic() - started < 2


RECURSIVE: dict[str, Any] = {
    "$ref": "#/$defs/n",
    "$defs": {
        "n": {
            "anyOf": [
                {"required": ["c"], "properties": {"c": {"$ref": "#/$defs/n"}}},
                {"required": ["c", "d"], "properties": {"c": {"$ref": "#/$defs/n"}}},
            ]
        }
    },
}


def test_a_value_that_a_schema_multiplies_is_refused_in_bounded_time() -> None:
    assert check_response_schema(RECURSIVE) == []
    started = time.monotonic()
    for depth in range(64):
        value: Any = {}
        for _ in range(depth):
            value = {"c": value, "d": 1}
        assert validate_value(RECURSIVE, value) != []
    assert time.monotonic() - started < 5
    assert validate_value(RECURSIVE, value) == [
        ("", "The value is too large or too deep to be checked against this schema.")
    ]


def test_the_number_of_faults_is_bounded() -> None:
    found = validate_value({"items": {"type": "string"}}, [1] * 50_000)
    assert len(found) == 100


def test_a_version_is_made_ready_once() -> None:
    assert validator_for("v1", REFUND) is validator_for("v1", REFUND)
    assert validator_for("v2", REFUND, ["/card"]) is not validator_for("v1", REFUND)


# Names


@pytest.mark.parametrize(
    ("path", "declared"),
    [
        (("payment",), True),
        (("none",), False),
        (("card", "anything"), True),
        (("payment", "below"), False),
        (("lines", "0", "sku"), True),
        (("lines", "0", "none"), False),
        (("lines", "sku"), False),
        (("pair", "0"), True),
        (("pair", "1"), False),
        (("either", "b"), True),
        (("tree", "next", "next", "name"), True),
        (("never",), False),
    ],
)
def test_a_declared_member_is_known(path: tuple[str, ...], declared: bool) -> None:
    node = object_of(next={"$ref": "#/$defs/node"}, name={})
    schema = object_of(
        **REFUND["properties"],
        lines={"type": "array", "items": object_of(sku={})},
        pair={"prefixItems": [{}], "items": False},
        either={"anyOf": [object_of(a={}), object_of(b={})]},
        tree={"$ref": "#/$defs/node"},
        never=False,
    ) | {"$defs": {"node": node}, "additionalProperties": False}
    assert check_schema(schema) == []
    assert declares(schema, path) is declared
