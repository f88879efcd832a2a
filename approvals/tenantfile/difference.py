"""What an apply changed, for people: a line a thing, a line a member that differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from approvals.tenantfile.applying import Applied
from tenants.changes import Change

MAX_VALUE: Final = 200
_SIGN: Final = {"added": "+", "changed": "~", "removed": "-"}
_ENDED: Final = {
    "agent": "deactivated, its keys are revoked",
    "authority": "may decide nothing",
    "group": "removed",
    "group_authority": "may decide nothing by being in it",
    "member": "deactivated, their tokens are revoked",
    "secret": "removed, what it held is destroyed",
    "tool": "retired",
}


def lines_of(applied: Sequence[Applied]) -> Iterator[str]:
    """Yield the lines that tell every change; none where nothing changed."""
    for one in applied:
        if one.changes:
            yield one.tenant
            for change in one.changes:
                yield from _lines(change)


def summary(applied: Sequence[Applied]) -> str:
    """Return the one line that counts the changes."""
    kinds = [change.kind for one in applied for change in one.changes]
    if not kinds:
        return "no changes"
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in _SIGN)


def _lines(change: Change) -> Iterator[str]:
    noun = change.noun.replace("_", " ")
    head = f"  {_SIGN[change.kind]} {noun} {change.name}"
    if change.kind == "removed":
        yield f"{head}: {_ENDED.get(change.noun, 'removed')}"
        return
    if change.kind == "added":
        told = [f"{name} {_plain(new)}" for name, (_, new) in change.fields.items() if new]
        yield f"{head}: {', '.join(told)}" if told else head
        return
    yield head
    for name, (old, new) in change.fields.items():
        yield f"      {name}: {_plain(old)} -> {_plain(new)}"


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"
