"""Fields of a form, made from a JSON schema, and the value that was typed into them.

Nothing is judged here: what cannot be read as the type a schema names is passed on as it was typed,
and the schema refuses it where the value is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from config import jsontext
from config.errors import InvalidBody, Problem, faults, pointer

PREFIX: Final = "v."
WHOLE: Final = "value"
MOST_FIELDS: Final = 60
LONG_TEXT: Final = 200
_NUMBERS: Final = frozenset({"integer", "number"})
_SCALARS: Final = frozenset({"string", "boolean", *_NUMBERS})


class Typed(Protocol):
    """What a form sends: Django's QueryDict, or a mapping."""

    def get(self, key: str, default: Any = None, /) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field: how it is asked for, and what stands in it."""

    name: str
    label: str
    kind: str = "text"  # text | area | number | select | json | tick
    required: bool = False
    value: str = ""
    choices: Sequence[tuple[str, str]] = ()
    hint: str = ""
    place: str = ""  # of its value: a pointer into the response
    wrong: str = ""
    outside: bool = False  # its label and hint are the agent's own words
    longest: int | None = None


# Asked for


def fields_of(schema: Mapping[str, Any] | None) -> list[Field]:
    """Return the fields that ask for a value of this schema."""
    if schema is None:
        return [Field(name=WHOLE, label="Your answer", kind="area", required=True, place="/value")]
    members = _members(schema)
    if members is None:
        return [_field(WHOLE, "Your answer", schema, required=True, place="/value")]
    needed = schema.get("required", [])
    return [
        _field(
            f"{PREFIX}{name}",
            str(one.get("title") or name),
            one,
            required=name in needed,
            place=f"/value{pointer(name)}",
        )
        for name, one in sorted(members.items(), key=lambda pair: pair[0] not in needed)
    ]


def _members(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the members that are asked for one by one; None: the value is asked for as a whole."""
    members = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(members, dict) or not members:
        return None
    plain = all(isinstance(one, dict) for one in members.values())
    named = set(schema.get("required", [])) <= members.keys()
    return members if plain and named and len(members) <= MOST_FIELDS else None


def _field(
    name: str, label: str, schema: Mapping[str, Any], *, required: bool, place: str
) -> Field:
    kind, choices = _kind(schema)
    hint = str(schema.get("description") or "")
    return Field(
        name=name,
        label=label,
        kind=kind,
        required=required and kind != "json",
        value=_default(schema, kind),
        choices=choices,
        hint=hint,
        place=place,
        outside=True,
    )


def _kind(schema: Mapping[str, Any]) -> tuple[str, Sequence[tuple[str, str]]]:
    options = schema.get("enum")
    if isinstance(options, list) and options:
        return "select", [(_written(one), _shown(one)) for one in options]
    kind = schema.get("type")
    if kind == "boolean":
        return "select", [("true", "Yes"), ("false", "No")]
    if isinstance(kind, str) and kind in _NUMBERS:  # a schema may name several, in a list
        return "number", ()
    if kind == "string":
        longest = schema.get("maxLength")
        short = schema.get("format") or schema.get("pattern")
        brief = short or (isinstance(longest, int) and longest <= LONG_TEXT)
        return ("text" if brief else "area"), ()
    return "json", ()


def _default(schema: Mapping[str, Any], kind: str) -> str:
    """Return what stands in the field at first: nothing is answered in advance."""
    return "" if kind != "json" or "default" not in schema else _written(schema["default"])


def _written(value: Any) -> str:
    return jsontext.canonical(value).decode()


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else _written(value)


# Read


def read(schema: Mapping[str, Any] | None, typed: Typed) -> Any:
    """Return the value that was typed; a field left empty is a member left out.

    Raises InvalidBody for JSON that cannot be read.
    """
    if schema is None:
        return text(typed, WHOLE)
    members = _members(schema)
    if members is None:
        return read_one(schema, text(typed, WHOLE), "/value")
    value = {}
    for name, one in members.items():
        given = text(typed, f"{PREFIX}{name}")
        if given != "":
            value[name] = read_one(one, given, f"/value{pointer(name)}")
    return value


def read_one(schema: Mapping[str, Any], given: str, place: str) -> Any:
    kind, _ = _kind(schema)
    if kind in {"text", "area"}:
        return given
    if kind == "json":
        return parsed(given, place)
    try:
        return jsontext.parse(given.encode())
    except Problem:
        return given


def parsed(given: str, place: str) -> Any:
    """Read JSON that a person typed; InvalidBody at ``place`` where it is none."""
    try:
        return jsontext.parse(given.encode())
    except Problem as wrong:
        why = "; ".join(fault["detail"] for fault in wrong.errors) or wrong.detail
        raise InvalidBody.at(place, f"This is no JSON: {why}") from None


def text(typed: Typed, name: str) -> str:
    """Return what was typed into a text field, its lines ended as everywhere else.

    Raises InvalidBody for what no text may hold.
    """
    given = str(typed.get(name) or "").replace("\r\n", "\n")
    if wrong := jsontext.value_faults(given):
        raise InvalidBody("This text can't be kept.", errors=faults(wrong, "/value"))
    return given
