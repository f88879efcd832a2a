"""The graph of a schema's subschemas: what applies to the same value, what to its members."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from config.jsontext import MAX_DEPTH, pointer
from interrupts.paths import Path, parse_pointer

Fault = tuple[str, str]

_SAME_VALUE_ONE: Final = ("not", "if", "then", "else", "propertyNames")
_SAME_VALUE_LIST: Final = ("allOf", "anyOf", "oneOf")
_SAME_VALUE_MAP: Final = ("dependentSchemas", "dependencies")
_EVERY_MEMBER: Final = ("additionalProperties", "items", "contains")
_LEFT_OVER: Final = ("unevaluatedProperties", "unevaluatedItems")
_DEFINITIONS: Final = ("$defs", "definitions")
_NOT_TAKEN: Final = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor")


@dataclass(slots=True)
class Node:
    """One subschema, and the places of those it applies."""

    same_value: list[Path] = field(default_factory=list)
    named: dict[str, Path] = field(default_factory=dict)
    positions: list[Path] = field(default_factory=list)
    every_member: list[Path] = field(default_factory=list)
    weight: int = 1


@dataclass(slots=True)
class Outline:
    """Every subschema by its place, the patterns, and what makes the schema unusable."""

    nodes: dict[Path, Node] = field(default_factory=dict)
    patterns: list[tuple[Path, str]] = field(default_factory=list)
    references: list[tuple[Path, Path]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def fault(self, place: Path, detail: str) -> None:
        self.faults.append((pointer(*place), detail))


def outline(schema: Any) -> Outline:
    """Find every subschema; shapes that the meta-schema refuses are passed over."""
    shape = Outline()
    pending: list[tuple[Path, Any]] = [((), schema)]
    while pending:
        place, sub = pending.pop()
        if isinstance(sub, dict):
            shape.nodes[place] = _node(place, sub, shape)
            pending += _children(place, sub)
        elif isinstance(sub, bool):
            shape.nodes[place] = Node()
    for place, target in shape.references:
        if target in shape.nodes:
            shape.nodes[place].same_value.append(target)
        else:
            shape.fault((*place, "$ref"), "The reference names no subschema here.")
    if not shape.faults:
        _refuse_circles(shape)
    return shape


def _children(place: Path, sub: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    for key in (*_SAME_VALUE_ONE, *_EVERY_MEMBER, *_LEFT_OVER):
        if key in sub:
            yield (*place, key), sub[key]
    for key in (*_SAME_VALUE_LIST, "prefixItems"):
        if isinstance(sub.get(key), list):
            yield from (((*place, key, str(i)), child) for i, child in enumerate(sub[key]))
    for key in (*_SAME_VALUE_MAP, *_DEFINITIONS, "properties", "patternProperties"):
        if isinstance(sub.get(key), dict):
            yield from (((*place, key, name), child) for name, child in sub[key].items())


def _node(place: Path, sub: dict[str, Any], shape: Outline) -> Node:
    node = Node()
    for child, value in _children(place, sub):
        if not isinstance(value, dict | bool):
            continue
        key = child[len(place)]
        if key == "properties":
            node.named[child[-1]] = child
        elif key == "prefixItems":
            node.positions.append(child)
        elif key in (*_EVERY_MEMBER, *_LEFT_OVER, "patternProperties"):
            node.every_member.append(child)
        elif key not in _DEFINITIONS:
            node.same_value.append(child)
    # What is left over is known only after the neighbours were evaluated a second time.
    node.weight = 2 if any(key in sub for key in _LEFT_OVER) else 1
    _note_patterns(place, sub, shape)
    _note_references(place, sub, shape)
    return node


def _note_patterns(place: Path, sub: dict[str, Any], shape: Outline) -> None:
    if isinstance(sub.get("pattern"), str):
        shape.patterns.append(((*place, "pattern"), sub["pattern"]))
    if isinstance(sub.get("patternProperties"), dict):
        names = sub["patternProperties"]
        shape.patterns += [((*place, "patternProperties", name), name) for name in names]


def _note_references(place: Path, sub: dict[str, Any], shape: Outline) -> None:
    for key in _NOT_TAKEN:
        if key in sub:
            shape.fault((*place, key), f"{key} is not taken; use $ref.")
    if place and "$id" in sub:
        shape.fault((*place, "$id"), "Only the schema itself may carry an $id.")
    target = sub.get("$ref")
    if not isinstance(target, str):
        return
    if target != "#" and not target.startswith("#/"):
        shape.fault((*place, "$ref"), "A reference stays in its schema: it begins with #/.")
        return
    try:
        shape.references.append((place, parse_pointer(unquote(target[1:]))))
    except ValueError as wrong:
        shape.fault((*place, "$ref"), str(wrong))


def _refuse_circles(shape: Outline) -> None:
    try:
        in_order(shape)
    except CircularError as circle:
        shape.fault(circle.place, "The schema applies itself to the same value without end.")


class CircularError(Exception):
    """A subschema applies itself to the same value."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.place = place


def in_order(shape: Outline) -> list[Path]:
    """Return the places such that what one applies to the same value comes before it."""
    done: dict[Path, bool] = {}
    order: list[Path] = []
    pending = list(shape.nodes)
    while pending:
        place = pending[-1]
        if done.get(place) is None:
            done[place] = False
            for applied in shape.nodes[place].same_value:
                if done.get(applied) is False:
                    raise CircularError(place)
                if applied not in done:
                    pending.append(applied)
        else:
            pending.pop()
            if not done[place]:
                done[place] = True
                order.append(place)
    return order


def cost_table(shape: Outline, limit: int) -> list[int]:
    """Return, by nesting of a value, how many subschemas at most are evaluated for one of its leaves.

    The count is that of the branches that can apply to one path into the value; it stops at
    `limit` + 1. The last entry holds for every deeper nesting that `config.jsontext` lets in.
    """
    order = in_order(shape)
    table: list[int] = []
    above: dict[Path, int] = dict.fromkeys(order, 0)
    for _ in range(MAX_DEPTH + 1):
        costs: dict[Path, int] = {}
        for place in order:
            costs[place] = min(_cost(shape.nodes[place], costs, above), limit + 1)
        table.append(costs[()])
        if costs == above:
            break
        above = costs
    return table


def _cost(node: Node, here: dict[Path, int], below: dict[Path, int]) -> int:
    one_of = max((below[place] for place in (*node.named.values(), *node.positions)), default=0)
    every = sum(below[place] for place in node.every_member)
    return 1 + node.weight * (sum(here[place] for place in node.same_value) + one_of + every)


def declares(schema: dict[str, Any], path: Path) -> bool:
    """Say whether a checked schema declares a member at `path`, in any of its branches."""
    shape = outline(schema)
    level: set[Path] = {()}
    for part in path:
        level = {
            child
            for place in _applied(shape, level)
            for child in _declared(shape.nodes[place], place, part)
            if schema_at(schema, child) is not False
        }
    return bool(level)


def _applied(shape: Outline, places: set[Path]) -> set[Path]:
    found: set[Path] = set()
    pending = list(places)
    while pending:
        place = pending.pop()
        if place not in found:
            found.add(place)
            pending += shape.nodes[place].same_value
    return found


def _declared(node: Node, place: Path, part: str) -> Iterator[Path]:
    if part in node.named:
        yield node.named[part]
    elif part.isdecimal() and int(part) < len(node.positions):
        yield node.positions[int(part)]
    else:
        kind = "items" if part.isdecimal() else "additionalProperties"
        yield from (child for child in node.every_member if child == (*place, kind))


def schema_at(schema: Any, place: Path) -> Any:
    """Return the subschema at a place of its outline."""
    for part in place:
        schema = schema[int(part)] if isinstance(schema, list) else schema[part]
    return schema
