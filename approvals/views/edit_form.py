"""A form of a call's arguments: a field for each plain top-level member, JSON for the rest.

Typed values are kept: what was not changed comes back as it was, to the character, and what was is
read by the member's declared type. Sensitive values are shown masked, and masked they stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from config import jsontext
from config.errors import Fault, InvalidBody, Problem, faults
from config.visible import hidden_characters
from interrupts.templates import MASK

_PREFIX: Final = "/arguments"
_LONG: Final = 60  # characters; a longer text gets a larger field
_PLAIN: Final = frozenset({"string", "integer", "number", "boolean"})
_BREAK: Final = re.compile(r"[\r\n]")  # which a field of one line would lose
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
REST: Final = "rest"


@dataclass(frozen=True, slots=True)
class Field:
    """One member that can be typed: what it was, what was typed, and what is wrong with it."""

    name: str  # of the member
    at: str  # of the form's field
    kind: str  # text | long | number | choice
    text: str
    label: str
    hint: str
    choices: Sequence[str]
    optional: bool
    left_out: bool
    hidden: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """The fields, and the members that are typed as JSON."""

    fields: Sequence[Field]
    rest: str | None
    rest_error: str
    errors: Sequence[Fault]  # that belong to no field


def plain_members(schema: Any, shown: Any) -> list[str]:
    """Return the names of the members that get a field of their own, required ones first.

    A schema is stored without the order of its members; that of its ``required`` is kept.
    """
    if not isinstance(shown, Mapping) or not isinstance(schema, Mapping):
        return []
    declared = schema.get("properties")
    if not isinstance(declared, Mapping):
        return []
    required = [name for name in schema.get("required", ()) if name in declared]
    names = dict.fromkeys([*required, *sorted(declared)])
    return [name for name in names if _is_plain(declared[name]) and _fits(shown, name)]


def _is_plain(sub: Any) -> bool:
    if not isinstance(sub, Mapping) or "$ref" in sub or "const" in sub:
        return False
    if "enum" in sub:
        return all(isinstance(one, str | int | float) for one in sub["enum"])
    kind = sub.get("type")
    return isinstance(kind, str) and kind in _PLAIN  # a schema may name several, in a list


def _fits(shown: Mapping[str, Any], name: str) -> bool:
    """Say whether what stands there now can be typed into the member's field."""
    value = shown.get(name, "")
    return value == MASK or isinstance(value, str | int | float)


def form_of(
    schema: Any, shown: Any, sent: Mapping[str, str] | None = None, errors: Iterable[Fault] = ()
) -> Form:
    """Make the form of the arguments shown (masked); ``sent`` is what was typed into it before."""
    told = {one["pointer"].removeprefix(_PREFIX): one["detail"] for one in errors}
    names = plain_members(schema, shown)
    required = schema.get("required", []) if isinstance(schema, Mapping) else []
    fields = []
    for place, name in enumerate(names):
        error = told.pop(_pointer(name), "")
        fields.append(_field(name, place, schema, shown, sent, error, name in required))
    rest = _rest(schema, shown, names)
    typed = sent.get(REST) if sent is not None else None
    below = [detail for place, detail in told.items() if place != "" and _in_rest(place, rest)]
    return Form(
        fields=fields,
        rest=_text_of(rest) if typed is None and rest is not None else typed,
        rest_error=" ".join(below),
        errors=[
            {"pointer": place, "detail": detail}
            for place, detail in told.items()
            if detail not in below
        ],
    )


def _field(
    name: str,
    place: int,
    schema: Mapping[str, Any],
    shown: Mapping[str, Any],
    sent: Mapping[str, str] | None,
    error: str,
    required: bool,  # noqa: FBT001 - of a member, as its schema says
) -> Field:
    sub = schema["properties"][name]
    at = f"m{place}"
    now = _written(shown.get(name, ""))
    text = now if sent is None or at not in sent else sent[at]
    choices = _choices(sub)
    kind = "choice" if choices else "text"
    if not choices and sub.get("type") in {"integer", "number"}:
        kind = "number"
    elif not choices and (_BREAK.search(text + now) or len(now) > _LONG):
        kind = "long"
    return Field(
        name=name,
        at=at,
        kind=kind,
        text=text,
        label=str(sub.get("title") or name),
        hint=_hint(sub, masked=now == MASK),
        choices=choices if not choices or text in choices else (text, *choices),
        optional=not required,
        left_out=(name not in shown) if sent is None else f"{at}-out" in sent,
        hidden=hidden_characters(now),
        error=error,
    )


def _choices(sub: Mapping[str, Any]) -> Sequence[str]:
    if "enum" in sub:
        return [_written(one) for one in sub["enum"]]
    return ("true", "false") if sub.get("type") == "boolean" else ()


def _hint(sub: Mapping[str, Any], *, masked: bool) -> str:
    if masked:
        return f"Not shown. It stays what it is while {MASK} stands here."
    bounds = [
        f"{words} {sub[key]}"
        for key, words in (("minimum", "at least"), ("maximum", "at most"))
        if key in sub
    ]
    said = str(sub.get("description", ""))
    return ". ".join(part for part in (said.rstrip("."), ", ".join(bounds).capitalize()) if part)


def _rest(schema: Any, shown: Any, names: Sequence[str]) -> Any:
    """Return what has no field of its own; None where everything has one."""
    if not isinstance(shown, Mapping):
        return shown
    left = {name: value for name, value in shown.items() if name not in names}
    declared = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    more = any(name not in names for name in declared)
    return left if left or more or not names else None


def _in_rest(place: str, rest: Any) -> bool:
    if not isinstance(rest, Mapping):
        return rest is not None
    return any(place == _pointer(name) or place.startswith(f"{_pointer(name)}/") for name in rest)


def read(schema: Any, shown: Any, sent: Mapping[str, str]) -> Any:
    """Return the arguments that were typed. Raises InvalidBody with the places that can't be read."""
    names = plain_members(schema, shown)
    wrong: list[tuple[str, str]] = []
    rest = _rest(schema, shown, names)
    kept = _read_rest(rest, sent, wrong)
    if not isinstance(shown, Mapping):
        _refuse(wrong)
        return kept
    typed: dict[str, Any] = {}
    for place, name in enumerate(names):
        at = f"m{place}"
        text = _lines(sent.get(at, ""))
        if _is_left_out(name, at, text, schema, shown, sent):
            continue
        try:
            typed[name] = _value(text, schema["properties"][name], shown.get(name))
        except ValueError as fault:
            wrong.append((_pointer(name), str(fault)))
    _refuse(wrong)
    # In the order in which they stood: what is new comes last.
    merged = {**(kept or {}), **typed}
    order = [name for name in shown if name in merged]
    made = {name: merged[name] for name in (*order, *(one for one in merged if one not in order))}
    _refuse(jsontext.value_faults(made))
    return made


def _is_left_out(
    name: str,
    at: str,
    text: str,
    schema: Mapping[str, Any],
    shown: Mapping[str, Any],
    sent: Mapping[str, str],
) -> bool:
    if name in schema.get("required", []):
        return False
    if f"{at}-out" in sent:
        return name in shown or not text
    return name not in shown and not text


def _read_rest(rest: Any, sent: Mapping[str, str], wrong: list[tuple[str, str]]) -> Any:
    text = sent.get(REST)
    if rest is None and not (text and text.strip()):
        return None
    if text is None or _lines(text) == _lines(_text_of(rest)):
        return rest
    try:
        read_in = jsontext.parse(text.encode())
    except Problem as fault:
        wrong.append(("", f"This can\u2019t be read as JSON: {said(fault)}"))
        return rest
    if isinstance(rest, Mapping) and not isinstance(read_in, dict):
        wrong.append(("", "This is an object: it begins with { and ends with }."))
    return read_in


def _value(text: str, sub: Mapping[str, Any], before: Any) -> Any:
    """Read one member as its type is declared; a text that says what stood there is what stood."""
    if before is not None and text == _lines(_written(before)):
        return before
    if text == MASK:
        return MASK
    if "enum" in sub:
        return next((one for one in sub["enum"] if _written(one) == text), text)
    kind = sub.get("type")
    if kind == "string":
        return text
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    return _number(text.strip())


def _number(text: str) -> int | float:
    if _NUMBER.fullmatch(text):
        try:
            number: int | float = jsontext.parse(text.encode())
        except Problem as fault:
            raise ValueError(said(fault)) from None
        return number
    raise ValueError("Write a number, such as 12 or 12.5.")


def said(fault: Problem) -> str:
    """Return what is wrong with a text that is no JSON of ours, without its place."""
    return fault.errors[0]["detail"] if fault.errors else fault.detail


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text_of(rest: Any) -> str:
    return json.dumps(rest, ensure_ascii=False, indent=2)


def _lines(text: str) -> str:
    """Return a text with its line breaks as browsers send them made plain again."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _refuse(wrong: list[tuple[str, str]]) -> None:
    if wrong:
        raise InvalidBody(errors=faults(wrong, _PREFIX))
