"""Putting values into the slots of a declaration.

A text names values in braces; one that is a single name takes the value as it is where the slot
can hold any JSON. What names something that was not given is left out with its slot.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from config.jsontext import canonical
from interrupts.braces import split
from interrupts.effects.exchange import Unsendable
from interrupts.paths import MISSING, Missing, Path, look_up

# Of all that one request puts in: a template that names a value often makes much of little.
MAX_FILLED: Final = 1024 * 1024
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_STEPS: Final = frozenset({".", ".."})

Parts = tuple[str | Path, ...]
parts_of = lru_cache(maxsize=4096)(split)


class Unfillable(Unsendable):
    """The request cannot be formed of these values, and nothing was sent. Quotes none of them."""


class Filler:
    """The values of one request, and how much of them was put in."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._left = MAX_FILLED

    def text(self, template: str) -> str | Missing:
        """Fill a text; MISSING where it names something that was not given, or null."""
        pieces = []
        for part in parts_of(template):
            piece = part if isinstance(part, str) else self._text_of(part)
            if isinstance(piece, Missing):
                return MISSING
            pieces.append(piece)
        return "".join(pieces)

    def structure(self, template: Any) -> Any:
        """Fill a JSON structure member by member; MISSING where nothing of it was given."""
        match template:
            case str():
                return self._any(template)
            case dict():
                filled = ((name, self.structure(child)) for name, child in template.items())
                return {name: value for name, value in filled if value is not MISSING}
            case list():
                items = map(self.structure, template)
                return [value for value in items if value is not MISSING]
            case _:
                return template

    def pairs(self, template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield names with their values as text; a list's name is repeated for each item."""
        for name, said in template.items():
            for child in _as_list(said):
                for item in _as_list(self.structure(child)):
                    if item is not MISSING and item is not None:
                        yield name, _as_text(item, name)

    def path(self, template: str) -> str:
        """Fill the path of a URL: each value stays in its own segment, percent-encoded."""
        segments = (self._segment(segment) for segment in segments_of(template))
        return "/".join(segments)

    def _segment(self, segment: Parts) -> str:
        made = "".join(part if isinstance(part, str) else self._slot(part) for part in segment)
        if made in _STEPS:
            raise Unfillable("A value would lead elsewhere in the path of the URL.")
        return made

    def _slot(self, path: Path) -> str:
        name, text = _name(path), self._text_of(path)
        if isinstance(text, Missing) or not text:
            raise Unfillable(f"{name} is not given, and the path of the URL needs it.")
        # Encoded it is one segment; a far end that decodes too early must not climb either.
        plain = unicodedata.normalize("NFKC", text).replace("\\", "/")
        if _CONTROL.search(text) or not _STEPS.isdisjoint(plain.split("/")):
            raise Unfillable(f"{name} holds what may not stand in the path of a URL.")
        return quote(text, safe="")

    def _any(self, template: str) -> Any:
        parts = parts_of(template)
        if len(parts) == 1 and isinstance(parts[0], tuple):
            return self._value(parts[0])
        return self.text(template)

    def _text_of(self, path: Path) -> str | Missing:
        value = self._value(path)
        return MISSING if value is MISSING or value is None else _as_text(value, _name(path))

    def _value(self, path: Path) -> Any:
        value = look_up(self._values, path)
        if value is not MISSING:
            self._left -= len(value if isinstance(value, str) else canonical(value))
        if self._left < 0:
            raise Unfillable("What is to be sent is larger than 1 MiB.")
        return value


def segments_of(template: str) -> list[Parts]:
    """Split the template of a path at its slashes; those inside braces are names."""
    segments: list[list[str | Path]] = [[]]
    for part in parts_of(template):
        if isinstance(part, tuple):
            segments[-1].append(part)
            continue
        first, *others = part.split("/")
        segments[-1] += [first] if first else []
        segments += [[other] if other else [] for other in others]
    return [tuple(segment) for segment in segments]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _as_text(value: Any, name: str) -> str:
    match value:
        case str():
            return value
        case bool() | int() | float():
            return canonical(value).decode()
        case _:
            raise Unfillable(f"{name} is an object or a list, and its place takes text.")


def _name(path: Path) -> str:
    return ".".join(path)
