"""Texts with names in braces, split into what is said and what is put in.

`Refund {amount}`, `{customer.email}`, or by pointer where a name holds a dot: `{/a.b}`. `{{` and `}}`
are braces.
"""

import re
from typing import Final

from interrupts.paths import Path, parse_pointer

_TOKEN: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def split(text: str) -> tuple[str | Path, ...]:
    """Split a text into its parts: strings, and the paths it names.

    Raises `ValueError` saying what is wrong.
    """
    parts: list[str | Path] = []
    literal, end = "", 0
    for token in _TOKEN.finditer(text):
        literal += text[end : token.start()]
        end = token.end()
        if token[1] is None:
            literal += _brace(token[0])
        else:
            parts += [literal, _path(token[1])] if literal else [_path(token[1])]
            literal = ""
    literal += text[end:]
    return (*parts, literal) if literal else tuple(parts)


def _brace(token: str) -> str:
    if len(token) == 1:
        raise ValueError("A single brace; write {{ or }} for a brace itself.")
    return token[0]


def _path(name: str) -> Path:
    if name.startswith("/"):
        return parse_pointer(name)
    parts = tuple(name.split("."))
    if not all(part and part == part.strip() for part in parts):
        raise ValueError(f"{{{name}}} is no name of an argument.")
    return parts
