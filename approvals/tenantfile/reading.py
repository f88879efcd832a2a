"""YAML as this service reads it: nothing said twice, nothing but what JSON can say."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Final

import yaml

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # PyYAML without libyaml reads the same, slower
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

from config.jsontext import value_faults

_BOOLEAN: Final = "tag:yaml.org,2002:bool"
MAX_BYTES: Final = 16 * 1024 * 1024


class UnreadableFile(Exception):
    """The file is no tenant file; each of ``faults`` is one line."""

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))


# Numbers that YAML 1.1 reads otherwise than they look: 0600 is 384, and 1:30 is 90.
_NUMBERS: Final = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_MISREAD: Final = re.compile(r"[-+]?0[0-9_]|.*:")


class Loader(_SafeLoader):
    """Refuses a mapping that says a key twice, and a scalar that is not what it seems to be.

    `on` and `off` are texts, as YAML 1.2 has them.
    """

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's signature
        if node.tag in _NUMBERS and _MISREAD.match(str(node.value)):
            raise _refusal(node, f"write {node.value} as plain digits, or quote it")
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, LookupError, AttributeError) as fault:  # what PyYAML lets through
            raise _refusal(
                node, "this is no value of its kind; quote it to make it text"
            ) from fault

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is there twice", key_node.start_mark
                )
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep)


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != _BOOLEAN]
    for first, found in _SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    _BOOLEAN,
    re.compile("(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE)$"),
    list("yYnNtTfF"),
)


def _refusal(node: yaml.Node, said: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, said, node.start_mark)


def read_documents(path: Path) -> list[Any]:
    """Return the file's documents, in order; empty ones are left out.

    Raises UnreadableFile with the line of what is wrong, or the path of what JSON cannot say.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as fault:
        raise UnreadableFile(f"{path}: {fault.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise UnreadableFile(f"{path}: larger than {MAX_BYTES} bytes")
    return parse_documents(raw, str(path))


def parse_documents(raw: bytes, name: str) -> list[Any]:
    """Return the documents of a text; see `read_documents`."""
    try:
        text = raw.decode("utf-8-sig")
        documents = [one for one in yaml.load_all(text, Loader) if one is not None]
    except UnicodeDecodeError as fault:
        raise UnreadableFile(f"{name}: not UTF-8 at byte {fault.start}") from None
    except yaml.MarkedYAMLError as fault:
        raise UnreadableFile(f"{name}: {_said(fault)}") from None
    except yaml.YAMLError as fault:
        raise UnreadableFile(f"{name}: {' '.join(str(fault).split())}") from None
    except RecursionError:
        raise UnreadableFile(f"{name}: nested too deep") from None
    if not documents:
        raise UnreadableFile(f"{name}: holds no document")
    if faults := [
        f"{label(document, number)}: {place.lstrip('/') or 'document'}: {detail}"
        for number, document in enumerate(documents, 1)
        for place, detail in value_faults(document)
    ]:
        raise UnreadableFile(*faults)
    return documents


def label(document: Any, number: int) -> str:
    """Return what a document is called in messages: its tenant, or its place in the file."""
    slug = document.get("tenant") if isinstance(document, dict) else None
    return slug if isinstance(slug, str) and slug.isprintable() else f"document {number}"


def _said(fault: yaml.MarkedYAMLError) -> str:
    said = fault.problem or fault.context or "not YAML"
    if (mark := fault.problem_mark or fault.context_mark) is not None:
        return f"line {mark.line + 1}, column {mark.column + 1}: {said}"
    return said
