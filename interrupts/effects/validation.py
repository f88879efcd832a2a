"""What a tool's declaration may say of how it is called: the part of the tenant file that is ours.

Every fault is `(pointer, detail)`; the pointer begins at the tool's own entry.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from config.errors import pointer
from interrupts.effects.declared.shape import check_part
from interrupts.effects.declared.slots import carries_key, named_below, secrets_of
from interrupts.effects.python import NotInstalled, PythonTool, previewing, tool_named
from interrupts.effects.targets import KEY, InvalidUrl, target_of
from interrupts.effects.verifiers import verifier_named
from interrupts.paths import Path

DEFAULT_TIMEOUT: Final = 10
DEFAULT_LEASE: Final = 60
DEFAULT_SETTLE_AFTER: Final = 10
DEFAULT_ATTEMPTS: Final = 5
DEFAULT_BACKOFF: Final = 2
MAX_TIMEOUT: Final = 200
MAX_LEASE: Final = 24 * 3600
MAX_SETTLE_AFTER: Final = 7 * 24 * 3600
MAX_ATTEMPTS: Final = 100
MAX_BACKOFF: Final = 3600
MAX_NAME: Final = 100

Fault = tuple[str, str]
_Check = Callable[[Any], str | None]


def check_effect(declaration: Mapping[str, Any]) -> list[Fault]:
    """Return the faults of a tool's `executor`, `preview`, `reconcile`, `compensate`, `verifier`."""
    executor = declaration.get("executor")
    if not isinstance(executor, Mapping):
        return [("/executor", "An executor is required: an object with its kind.")]
    kind = executor.get("kind")
    if not isinstance(kind, str) or kind not in _EXECUTORS:
        return [("/executor/kind", "The kind is one of http, agent and python.")]
    faults = list(_part("executor", executor, *_EXECUTORS[kind]))
    if declaration.get("verifier") is not None:
        faults += _verifier_faults(declaration["verifier"])
    if kind == "python":
        return faults + list(_python(executor, declaration))
    for part, (required, optional) in _URL_PARTS.items():
        if declaration.get(part) is not None:
            faults += _part(part, declaration[part], required, optional)
    return faults or list(_far_end_faults(declaration))


def declared_parts(declaration: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the parts of a checked declaration that spell out their request, each with its name."""
    for part in ("executor", *_URL_PARTS, "verifier"):
        if (declared := declaration.get(part)) is not None and "request" in declared:
            yield part, declared


def secrets_named(declaration: Mapping[str, Any]) -> list[Fault]:
    """Return each secret that a checked declaration signs in with: its place and its name."""
    return [
        (pointer(part) + place, name)
        for part, declared in declared_parts(declaration)
        for place, name in secrets_of(declared)
    ]


def arguments_named(declaration: Mapping[str, Any]) -> Iterator[tuple[str, Path, bool]]:
    """Yield each argument that declared requests name: place, path, and whether a URL holds it."""
    for part, declared in declared_parts(declaration):
        for place, path, is_url in named_below(part, declared, ("arguments",)):
            yield pointer(part) + place, path, is_url


def judged_in_urls(declaration: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Yield what a declared verifier's URL holds of a result: place and path."""
    for part, declared in declared_parts(declaration):
        for place, path, is_url in named_below(part, declared, ("receipt", "result")):
            if is_url:
                yield pointer(part) + place, path


def _part(
    part: str, value: Any, required: Mapping[str, _Check], optional: Mapping[str, _Check]
) -> Iterator[Fault]:
    """Check a part in our own form, by its URL, or one that declares its request."""
    if not isinstance(value, Mapping) or "request" not in value or "url" not in required:
        yield from _members(part, value, required, optional)
        return
    rest = {name: given for name, given in value.items() if name not in _DECLARED}
    without_url = {name: check for name, check in required.items() if name != "url"}
    yield from _members(part, rest, without_url, optional)
    for place, detail in check_part(part, value):
        yield pointer(part) + place, detail


def _far_end_faults(declaration: Mapping[str, Any]) -> Iterator[Fault]:
    """Check what a declared call promises against what it sends."""
    executor = declaration["executor"]
    if "request" not in executor:
        return
    if executor["request"].get("method") == "GET" and declaration.get("effect") != "read":
        yield "/executor/request/method", "A GET is for tools whose effect is read."
    if declaration.get("key_lifetime") and not carries_key("executor", executor):
        yield "/key_lifetime", "The request carries no key that the far end could honour."


def _members(
    part: str, value: Any, required: Mapping[str, _Check], optional: Mapping[str, _Check]
) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield pointer(part), "An object is expected."
        return
    checks = {**required, **optional}
    for name in required:
        if name not in value:
            yield pointer(part, name), "The member is required."
    for name, given in value.items():
        check = checks.get(name)
        if check is None:
            yield pointer(part, name), "No such member is declared here."
        elif detail := check(given):
            yield pointer(part, name), detail


def _python(executor: Mapping[str, Any], declaration: Mapping[str, Any]) -> Iterator[Fault]:
    if declaration.get("compensate") is not None:
        yield "/compensate", "A python tool brings its own; nothing is declared here."
    if declaration.get("preview") is not None:
        yield from _members("preview", declaration["preview"], {}, {"function": _name})
    if declaration.get("reconcile") is not None:
        yield from _members("reconcile", declaration["reconcile"], {}, _ASKING)
    name = executor.get("function", declaration.get("name"))
    if _name(name):
        return
    place = "/executor/function" if "function" in executor else "/executor"
    try:
        tool = tool_named(name)
    except NotInstalled as fault:
        yield place, str(fault)
        return
    yield from _reconcilable(tool, declaration)
    yield from _previewable(name, declaration.get("preview"))


def _reconcilable(tool: PythonTool, declaration: Mapping[str, Any]) -> Iterator[Fault]:
    if declaration.get("reconcile") is not None and tool.reconcile is None:
        yield "/reconcile", "The installed function cannot be asked what became of a call."


def _previewable(tool: str, declared: Any) -> Iterator[Fault]:
    """Check that what is to preview the tool is installed."""
    if not isinstance(declared, Mapping) or not declared.keys() <= {"function"}:
        return
    if "function" in declared and _name(declared["function"]):
        return
    try:
        previewing(tool, declared.get("function"))
    except NotInstalled as fault:
        yield "/preview/function" if "function" in declared else "/preview", str(fault)


def _verifier_faults(declared: Any) -> Iterator[Fault]:
    if not isinstance(declared, Mapping):
        yield "/verifier", "An object is expected."
        return
    kind = declared.get("kind")
    if not isinstance(kind, str) or kind not in _VERIFIERS:
        yield "/verifier/kind", "The kind is one of http and python."
        return
    faults = list(_part("verifier", declared, _VERIFIERS[kind], _JUDGING))
    yield from faults
    if kind == "python" and not faults:
        try:
            verifier_named(declared["function"])
        except NotInstalled as fault:
            yield "/verifier/function", str(fault)


def _url(*, key: bool | None) -> _Check:
    """Check a URL in which `{key}` is required (True), allowed (None) or refused (False)."""

    def check(value: Any) -> str | None:
        if not isinstance(value, str):
            return "A URL is a text."
        rest = value.replace(KEY, "k") if key is not False else value
        if key and KEY not in value:
            return "The URL must hold {key}, where the step's key is put."
        if "{" in rest or "}" in rest:
            return "The only template a URL may hold is {key}, where a step's key belongs."
        try:
            if KEY in value and target_of(rest).authority != _authority_beside(value):
                return "{key} belongs into the path or the query of the URL."
            target_of(rest)
        except InvalidUrl as fault:
            return str(fault)
        return None

    return check


def _authority_beside(value: str) -> str:
    return target_of(value.replace(KEY, "another")).authority


def _number(low: float, high: float, *, above: bool = False) -> _Check:
    bounds = f"{'more than' if above else 'from'} {low:g} {'and at most' if above else 'to'} {high}"

    def check(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            return f"A number is expected, {bounds}."
        within = (low < value if above else low <= value) and value <= high
        return None if within else f"The number must be {bounds}."

    return check


def _count(low: int, high: int) -> _Check:
    def check(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            return f"A whole number from {low} to {high} is expected."
        return None

    return check


def _name(value: Any) -> str | None:
    if not isinstance(value, str) or not value or len(value) > MAX_NAME:
        return f"A name of 1 to {MAX_NAME} characters is expected."
    return None


def _truth(value: Any) -> str | None:
    return None if isinstance(value, bool) else "True or false is expected."


def _given(_value: Any) -> None:
    """The kind itself was looked at first."""


_DECLARED: Final = frozenset({"request", "answer", "outcomes"})
_TIMEOUT = {"timeout": _number(0, MAX_TIMEOUT, above=True)}
_ASKING: dict[str, _Check] = {
    "settle_after": _number(0, MAX_SETTLE_AFTER),
    "attempts": _count(1, MAX_ATTEMPTS),
    "backoff": _number(0, MAX_BACKOFF, above=True),
}
_EXECUTORS: dict[str, tuple[dict[str, _Check], dict[str, _Check]]] = {
    "http": ({"kind": _given, "url": _url(key=False)}, _TIMEOUT),
    "agent": ({"kind": _given}, {"lease": _number(1, MAX_LEASE)}),
    "python": ({"kind": _given}, {"function": _name, **_TIMEOUT}),
}
_URL_PARTS: dict[str, tuple[dict[str, _Check], dict[str, _Check]]] = {
    "preview": ({"url": _url(key=False)}, {}),
    "reconcile": ({"url": _url(key=True)}, _ASKING),
    "compensate": ({"url": _url(key=None)}, {}),
}
_VERIFIERS: dict[str, dict[str, _Check]] = {
    "http": {"kind": _given, "url": _url(key=False)},
    "python": {"kind": _given, "function": _name},
}
_JUDGING: dict[str, _Check] = {
    **_TIMEOUT,
    "attempts": _count(1, MAX_ATTEMPTS),
    "backoff": _number(0, MAX_BACKOFF, above=True),
    "before_next": _truth,
}
