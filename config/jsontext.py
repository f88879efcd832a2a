"""JSON as this service reads, writes and digests it.

`parse` reads strictly: what two parsers could read differently is refused. `canonical` writes the
one form of RFC 8785 (JSON Canonicalization Scheme), which `digest` hashes.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from config.errors import InvalidBody, MalformedJson, Problem, pointer

__all__ = [
    "MAX_DEPTH",
    "MAX_INTEGER",
    "canonical",
    "digest",
    "digest_bytes",
    "parse",
    "pointer",
    "value_faults",
]

MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**53 - 1
MAX_VALUES: Final = 100_000

_TOO_DEEP = f"Nested deeper than {MAX_DEPTH}."
_INTEGER_TEXT = len(str(-MAX_INTEGER))
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SUSPECT_ESCAPES = (b"\\u0000", b"\\ud", b"\\uD")


class _Refused(Exception):
    """The text holds what the strict reader refuses; `_locate` says where."""


def parse(raw: bytes) -> Any:
    """Read one JSON value from UTF-8 text.

    Refused are duplicate keys, NaN and infinities, numbers whose size exceeds 2^53-1, NUL
    characters, lone surrogates and nesting over 64. Raises `MalformedJson` for what is no JSON and
    `InvalidBody` with a pointer for the rest.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as fault:
        raise MalformedJson(f"The text is not UTF-8 at byte {fault.start}.") from None
    try:
        value = _STRICT.decode(text)
        if any(escape in raw for escape in _SUSPECT_ESCAPES):
            _refuse_unstorable(value)
        # Brackets bound the depth from above, so most texts need no walk.
        if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
            _refuse_deep(value)
    except json.JSONDecodeError as fault:
        raise _malformed(fault) from None
    except (_Refused, RecursionError):
        raise _locate(text) from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Refused
    return members


def _integer(text: str) -> int:
    # The length is looked at first: converting a long one takes quadratic time.
    if len(text) < _INTEGER_TEXT - 1:
        return int(text)
    if len(text) > _INTEGER_TEXT or abs(number := int(text)) > MAX_INTEGER:
        raise _Refused
    return number


def _fraction(text: str) -> float:
    number = float(text)
    # Every binary fraction beyond the bound is an integer; its canonical form could not be read.
    if not -MAX_INTEGER <= number <= MAX_INTEGER:
        raise _Refused
    return number


def _constant(_text: str) -> NoReturn:
    raise _Refused


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_int=_integer,
    parse_float=_fraction,
    parse_constant=_constant,
)


def _malformed(fault: json.JSONDecodeError) -> MalformedJson:
    return MalformedJson(f"{fault.msg} at line {fault.lineno}, column {fault.colno}.")


def _refuse_deep(value: Any) -> None:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) is dict or type(child) is list
        ]
    if level:
        raise _Refused


def _refuse_unstorable(value: Any) -> None:
    pending = [value]
    while pending:
        item = pending.pop()
        if type(item) is str:
            if _UNSTORABLE.search(item):
                raise _Refused
        elif type(item) is dict:
            pending += item
            pending += item.values()
        elif type(item) is list:
            pending += item


_Place = tuple[str | int, ...]


class _Number(str):
    """A number kept as its text, or the name of what is no number."""

    __slots__ = ()


class _Members(list[tuple[str, Any]]):
    """An object's members in order, repeated ones included."""


_LENIENT = json.JSONDecoder(
    object_pairs_hook=_Members,
    parse_int=_Number,
    parse_float=_Number,
    parse_constant=_Number,
)


def _locate(text: str) -> Problem:
    """Read a refused text again, keeping what is refused, and name the first place of it."""
    try:
        document = _LENIENT.decode(text)
    except RecursionError:
        return InvalidBody.at("", _TOO_DEEP)
    except json.JSONDecodeError as fault:
        return _malformed(fault)
    place, detail = next(_faults(document, (), 0), ((), _TOO_DEEP))
    return InvalidBody.at(pointer(*place), detail)


def _faults(item: Any, place: _Place, depth: int) -> Iterator[tuple[_Place, str]]:
    if not isinstance(item, list):
        if detail := _scalar_fault(item):
            yield place, detail
        return
    if depth == MAX_DEPTH:
        yield place, _TOO_DEEP
        return
    is_object = isinstance(item, _Members)
    seen: set[str] = set()
    for key, value in item if is_object else enumerate(item):
        if isinstance(key, str):
            yield from _key_faults(key, seen, place)
        yield from _faults(value, (*place, key), depth + 1)


def _scalar_fault(item: Any) -> str | None:
    if isinstance(item, _Number):
        return _number_fault(item)
    return _text_fault(item) if isinstance(item, str) else None


def _key_faults(key: str, seen: set[str], place: _Place) -> Iterator[tuple[_Place, str]]:
    if detail := _text_fault(key):
        yield place, f"A member's name: {detail}"
    if key in seen:
        yield (*place, key), "The member is given twice."
    seen.add(key)


def _number_fault(text: str) -> str | None:
    number = float(text)
    if number != number:  # noqa: PLR0124  (NaN alone differs from itself)
        return "NaN is no JSON number."
    if text.endswith("Infinity"):
        return "Infinity is no JSON number."
    try:
        (_fraction if set(text) & set(".eE") else _integer)(text)
    except _Refused:
        return "The number's size is beyond 2^53-1; send it as a string."
    return None


def _text_fault(text: str) -> str | None:
    if found := _UNSTORABLE.search(text):
        is_nul = found.group() == "\x00"
        return (
            "A NUL character cannot be stored." if is_nul else "A lone surrogate is no character."
        )
    return None


def value_faults(value: Any) -> list[tuple[str, str]]:
    """Return where, and why, a value from elsewhere (YAML, a form) is none that `parse` returns.

    At most 100,000 values are looked at: an alias makes a small YAML text a huge value.
    """
    found: list[tuple[str, str]] = []
    pending: list[tuple[Any, _Place]] = [(value, ())]
    for _ in range(MAX_VALUES):
        if not pending:
            return found
        item, place = pending.pop()
        if detail := _value_fault(item, len(place)):
            found.append((pointer(*place), detail))
        elif isinstance(item, dict | list):
            members = item.items() if isinstance(item, dict) else enumerate(item)
            pending += reversed([(child, (*place, key)) for key, child in members])
    return [*found, ("", f"Holds more than {MAX_VALUES} values.")] if pending else found


def _value_fault(item: Any, depth: int) -> str | None:
    if item is None or isinstance(item, bool):
        return None
    if isinstance(item, int | float):
        return _number_fault(str(item).replace("inf", "Infinity"))
    if isinstance(item, str):
        return _text_fault(item)
    if not isinstance(item, dict | list):
        return f"A {type(item).__name__} is no JSON value; quote it to make it text."
    if depth == MAX_DEPTH:
        return _TOO_DEEP
    return _names_fault(item) if isinstance(item, dict) else None


def _names_fault(members: dict[Any, Any]) -> str | None:
    if any(not isinstance(name, str) for name in members):
        return "The name of a member is not text."
    details = filter(None, map(_text_fault, members))
    return next((f"A member's name: {detail}" for detail in details), None)


# The C encoder's text is canonical, except for: numbers that ECMAScript writes otherwise, integers
# that no double holds, and keys whose order in UTF-16 is not their order by code point.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    check_circular=False,
    allow_nan=False,
    sort_keys=True,
    separators=(",", ":"),
)
_SUSPECT_NUMBER = re.compile(r"[:,\[]-?(?:\d+\.0(?![0-9])|\d{16}|\d+(?:\.\d+)?e)")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_ABOVE_SURROGATES = re.compile("[\ue000-\uffff]")


def canonical(value: Any) -> bytes:
    """Write `value` in its RFC 8785 form.

    `value` is what JSON can say, with string keys. Raises `ValueError` for NaN, infinities, lone
    surrogates and integers beyond 2^53-1, and `TypeError` for what is no JSON value.
    """
    if isinstance(value, float | int):
        return _write(value).encode()
    text = _ENCODER.encode(value)
    if _SUSPECT_NUMBER.search(text) or (
        not text.isascii() and _ASTRAL.search(text) and _ABOVE_SURROGATES.search(text)
    ):
        text = _write(value)
    return text.encode()


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical form as `sha256:<hex>`."""
    return digest_bytes(canonical(value))


def digest_bytes(data: bytes) -> str:
    """Return the SHA-256 of bytes, as a rule already canonical ones, as `sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _write(value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=_utf16)
        return "{" + ",".join(f"{_ENCODER.encode(k)}:{_write(value[k])}" for k in keys) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_write, value)) + "]"
    if isinstance(value, float):
        return _ecmascript(value)
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError("An integer beyond 2^53-1 has no canonical form")
    return _ENCODER.encode(value)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be")


def _ecmascript(number: float) -> str:
    """Write a number as ECMAScript's Number::toString does (ECMA-262, 6.1.6.1.20)."""
    if not math.isfinite(number):
        raise ValueError(f"{number} has no canonical form")
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    return sign + _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    """Write 0.digits * 10^point."""
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{'+' if point > 0 else '-'}{abs(point - 1)}"
