"""The reasons that people choose from when they decide: declared with the policy, by tool if need be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from config.globs import glob_fault, matches_any
from config.jsontext import pointer

Reason = Mapping[str, Any]

DECISIONS: Final = ("approve", "edit", "reject", "request_changes")
MAX_REASONS: Final = 100
MAX_CODE: Final = 50
MAX_REASON_TEXT: Final = 200
MAX_TOOLS: Final = 100
_CODE: Final = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)*", re.ASCII)
_NEEDED: Final = ("code", "text", "decisions")


def offered(reasons: Sequence[Reason], tool: str) -> list[dict[str, Any]]:
    """Return those of a policy's reasons that are for calls of the tool, as a gate keeps them."""
    return [
        {
            "code": one["code"],
            "text": one["text"],
            "decisions": list(one["decisions"]),
            "needs_note": one.get("needs_note", False),
        }
        for one in reasons
        if "tools" not in one or matches_any(one["tools"], tool)
    ]


def told(text: str | None, note: str | None) -> str | None:
    """Return what the agent is told: the chosen reason, and the person's own words behind it."""
    said = note if note and note.strip() else None
    if text is None or said is None:
        return text or said
    return f"{text.rstrip('.')}: {said}"


def reason_faults(reasons: Any) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a policy's `reasons`, each with its pointer."""
    if not isinstance(reasons, list) or len(reasons) > MAX_REASONS:
        yield "", f"A list of at most {MAX_REASONS} reasons stands here."
        return
    codes: set[str] = set()
    for index, reason in enumerate(reasons):
        for place, detail in _reason(reason, codes):
            yield pointer(index) + place, detail


def _reason(reason: Any, codes: set[str]) -> Iterator[tuple[str, str]]:
    if not isinstance(reason, dict):
        yield "", "A reason is an object."
        return
    for member, said in reason.items():
        if member == "code":
            yield from _code(said, codes)
        elif member in _CHECKS:
            yield from ((pointer(member) + at, detail) for at, detail in _CHECKS[member](said))
        else:
            yield pointer(member), f"No such member; there are code, {', '.join(_CHECKS)}."
    missing = [member for member in _NEEDED if member not in reason]
    yield from ((pointer(member), f"A reason says its {member}.") for member in missing)


def _code(code: Any, codes: set[str]) -> Iterator[tuple[str, str]]:
    if not isinstance(code, str) or len(code) > MAX_CODE or _CODE.fullmatch(code) is None:
        yield "/code", f"A code is up to {MAX_CODE} of a-z, 0-9, - and _: wrong-amount."
    elif code in codes:
        yield "/code", "Another reason has this code."
    else:
        codes.add(code)


def _text(text: Any) -> Iterator[tuple[str, str]]:
    is_short = isinstance(text, str) and 1 <= len(text) <= MAX_REASON_TEXT
    if not is_short or not text.isprintable() or not text.strip():
        yield "", f"A text of 1 to {MAX_REASON_TEXT} visible characters stands here."


def _decisions(decisions: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(decisions, list) or not decisions:
        yield "", f"A list of {', '.join(DECISIONS)} stands here."
        return
    for index, one in enumerate(decisions):
        if one not in DECISIONS:
            yield pointer(index), f"A decision is one of {', '.join(DECISIONS)}."
        elif one in decisions[:index]:
            yield pointer(index), "It stands here twice."


def _needs_note(value: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(value, bool):
        yield "", "True or false stands here."


def _tools(tools: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(tools, list) or not 1 <= len(tools) <= MAX_TOOLS:
        yield "", f"A list of 1 to {MAX_TOOLS} globs stands here."
        return
    for index, glob in enumerate(tools):
        if detail := glob_fault(glob):
            yield pointer(index), detail


_CHECKS: Final[Mapping[str, Callable[[Any], Iterator[tuple[str, str]]]]] = {
    "text": _text,
    "decisions": _decisions,
    "needs_note": _needs_note,
    "tools": _tools,
}
