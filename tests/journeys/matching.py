"""What is found at a path, and whether it is what was expected."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final


class Failed(AssertionError):
    """Something is not as the scenario says."""


class Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = Missing()


def dig(value: Any, path: str) -> list[Any]:
    """Return every value at a dotted path: the value itself for '', any item for '*'."""
    found = [value]
    for part in filter(None, path.split(".")):
        found = [inner for outer in found for inner in _inside(outer, part)]
    return found


def _inside(value: Any, part: str) -> list[Any]:
    match value:
        case list() | dict() | str() if part == "#":
            return [len(value)]
        case list() if part == "*":
            return value
        case list() if re.fullmatch(r"-?\d+", part):
            return [value[int(part)]] if -len(value) <= int(part) < len(value) else []
        case dict() if part in value:
            return [value[part]]
    return []


def _matches(pattern: str, got: Any) -> bool:
    return bool(re.search(pattern, got if isinstance(got, str) else json.dumps(got)))


def _subset(wanted: Mapping[str, Any], got: Any) -> bool:
    return isinstance(got, dict) and all(
        holds(got.get(name, MISSING), value) for name, value in wanted.items()
    )


OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$in": lambda wanted, got: any(same(got, one) for one in wanted),
    "$ne": lambda wanted, got: not same(got, wanted),
    "$gte": lambda wanted, got: float(got) >= wanted,
    "$lte": lambda wanted, got: float(got) <= wanted,
    "$len": lambda wanted, got: len(got) == wanted,
    "$match": _matches,
    "$contains": lambda wanted, got: wanted in got,
    "$subset": _subset,
}
EXISTS: Final = "$exists"
"""The one operator that is asked of what is missing too."""


def is_operators(wanted: Any) -> bool:
    return isinstance(wanted, dict) and bool(wanted) and all(key[:1] == "$" for key in wanted)


def same(got: Any, wanted: Any) -> bool:
    """As JSON has it: 1 is 1.0, and is neither true nor "1"."""
    numbers = (int, float)
    alike = type(got) is type(wanted) or (type(got) in numbers and type(wanted) in numbers)
    return bool(alike and got == wanted)


def holds(got: Any, wanted: Any) -> bool:
    """Tell whether a value is what was expected; one of a wrong type is not."""
    if not is_operators(wanted):
        return same(got, wanted)
    return all(_operator_holds(name, value, got) for name, value in wanted.items())


def _operator_holds(name: str, wanted: Any, got: Any) -> bool:
    if name == EXISTS:
        return (got is not MISSING) is wanted
    try:
        return got is not MISSING and OPERATORS[name](wanted, got)
    except (TypeError, ValueError, OverflowError):
        return False


def expect(value: Any, wanted: Mapping[str, Any], what: str) -> None:
    """Hold what is at each path against what was expected there. Raises Failed."""
    for path, want in wanted.items():
        found = dig(value, path) or [MISSING]
        if not any(holds(one, want) for one in found):
            raise Failed(f"{what}: {path or 'body'}: wanted {json.dumps(want)}, got {told(found)}")


def told(found: list[Any]) -> str:
    """Return what was found, with how many items it has where it is one list."""
    one, *more = found
    if one is MISSING:
        return repr(one)
    text = json.dumps(found if more else one)[:400]
    return f"{len(one)} items: {text}" if isinstance(one, list) and not more else text
