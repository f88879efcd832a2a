"""How the answer to a preview is read, wherever it comes from."""

from collections.abc import Mapping
from typing import Any, Final

from interrupts.effects.base import Preview

MAX_FRESH_FOR: Final = 30 * 24 * 3600


class UnreadablePreview(Exception):
    """The answer is no preview; the message says why and quotes nothing."""


def preview_of(value: Mapping[str, Any]) -> Preview:
    """Read `{"summary", "changes", "warnings", "fresh_for"?}`. Raises `UnreadablePreview`.

    Members that are not named here are left out: what cannot be shown must not be digested.
    """
    summary, warnings = value.get("summary"), value.get("warnings", [])
    if not isinstance(summary, str) or not summary:
        raise UnreadablePreview("Its summary is missing or no text.")
    if not isinstance(warnings, list) or not all(isinstance(text, str) for text in warnings):
        raise UnreadablePreview("Its warnings are no list of texts.")
    return Preview(summary, _changes(value.get("changes", [])), warnings, _fresh_for(value))


def _changes(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise UnreadablePreview("Its changes are no list.")
    return [_change(change) for change in value]


def _change(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("object"), str):
        raise UnreadablePreview("A change of it names no object.")
    return {
        "object": value["object"],
        "before": value.get("before"),
        "after": value.get("after"),
    }


def _fresh_for(value: Mapping[str, Any]) -> float | None:
    seconds = value.get("fresh_for")
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise UnreadablePreview("Its fresh_for is no number of seconds.")
    return float(min(seconds, MAX_FRESH_FOR))
