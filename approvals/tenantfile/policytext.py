"""A policy as people write it in the admin: YAML, or JSON, each fault shown at its line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import yaml

from approvals.tenantfile.reading import Loader, UnreadableFile, parse_documents
from config.errors import Problem
from config.jsontext import parse

MAX_SHOWN: Final = 80  # characters of a line
_NAME: Final = "The policy"


def write(document: Any) -> str:
    """Write a policy as YAML, its members in their order; read again it is the same."""
    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=100)


def read(text: str) -> Any:
    """Read a policy; what begins with a brace as the strict JSON that the API takes.

    Raises UnreadableFile. An alias is refused: a few of them unfold to more than anybody reads.
    """
    if text.lstrip().startswith("{"):
        return _as_json(text)
    _refuse_aliases(text)
    documents = parse_documents(text.encode(), _NAME)
    if len(documents) > 1:
        raise UnreadableFile(f"{_NAME}: one document stands here.")
    return documents[0]


def _as_json(text: str) -> Any:
    try:
        return parse(text.encode())
    except Problem as fault:
        told = [one["detail"] for one in fault.errors] or [fault.detail or fault.title]
        raise UnreadableFile(*told) from None


def _refuse_aliases(text: str) -> None:
    try:
        for event in yaml.parse(text, Loader):
            if isinstance(event, yaml.AliasEvent):
                mark = event.start_mark
                line = 1 if mark is None else mark.line + 1
                raise UnreadableFile(f"{_NAME}, line {line}: write it out in place of an alias.")
    except yaml.YAMLError:
        return  # is told as it is read


def with_lines(text: str, faults: Iterable[tuple[str, str]]) -> list[str]:
    """Tell each fault with its pointer, and with the line of the text where that stands."""
    root, lines = _composed(text), text.splitlines()
    return [_told(root, lines, place, detail) for place, detail in faults]


def _composed(text: str) -> yaml.Node | None:
    try:
        found: yaml.Node | None = yaml.compose(text, Loader)
    except yaml.YAMLError:
        return None  # JSON that is no YAML: it has its pointers
    return found


def _told(root: yaml.Node | None, lines: list[str], place: str, detail: str) -> str:
    said = f"{place or '/'}: {detail}"
    if root is None:
        return said
    number = _line_of(root, place)
    shown = lines[number].strip() if number < len(lines) else ""
    short = f"{shown[:MAX_SHOWN]}…" if len(shown) > MAX_SHOWN else shown
    return f"Line {number + 1}, “{short}”: {said}"


def _line_of(root: yaml.Node, place: str) -> int:
    """Return the line, from 0, of what the pointer names, or of what it is missing in."""
    node, line = root, root.start_mark.line
    for part in place.split("/")[1:]:
        found = _below(node, part.replace("~1", "/").replace("~0", "~"))
        if found is None:
            break
        node, line = found
    return int(line)


def _below(node: yaml.Node, part: str) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        named = ((key, value) for key, value in node.value if key.value == part)
        return next(((value, key.start_mark.line) for key, value in named), None)
    if isinstance(node, yaml.SequenceNode) and part.isdecimal() and int(part) < len(node.value):
        item = node.value[int(part)]
        return item, item.start_mark.line
    return None
