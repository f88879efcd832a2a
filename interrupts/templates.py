"""Texts that the service makes of stored arguments, and arguments with what is sensitive masked.

A template names members in braces: `Refund {amount} of payment {payment}`, `{customer.email}`,
`{lines.0.sku}`, or by pointer where a name holds a dot: `{/a.b}`. `{{` and `}}` are braces. Values
are put in as plain text, once: what they hold is never read as a template, and characters that show
as nothing or reorder the text are written out.
"""

import hashlib
import hmac
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from config.jsontext import canonical
from interrupts.braces import split
from interrupts.paths import (
    MISSING,
    Path,
    look_up,
    overlaps,
    parse_pointer,
    parse_pointers,
    replace,
)
from interrupts.schemas import declares

MASK: Final = "•••"
NOT_GIVEN: Final = "(not given)"
MAX_TEMPLATE: Final = 500
MAX_VALUE: Final = 200
SHORTEST_SECRET: Final = 4  # characters; a shorter one stands in too many words

Fault = tuple[str, str]

_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a made text; `is_value` where it comes from the arguments."""

    text: str
    is_value: bool


class Template:
    """A template split into its texts and the paths it names."""

    __slots__ = ("_parts", "paths")

    def __init__(self, text: str) -> None:
        self._parts = split(text)
        self.paths: tuple[Path, ...] = tuple(p for p in self._parts if isinstance(p, tuple))

    def pieces(self, arguments: Any, sensitive: Iterable[str] = ()) -> list[Piece]:
        """Make the text of `arguments`, told apart by where each stretch comes from."""
        shown = mask(arguments, sensitive)
        return [
            Piece(part, is_value=False)
            if isinstance(part, str)
            else Piece(_shown(shown, part), is_value=True)
            for part in self._parts
        ]

    def render(self, arguments: Any, sensitive: Iterable[str] = ()) -> str:
        """Make the text of `arguments`; values at sensitive paths are masked."""
        return "".join(piece.text for piece in self.pieces(arguments, sensitive))


@lru_cache(maxsize=4096)
def template(text: str) -> Template:
    """Return the template of a text, split once; raises `ValueError` saying what is wrong."""
    return Template(text)


def render(text: str, arguments: Any, sensitive: Iterable[str] = ()) -> str:
    """Make the text of a registered template from stored arguments."""
    return template(text).render(arguments, sensitive)


def check_template(
    text: Any, schema: dict[str, Any], sensitive: Iterable[str] = (), *, is_typed: bool = False
) -> list[Fault]:
    """Return what is wrong with a template for arguments of a checked schema.

    A text that a person must type (`is_typed`) names nothing sensitive: it could not be typed.
    """
    if not isinstance(text, str):
        return [("", "A template is text.")]
    if not text.strip() or len(text) > MAX_TEMPLATE:
        return [("", f"A template has 1 to {MAX_TEMPLATE} characters.")]
    if _visible(text) != text:
        return [("", "A template is one line of visible characters.")]
    try:
        paths = Template(text).paths
    except ValueError as wrong:
        return [("", str(wrong))]
    hidden = parse_pointers(sensitive) if is_typed else ()
    return [("", detail) for path in paths if (detail := _path_fault(path, schema, hidden))]


def _path_fault(path: Path, schema: dict[str, Any], hidden: tuple[Path, ...]) -> str | None:
    name = ".".join(path)
    if not declares(schema, path):
        return f"{{{name}}} names no declared argument."
    if overlaps(path, hidden):
        return f"{{{name}}} is sensitive and cannot be typed."
    return None


def check_sensitive(pointers: Any) -> list[Fault]:
    """Return what is wrong with a tool's list of sensitive paths."""
    if not isinstance(pointers, list):
        return [("", "Sensitive paths are a list of JSON pointers.")]
    found = [(f"/{index}", _pointer_fault(text)) for index, text in enumerate(pointers)]
    return [(place, detail) for place, detail in found if detail]


def _pointer_fault(text: Any) -> str | None:
    if not isinstance(text, str):
        return "A path is a JSON pointer."
    try:
        return None if parse_pointer(text) else "A path names a member, not the whole."
    except ValueError as wrong:
        return str(wrong)


def mask(arguments: Any, sensitive: Iterable[str]) -> Any:
    """Return `arguments` with `•••` in place of each value at a sensitive path."""
    return replace(arguments, parse_pointers(sensitive), lambda _: MASK)


def with_hmac(arguments: Any, sensitive: Iterable[str], key: bytes) -> Any:
    """Return `arguments` with `hmac-sha256:<hex>` in place of each value at a sensitive path.

    Digests that are shown are taken of this: a plain digest of a card number can be guessed.
    """

    def sealed(value: Any) -> str:
        return "hmac-sha256:" + hmac.new(key, canonical(value), hashlib.sha256).hexdigest()

    return replace(arguments, parse_pointers(sensitive), sealed)


def confirms(typed: str, required: str) -> bool:
    """Say whether a person typed the text: case counts, kinds and runs of spaces do not."""
    return _typed_form(typed) == _typed_form(required)


def _typed_form(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def plain_text(value: Any) -> str:
    """Write one value as a line of visible characters, cut at 200."""
    text = value if isinstance(value, str) else canonical(value).decode()
    cut = text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
    return _visible(cut)


def _shown(arguments: Any, path: Path) -> str:
    for length in range(1, len(path) + 1):
        value = look_up(arguments, path[:length])
        if value is MISSING:
            return NOT_GIVEN
        if value == MASK:
            return MASK
    return plain_text(value)


def _visible(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\\u{{{ord(char):x}}}" if unicodedata.category(char) in _INVISIBLE else char
        for char in text
    )


def secrets_of(arguments: Any, sensitive: Sequence[str]) -> tuple[str, ...]:
    """Return the texts at sensitive paths, the longest first, that must not be shown elsewhere."""
    found: set[str] = set()

    def collect(value: Any) -> Any:
        found.update(text for text in _texts(value) if len(text) >= SHORTEST_SECRET)
        return value

    if sensitive:
        replace(arguments, parse_pointers(sensitive), collect)
    return tuple(sorted(found, key=len, reverse=True))


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def concealed(said: Mapping[str, Any], arguments: Any, sensitive: Sequence[str]) -> dict[str, Any]:
    """Return what is said of a call, `{summary, changes, warnings}`, without its sensitive values."""
    secrets = secrets_of(arguments, sensitive)
    return {
        "summary": _conceal(said["summary"], secrets),
        "changes": [
            {name: _conceal(change[name], secrets) for name in ("object", "before", "after")}
            for change in said["changes"]
        ],
        "warnings": _conceal(said["warnings"], secrets),
    }


def _conceal(value: Any, secrets: Sequence[str]) -> Any:
    if not secrets:
        return value
    if isinstance(value, dict):
        return {_conceal(key, secrets): _conceal(one, secrets) for key, one in value.items()}
    if isinstance(value, list):
        return [_conceal(one, secrets) for one in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return MASK if any(secret in str(value) for secret in secrets) else value
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
    return value
