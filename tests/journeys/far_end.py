"""The far end of a scenario's tools: a ledger of what it was asked for, and orders to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.cases.far_end import Outside
from tests.interrupts.effects.far_end import Asked

LEDGERS: Final = frozenset({"effects", "calls", "previews", "compensations"})
MODES: Final[Mapping[str, Callable[[Outside, str], None]]] = {
    "ok": Outside.behaves,
    "lost_response": Outside.loses_the_answer,
    "lost_request": Outside.loses_the_request,
    "refuse": Outside.refuses,
    "busy": Outside.is_busy,
}


def far_end() -> Outside:
    """One that previews every tool as what changes nothing."""
    unchanged = {"summary": "as asked", "changes": [], "warnings": []}
    return Outside(previews=defaultdict(lambda: unchanged))


def ledger(outside: Outside) -> dict[str, list[dict[str, Any]]]:
    """`effects` and `compensations` are what was done, `calls` and `previews` what was asked for."""
    return {
        "effects": [
            {"name": name, "key": key, "body": {"tool": name, "arguments": arguments}}
            for name, key, arguments in outside.performed
        ],
        "compensations": [{"name": name, "key": key} for name, key in outside.undone],
        "calls": _posted(outside, "effects"),
        "previews": _posted(outside, "preview"),
    }


def _posted(outside: Outside, kind: str) -> list[dict[str, Any]]:
    return [
        {"name": parts[1], "key": one.headers.get("idempotency-key"), "body": one.json()}
        for one in outside.server.asked
        if one.method == "POST" and len(parts := _parts(one)) == 2 and parts[0] == kind
    ]


def _parts(asked: Asked) -> list[str]:
    return asked.path.strip("/").split("/")


def order(outside: Outside, control: Mapping[str, Any]) -> None:
    """Have a tool behave so from now on."""
    name = control["name"]
    MODES[control.get("mode", "ok")](outside, name)
    if "preview_body" in control:
        outside.previews[name] = control["preview_body"]
