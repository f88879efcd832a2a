"""What others say happened: no request that could be refused, so it is kept as far as it can be.

A number whose size exceeds 2^53-1 becomes its own text, which loses nothing. A NUL character and a
lone surrogate become U+FFFD, which `loses` tells of. What is ambiguous is not guessed at.
"""

import json
import re
from typing import Any, Final, NoReturn

from config.errors import InvalidBody
from config.jsontext import MAX_DEPTH, MAX_INTEGER, parse

_LONGEST: Final = 20  # characters of a whole number that may be within 2^53
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


def parse_kept(raw: bytes) -> tuple[Any, bool]:
    """Read one JSON value as `parse` does, and say whether a character of it had to be replaced.

    Refused all the same are duplicate keys, NaN and infinities, and nesting over 64. Raises
    `MalformedJson` and `InvalidBody`.
    """
    try:
        return parse(raw), False
    except InvalidBody as refusal:
        try:
            value = _LENIENT.decode(raw.decode())
            return kept(value), loses(value)
        except (ValueError, RecursionError):
            raise refusal from None


def kept(value: Any, depth: int = 0) -> Any:
    """Return a value of JSON with what cannot be kept replaced; ValueError where it can't be."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return _number(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if depth == MAX_DEPTH:
        raise ValueError(f"Nested deeper than {MAX_DEPTH}.")
    if isinstance(value, dict):
        return _unique([(kept(name), kept(one, depth + 1)) for name, one in value.items()])
    return [kept(one, depth + 1) for one in value]


def loses(value: Any) -> bool:
    """Say whether `kept` replaces a character of the value."""
    if isinstance(value, str):
        return _UNSTORABLE.search(value) is not None
    if isinstance(value, dict):
        value = value.items()
    elif not isinstance(value, list | tuple):
        return False
    return any(map(loses, value))


def _number(value: int | float) -> int | float | str:
    if -MAX_INTEGER <= value <= MAX_INTEGER:
        return value
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        raise ValueError(f"{value} is no JSON number.")
    return repr(value)


def _whole(text: str) -> int | str:
    # The length is looked at first: converting a long one takes quadratic time.
    return int(text) if len(text) < _LONGEST and abs(int(text)) <= MAX_INTEGER else text


def _fraction(text: str) -> float | str:
    number = float(text)
    return number if -MAX_INTEGER <= number <= MAX_INTEGER else text


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("A member is given twice.")
    return members


_LENIENT: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_whole, parse_float=_fraction, parse_constant=_constant
)
