"""Checks of JSON values against the part of JSON Schema that request bodies need.

Anything a schema says that is not understood here is an error when the module loads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from config.errors import Fault, pointer

Schema = Mapping[str, Any]
Found = list[Fault]
Check = Callable[[Any, str, Found], None]

_KEYWORDS: Final = frozenset(
    {
        "additionalProperties",
        "const",
        "default",
        "description",
        "enum",
        "examples",
        "exclusiveMinimum",
        "format",
        "items",
        "maximum",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minimum",
        "minItems",
        "minLength",
        "oneOf",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    }
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_INSTANT = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def compile_check(schema: Schema) -> Check:
    """Return the function that adds every fault of a value to a list; ValueError: see above."""
    if unknown := schema.keys() - _KEYWORDS:
        raise ValueError(f"a body's schema does not understand {sorted(unknown)}")
    if "oneOf" in schema:
        return _one_of(schema["oneOf"])
    values = _values(schema) if "enum" in schema or "const" in schema else _anything
    named = schema.get("type")
    return _typed(schema, [named] if isinstance(named, str) else named, values) if named else values


def _typed(schema: Schema, kinds: list[str], values: Check) -> Check:
    null_too = "null" in kinds
    checks = {kind: _OF_KIND[kind](schema) for kind in kinds if kind != "null"}
    said = " or ".join(_SAID[kind] for kind in kinds)

    def check(value: Any, at: str, found: Found) -> None:
        if value is None and null_too:
            return
        for kind, inner in checks.items():
            if _is(kind, value):
                inner(value, at, found)
                values(value, at, found)
                return
        found.append({"pointer": at, "detail": f"Must be {said}."})

    return check


def _is(kind: str, value: Any) -> bool:
    if kind == "number":
        return type(value) is int or type(value) is float
    return type(value) is _PYTHON[kind]


def _anything(_value: Any, _at: str, _found: Found) -> None:
    return


def _values(schema: Schema) -> Check:
    allowed = list(schema["enum"]) if "enum" in schema else [schema["const"]]
    said = ", ".join(str(value) for value in allowed)

    def check(value: Any, at: str, found: Found) -> None:
        if not any(type(value) is type(one) and value == one for one in allowed):
            found.append({"pointer": at, "detail": f"Must be one of: {said}."})

    return check


def _one_of(schemas: list[Schema]) -> Check:
    checks = [compile_check(schema) for schema in schemas]

    def check(value: Any, at: str, found: Found) -> None:
        attempts: list[Found] = []
        for one in checks:
            faults: Found = []
            one(value, at, faults)
            if not faults:
                return
            attempts.append(faults)
        # The form with a fault furthest in is the one that was meant.
        found += max(attempts, key=lambda faults: max(len(fault["pointer"]) for fault in faults))

    return check


def _object(schema: Schema) -> Check:
    declared = {name: compile_check(inner) for name, inner in schema.get("properties", {}).items()}
    required = tuple(schema.get("required", ()))
    others = schema.get("additionalProperties", False)
    other = compile_check(others) if isinstance(others, Mapping) else None
    limit = schema.get("maxProperties")

    def check(value: Any, at: str, found: Found) -> None:
        for name in required:
            if name not in value:
                found.append({"pointer": at + pointer(name), "detail": "This member is missing."})
        for name, member in value.items():
            inner = declared.get(name, other)
            if inner is not None:
                inner(member, at + pointer(name), found)
            elif others is False:
                found.append({"pointer": at + pointer(name), "detail": "No such member."})
        if limit is not None and len(value) > limit:
            found.append({"pointer": at, "detail": f"Must have {limit} members at most."})

    return check


def _array(schema: Schema) -> Check:
    item = compile_check(schema.get("items", {}))
    least, limit = schema.get("minItems", 0), schema.get("maxItems")

    def check(value: Any, at: str, found: Found) -> None:
        if len(value) < least:
            found.append({"pointer": at, "detail": f"Must have {least} items at least."})
        if limit is not None and len(value) > limit:
            found.append({"pointer": at, "detail": f"Must have {limit} items at most."})
            return
        for index, inner in enumerate(value):
            item(inner, f"{at}/{index}", found)

    return check


def _string(schema: Schema) -> Check:
    least, limit = schema.get("minLength", 0), schema.get("maxLength")
    pattern = re.compile(schema["pattern"]) if "pattern" in schema else None
    of_format = _FORMATS.get(schema.get("format", ""))
    said = schema.get("description") or f"Must match {schema.get('pattern')}."

    def check(value: Any, at: str, found: Found) -> None:
        if len(value) < least:
            detail = "Must not be empty." if least == 1 else f"Must have {least} characters."
            found.append({"pointer": at, "detail": detail})
        elif limit is not None and len(value) > limit:
            found.append({"pointer": at, "detail": f"Must have {limit} characters at most."})
        elif pattern is not None and not pattern.fullmatch(value):
            found.append({"pointer": at, "detail": said})
        elif of_format is not None and not of_format(value):
            found.append({"pointer": at, "detail": f"Must be a {schema['format']}."})

    return check


def _number(schema: Schema) -> Check:
    least, limit = schema.get("minimum"), schema.get("maximum")
    above = schema.get("exclusiveMinimum")

    def check(value: Any, at: str, found: Found) -> None:
        if least is not None and value < least:
            found.append({"pointer": at, "detail": f"Must be {least} or more."})
        elif limit is not None and value > limit:
            found.append({"pointer": at, "detail": f"Must be {limit} or less."})
        elif above is not None and value <= above:
            found.append({"pointer": at, "detail": f"Must be more than {above}."})

    return check


def _bare(_schema: Schema) -> Check:
    return _anything


def is_uuid(value: str) -> bool:
    """Return whether the text is a UUID in its usual form, in either case."""
    return _UUID.fullmatch(value) is not None


def is_instant(value: str) -> bool:
    """Return whether the text is an RFC 3339 time that names its offset."""
    if not _INSTANT.fullmatch(value):
        return False
    try:
        read_instant(value)
    except ValueError:
        return False
    return True


def read_instant(value: str) -> datetime:
    """Return the time that an RFC 3339 text names; ValueError where there is none such."""
    # fromisoformat keeps microseconds: finer fractions are cut.
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", value.upper()))


_PYTHON: Final[Mapping[str, type]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "object": dict,
    "string": str,
}
_SAID: Final[Mapping[str, str]] = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_OF_KIND: Final[Mapping[str, Callable[[Schema], Check]]] = {
    "array": _array,
    "boolean": _bare,
    "integer": _number,
    "number": _number,
    "object": _object,
    "string": _string,
}
_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "date-time": is_instant,
    "uuid": is_uuid,
}
