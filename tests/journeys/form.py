"""The form of a scenario: whatever is not of it is refused before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.journeys.far_end import LEDGERS, MODES
from tests.journeys.matching import EXISTS, OPERATORS

HERE: Final = Path(__file__).parent
TENANT: Final = "tenant.json"

Step = Mapping[str, Any]


class Malformed(Exception):
    """A scenario is not of the form; the text says where and what."""


_SENT: Final = frozenset({"as", "method", "path", "body", "raw", "headers"})
REQUEST: Final = _SENT | {"status", "expect", "expect_headers", "save"}
VERBS: Final[Mapping[str, frozenset[str]]] = {
    "path": REQUEST,
    "until": frozenset({"until", "timeout"}),
    "parallel": frozenset({"parallel", "count", "statuses"}),
    "apply": frozenset({"apply"}),
    "control": frozenset({"control"}),
    "ledger": frozenset({"ledger", "save"}),
    "until_ledger": frozenset({"until_ledger", "timeout"}),
    "mails": frozenset({"mails"}),
    "until_mails": frozenset({"until_mails", "timeout"}),
    "either": frozenset({"either"}),
    "sleep": frozenset({"sleep"}),
}
"""By the member that makes a step what it is, all that it may have."""

SCENARIO: Final = frozenset({"id", "title", "steps", "policy", "tools", "tenant"})
CHANGED: Final = frozenset({"policy", "members", "groups"})
NEEDED: Final = frozenset({"id", "title", "steps"})


def scenarios(folder: Path = HERE) -> list[dict[str, Any]]:
    """Read every scenario of a folder. Raises Malformed, also where two have one id."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(folder.glob("*.json")):
        for one in [] if file.name == TENANT else json.loads(file.read_text()):
            ensure_of_form(one)
            if found.setdefault(one["id"], one) is not one:
                raise Malformed(f"{file.name}: {one['id']}: there are two of this id")
    return list(found.values())


def ensure_of_form(scenario: Mapping[str, Any]) -> None:
    """Raises Malformed."""
    place = str(scenario.get("id", "a scenario without an id"))
    _only(scenario, SCENARIO, place)
    if missing := NEEDED - set(scenario):
        raise Malformed(f"{place}: without {sorted(missing)}")
    _steps(scenario["steps"], place)


def verb_of(step: Step, place: str = "a step") -> str:
    verbs = [verb for verb in VERBS if verb in step]
    if len(verbs) != 1:
        raise Malformed(f"{place}: unknown verb: {sorted(step)}")
    return verbs[0]


def _steps(steps: list[Step], place: str) -> None:
    for number, step in enumerate(steps, 1):
        here = f"{place}: step {number}"
        verb = verb_of(step, here)
        _only(step, VERBS[verb], here)
        if inside := _INSIDE.get(verb):
            inside(step, here)


def _only(found: Mapping[str, Any], allowed: frozenset[str], place: str) -> None:
    if unknown := set(found) - allowed:
        raise Malformed(f"{place}: unknown {sorted(unknown)}")


def _request(step: Step, place: str) -> None:
    if verb_of(step, place) != "path":
        raise Malformed(f"{place}: not a request: {sorted(step)}")
    _only(step, REQUEST, place)
    for name in ("expect", "expect_headers"):
        _expected(step.get(name, {}), place)


def _parallel(step: Step, place: str) -> None:
    many = step["parallel"]
    for one in many if isinstance(many, list) else [many]:
        _request(one, place)
    if isinstance(many, list) is ("count" in step) or "statuses" not in step:
        raise Malformed(f"{place}: parallel has statuses, and a count unless it is a list")
    _expected(step["statuses"], place)


def _ledger(wanted: Mapping[str, Any], place: str) -> None:
    for path in wanted:
        if path.split(".")[0] not in LEDGERS:
            raise Malformed(f"{place}: unknown ledger {path!r}: there are {sorted(LEDGERS)}")
    _expected(wanted, place)


def _control(step: Step, place: str) -> None:
    order = step["control"]
    _only(order, frozenset({"name", "mode", "preview_body"}), place)
    if order.get("mode", "ok") not in MODES:
        raise Malformed(f"{place}: unknown mode {order['mode']!r}: there are {sorted(MODES)}")


def _either(step: Step, place: str) -> None:
    for steps in step["either"]:
        _steps(steps, place)


def _expected(wanted: Mapping[str, Any], place: str) -> None:
    for operator in (name for value in wanted.values() for name in _operators(value)):
        if operator not in OPERATORS and operator not in (EXISTS, "$repeat"):
            raise Malformed(f"{place}: unknown operator {operator}")


def _operators(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (name for name in value if name.startswith("$") and not name.startswith("${"))
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _operators(one)


_INSIDE: Final[Mapping[str, Callable[[Step, str], None]]] = {
    "path": _request,
    "until": lambda step, place: _request(step["until"], place),
    "parallel": _parallel,
    "apply": lambda step, place: _only(step["apply"], CHANGED, place),
    "control": _control,
    "ledger": lambda step, place: _ledger(step["ledger"], place),
    "until_ledger": lambda step, place: _ledger(step["until_ledger"], place),
    "mails": lambda step, place: _expected(step["mails"], place),
    "until_mails": lambda step, place: _expected(step["until_mails"], place),
    "either": _either,
}
