"""The texts of a declared request that values are put into, and what each may name."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from config.errors import pointer
from interrupts.effects.declared.filling import parts_of
from interrupts.paths import Path, parse_pointer

Fault = tuple[str, str]


class Named(NamedTuple):
    """What may be named in a part: alone, or with members below."""

    alone: frozenset[str]
    below: frozenset[str]


_BARE: Final = frozenset({"run", "step", "tenant"})
_NAMED: Final[Mapping[str, Named]] = {
    "executor": Named(_BARE | {"key"}, frozenset({"arguments"})),
    "preview": Named(_BARE, frozenset({"arguments"})),
    "reconcile": Named(_BARE | {"key"}, frozenset({"arguments"})),
    "compensate": Named(
        _BARE | {"key", "compensation_key", "external_id"},
        frozenset({"arguments", "result"}),
    ),
    "verifier": Named(_BARE | {"key", "tool", "tool_version"}, frozenset({"arguments", "receipt"})),
}
_OBJECTS: Final = frozenset({"arguments", "receipt"})
_JUDGED: Final = frozenset({"arguments", "receipt", "key", "step"})
_OWN: Final = frozenset({("key",), ("step",), ("compensation_key",)})


class Slot(NamedTuple):
    """A text of a declaration that values are put into."""

    place: str
    text: str
    named: Named
    takes_any: bool = False  # any JSON, where the text is one name alone
    is_url: bool = False


def place_fault(said: Any) -> str | None:
    """Return why this is no JSON pointer; None where it is one."""
    if not isinstance(said, str):
        return "A JSON pointer into the answer is expected."
    try:
        parse_pointer(said)
    except ValueError as wrong:
        return str(wrong)
    return None


def slots_of(part: str, declared: Mapping[str, Any]) -> Iterator[Slot]:
    """Yield every text of a part that values are put into; the part's shape was checked."""
    named = _NAMED[part]
    yield from _request_slots(declared.get("request", {}), named)
    for index, rule in enumerate(declared.get("outcomes", ())):
        for place, text in _texts(rule.get("where", {}), pointer("outcomes", index, "where")):
            yield Slot(place, text, named)
    if part == "preview":
        shown = named._replace(below=named.below | {"answer"})
        for place, text in _texts(declared.get("answer", {}), "/answer"):
            yield Slot(place, text, shown, takes_any=True)


def _request_slots(request: Mapping[str, Any], named: Named) -> Iterator[Slot]:
    if "url" in request:
        yield Slot("/request/url", request["url"].partition("://")[2], named, is_url=True)
    for member in ("query", "form", "json"):
        for place, text in _texts(request.get(member), pointer("request", member)):
            yield Slot(place, text, named, takes_any=member == "json", is_url=member == "query")
    for name, said in request.get("headers", {}).items():
        if isinstance(said, str):
            yield Slot(pointer("request", "headers", name), said, named)


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield place, value
        case dict():
            for name, child in value.items():
                yield from _texts(child, place + pointer(name))
        case list():
            for index, child in enumerate(value):
                yield from _texts(child, place + pointer(index))


def paths_in(text: str) -> list[Path]:
    return [path for path in parts_of(text) if not isinstance(path, str)]


def slot_faults(part: str, declared: Mapping[str, Any]) -> Iterator[Fault]:
    for slot in slots_of(part, declared):
        try:
            paths = paths_in(slot.text)
        except ValueError as wrong:
            yield slot.place, str(wrong)
            continue
        for path in paths:
            if detail := _path_detail(slot, path):
                yield slot.place, detail


def _path_detail(slot: Slot, path: Path) -> str | None:
    alone, below = slot.named
    if not path or (path[0] not in below and path not in {(name,) for name in alone}):
        told = ", ".join([*sorted(alone), *(f"{name}.…" for name in sorted(below))])
        return f"{{{'.'.join(path)}}} is nothing that stands here; there are {told}."
    if len(path) == 1 and path[0] in _OBJECTS and not slot.takes_any:
        return f"{{{path[0]}}} is an object, and its place takes text."
    return None


def named_below(
    part: str, declared: Mapping[str, Any], root: Path
) -> Iterator[tuple[str, Path, bool]]:
    """Yield each value below `root` that a checked part names: place, path from there, is it a URL's."""
    for slot in slots_of(part, declared):
        for path in paths_in(slot.text):
            if path[: len(root)] == root:
                yield slot.place, path[len(root) :], slot.is_url


def names_what_is_judged(declared: Mapping[str, Any]) -> bool:
    """Say whether a verifier's request says what is to be judged: anything of the call or receipt."""
    slots = slots_of("verifier", {"request": declared["request"]})
    return any(path[0] in _JUDGED for slot in slots for path in paths_in(slot.text))


def secrets_of(declared: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield each secret that a checked part names: place and name."""
    for name, said in declared["request"].get("headers", {}).items():
        if isinstance(said, Mapping):
            yield pointer("request", "headers", name), said["secret"]


def carries_key(part: str, declared: Mapping[str, Any]) -> bool:
    """Say whether a checked part sends the call's idempotency key at all."""
    request = declared["request"]
    if request.get("idempotency_header", "") is not None and request.get("method") != "GET":
        return True
    return names_the_call(part, {"request": request})


def names_the_call(part: str, declared: Mapping[str, Any]) -> bool:
    """Say whether a text of the part names the call by what is its own: its key or its step."""
    slots = slots_of(part, declared)
    return any(path in _OWN for slot in slots for path in paths_in(slot.text))
