"""Edited arguments as a person sends them, who was shown sensitive values masked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from config.errors import pointer
from interrupts.paths import EVERY, MISSING, Path, parse_pointers, replace
from interrupts.templates import MASK


def unmasked(sent: Any, shown: Any, sensitive: Iterable[str]) -> tuple[Any, list[str]]:
    """Return ``sent`` with each masked value as it is in ``shown``, and where there is none.

    In a list a mask stands for a value only where nothing of the list was changed: which item it
    belonged to could not be told otherwise.
    """
    lost: list[str] = []
    return _restored(sent, shown, list(parse_pointers(sensitive)), "", lost), lost


def _restored(sent: Any, shown: Any, patterns: list[Path], at: str, lost: list[str]) -> Any:
    if any(not pattern for pattern in patterns):
        return _behind_mask(shown, at, lost) if sent == MASK else sent
    if patterns and isinstance(sent, dict):
        known = shown if isinstance(shown, dict) else {}
        return {
            key: _restored(
                value, known.get(key, MISSING), _below(patterns, key), at + pointer(key), lost
            )
            for key, value in sent.items()
        }
    if patterns and isinstance(sent, list):
        same = isinstance(shown, list) and replace(shown, patterns, lambda _: MASK) == sent
        known_items = shown if same else [MISSING] * len(sent)
        return [
            _restored(
                value, known_items[index], _below(patterns, str(index)), f"{at}/{index}", lost
            )
            for index, value in enumerate(sent)
        ]
    return sent


def _behind_mask(shown: Any, at: str, lost: list[str]) -> Any:
    if shown is MISSING:
        lost.append(at)
        return MASK
    return shown


def _below(patterns: Iterable[Path], key: str) -> list[Path]:
    return [pattern[1:] for pattern in patterns if pattern[0] in (EVERY, key)]
