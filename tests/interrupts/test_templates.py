"""Texts made of arguments, and what is masked in them."""

import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interrupts.templates import (
    Piece,
    check_sensitive,
    check_template,
    confirms,
    mask,
    plain_text,
    render,
    template,
    with_hmac,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "string"},
        "payment": {"type": "string"},
        "customer": {"type": "object", "properties": {"email": {}, "card": {}}},
        "lines": {"items": {"properties": {"sku": {}}}},
        "a.b": {},
    },
}
ARGUMENTS = {
    "amount": "120.00",
    "payment": "p-1",
    "customer": {"email": "ann@example.test", "card": "4111"},
    "lines": [{"sku": "x"}, {"sku": "y"}],
    "a.b": 7,
}


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Refund {amount} of payment {payment}", "Refund 120.00 of payment p-1"),
        ("{amount}{payment}", "120.00p-1"),
        ("To {customer.email}", "To ann@example.test"),
        ("{lines.1.sku}", "y"),
        ("{/a.b} {/customer/email}", "7 ann@example.test"),
        ("{{amount}} {{{amount}}}", "{amount} {120.00}"),
        ("nothing", "nothing"),
        ("{lines}", '[{"sku":"x"},{"sku":"y"}]'),
    ],
)
def test_a_template_is_filled_from_the_arguments(text: str, made: str) -> None:
    assert check_template(text, SCHEMA) == []
    assert render(text, ARGUMENTS) == made


def test_an_argument_that_was_not_given_is_said_to_be_missing() -> None:
    assert render("Refund {amount} to {customer.email}", {}) == (
        "Refund (not given) to (not given)"
    )
    assert render("{lines.2.sku}", ARGUMENTS) == "(not given)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("{payment}", "{payment}"),
        ("{0.__class__}", "{0.__class__}"),
        ("<b>&amp;", "<b>&amp;"),
        ("a\nb\x1b[1m", "a\\u{a}b\\u{1b}[1m"),
        ("\u202e00.1", "\\u{202e}00.1"),
        ("zero\u200bwidth", "zero\\u{200b}width"),
        ("caf\u00e9 \u4e2d \U0001f600", "caf\u00e9 \u4e2d \U0001f600"),
        (True, "true"),
        (None, "null"),
        (1.0, "1"),
        (1e-7, "1e-7"),
        ({"b": 1, "a": [None]}, '{"a":[null],"b":1}'),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "\u2026"),
    ],
)
def test_a_value_is_put_in_as_plain_text(value: Any, text: str) -> None:
    assert plain_text(value) == text
    assert render("{amount}!", {"amount": value}) == f"{text}!"


def test_pieces_tell_what_comes_from_the_arguments() -> None:
    assert template("Refund {amount}.").pieces({"amount": "1 to Eve"}) == [
        Piece("Refund ", is_value=False),
        Piece("1 to Eve", is_value=True),
        Piece(".", is_value=False),
    ]


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_value_never_changes_the_rest_of_the_text(first: str, second: str) -> None:
    texts = [piece.text for piece in template("A {a} B {b} C").pieces({"a": first, "b": second})]
    assert texts == ["A ", plain_text(first), " B ", plain_text(second), " C"]


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("{amont}", "{amont} names no declared argument."),
        ("{customer.name}", "{customer.name} names no declared argument."),
        ("{amount.real}", "{amount.real} names no declared argument."),
        ("{a.b}", "{a.b} names no declared argument."),
        ("{amount:>10}", "{amount:>10} names no declared argument."),
        ("{amount!r}", "{amount!r} names no declared argument."),
        ("{}", "{} is no name of an argument."),
        ("{ amount }", "{ amount } is no name of an argument."),
        ("{customer..email}", "{customer..email} is no name of an argument."),
        ("{amount", "A single brace; write {{ or }} for a brace itself."),
        ("amount}", "A single brace; write {{ or }} for a brace itself."),
        ("{a{b}}", "A single brace; write {{ or }} for a brace itself."),
        ("{/a~2}", "In a pointer ~ is written ~0."),
        ("two\nlines", "A template is one line of visible characters."),
        ("", "A template has 1 to 500 characters."),
        ("  ", "A template has 1 to 500 characters."),
        ("x" * 501, "A template has 1 to 500 characters."),
        (7, "A template is text."),
    ],
)
def test_a_template_that_could_not_be_filled_is_refused(text: Any, detail: str) -> None:
    assert check_template(text, SCHEMA) == [("", detail)]


def test_every_unknown_name_is_told() -> None:
    assert len(check_template("{x} {amount} {y}", SCHEMA)) == 2


# Masking


def test_sensitive_values_are_masked_in_texts() -> None:
    text = "{amount} {customer.card} {customer} {customer.card.part} {lines.0.sku}"
    assert render(text, ARGUMENTS, ["/customer/card", "/lines/*/sku"]) == (
        '120.00 \u2022\u2022\u2022 {"card":"\u2022\u2022\u2022","email":"ann@example.test"}'
        " \u2022\u2022\u2022 \u2022\u2022\u2022"
    )


def test_what_must_be_typed_names_nothing_sensitive() -> None:
    for text in ["{customer.card}", "{customer}", "{lines.0.sku}", "{lines.0}"]:
        hidden = ["/customer/card", "/lines/*/sku"]
        assert check_template(text, SCHEMA, hidden) == []
        assert "cannot be typed" in check_template(text, SCHEMA, hidden, is_typed=True)[0][1]
    assert check_template("{amount}", SCHEMA, ["/customer/card"], is_typed=True) == []


def test_masking_replaces_sensitive_values_only() -> None:
    masked = mask(ARGUMENTS, ["/customer/card", "/lines/*/sku", "/none"])
    assert masked["customer"] == {"email": "ann@example.test", "card": "\u2022\u2022\u2022"}
    assert masked["lines"] == [{"sku": "\u2022\u2022\u2022"}] * 2
    assert masked["amount"] == "120.00"
    assert ARGUMENTS["customer"] == {"email": "ann@example.test", "card": "4111"}


def test_sealing_replaces_sensitive_values_by_their_keyed_digest() -> None:
    sealed = with_hmac({"card": {"n": 1, "a": "x"}, "b": 1}, ["/card"], b"key")
    expected = hmac.new(b"key", b'{"a":"x","n":1}', hashlib.sha256).hexdigest()
    assert sealed == {"card": f"hmac-sha256:{expected}", "b": 1}
    assert with_hmac({"card": 1}, ["/card"], b"a") != with_hmac({"card": 1}, ["/card"], b"b")
    assert with_hmac({"card": 1}, ["/card"], b"a") != with_hmac({"card": "1"}, ["/card"], b"a")


def test_a_sealed_value_cannot_be_handed_in_ready_made() -> None:
    sealed = with_hmac({"card": "4111"}, ["/card"], b"key")
    assert with_hmac(sealed, ["/card"], b"key") != sealed


@pytest.mark.parametrize(
    ("pointers", "places"),
    [
        (["/card_number", "/cards/*/number"], []),
        ([], []),
        ("/card", [""]),
        ([""], ["/0"]),
        (["/a", "card", 7, "/~"], ["/1", "/2", "/3"]),
    ],
)
def test_a_list_of_sensitive_paths_is_checked(pointers: Any, places: list[str]) -> None:
    assert [place for place, _ in check_sensitive(pointers)] == places


@pytest.mark.parametrize(
    ("typed", "holds"),
    [
        ("refund 120.00 EUR", True),
        ("  refund  120.00\u00a0EUR ", True),
        ("refund 120.00 eur", False),
        ("refund 120.0 EUR", False),
        ("", False),
    ],
)
def test_a_typed_confirmation_counts_characters_not_spaces(typed: str, holds: bool) -> None:
    assert confirms(typed, "refund 120.00 EUR") is holds
