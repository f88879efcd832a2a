"""When a policy began to deny a tool: told by its published versions alone, in their order.

A version begins to deny a tool where it has a rule that denies calls of it and the version before
had none that denies the same of it. What a rule is called, its reason, and what other tools it names
are not what it denies; its condition is, whatever that would have said of any call. There is no
default that denies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from config.globs import matches_any

MAX_TOOLS_KEPT: Final = 10_000
NEVER: Final = 0  # before the first version
_BESIDES: Final = frozenset({"name", "reason", "tools", "then"})
_EVERY: Final = ("*",)
_Denied = Mapping[str, Sequence[str]]  # globs of tools, by what is denied of them


class Denials:
    """The versions that began to deny something; it may be kept for as long as the newest is."""

    __slots__ = ("_began", "_by_tool")

    def __init__(self, versions: Iterable[tuple[int, Sequence[Mapping[str, Any]]]]) -> None:
        """``versions`` are published ones by their numbers, ascending, with their rules that deny."""
        self._began: list[tuple[int, _Denied, _Denied]] = []
        self._by_tool: dict[str, int] = {}
        before: _Denied = {}
        for number, rules in versions:
            denied = _denied(rules)
            if denied and denied != before:
                self._began.append((number, denied, before))
            before = denied

    @property
    def latest(self) -> int:
        """The number of a version after which none began to deny any tool; 0: none ever did."""
        return self._began[-1][0] if self._began else NEVER

    def of(self, tool: str) -> int:
        """Return the number of the newest version that began to deny a tool; 0: none did."""
        found = self._by_tool.get(tool)
        if found is None:
            if len(self._by_tool) >= MAX_TOOLS_KEPT:
                self._by_tool.clear()
            began = (number for number, *said in reversed(self._began) if _begins(tool, *said))
            found = self._by_tool[tool] = next(began, NEVER)
        return found


def _denied(rules: Iterable[Mapping[str, Any]]) -> _Denied:
    found: dict[str, list[str]] = {}
    for rule in rules:
        said = {name: value for name, value in rule.items() if name not in _BESIDES}
        tools = rule.get("tools")
        what = json.dumps(said, sort_keys=True)
        found.setdefault(what, []).extend(_EVERY if tools is None else tools)
    return found


def _begins(tool: str, denied: _Denied, before: _Denied) -> bool:
    return any(
        matches_any(globs, tool) and not matches_any(before.get(what, ()), tool)
        for what, globs in denied.items()
    )
