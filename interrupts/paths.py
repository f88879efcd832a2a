"""Paths into arguments: JSON pointers in which `*` stands for every key and index."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

EVERY: Final = "*"
MAX_PARTS: Final = 64

Path = tuple[str, ...]
Replacement = Callable[[Any], Any]


class Missing:
    """What stands at a path that leads nowhere."""


MISSING: Final = Missing()


@lru_cache(maxsize=4096)
def parse_pointer(text: str) -> Path:
    """Split an RFC 6901 pointer into its parts; raises `ValueError` saying what is wrong."""
    if not text:
        return ()
    if not text.startswith("/"):
        raise ValueError("A pointer begins with /.")
    if text.count("~") != text.count("~0") + text.count("~1"):
        raise ValueError("In a pointer ~ is written ~0.")
    parts = tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))
    if len(parts) > MAX_PARTS:
        raise ValueError(f"A pointer has at most {MAX_PARTS} parts.")
    return parts


def parse_pointers(texts: Iterable[str]) -> tuple[Path, ...]:
    """Split each pointer of a list."""
    return tuple(parse_pointer(text) for text in texts)


def covered(path: Sequence[str | int], patterns: Iterable[Path]) -> int | None:
    """Return how many parts of `path` lead to the highest place a pattern names, if one does."""
    lengths = [
        len(pattern)
        for pattern in patterns
        if len(pattern) <= len(path)
        and all(want in (EVERY, str(have)) for want, have in zip(pattern, path, strict=False))
    ]
    return min(lengths, default=None)


def overlaps(path: Path, patterns: Iterable[Path]) -> bool:
    """Say whether a pattern names `path`, something above it or something below it."""
    return any(
        all(
            want == have or EVERY in (want, have) for want, have in zip(pattern, path, strict=False)
        )
        for pattern in patterns
    )


def replace(value: Any, patterns: Iterable[Path], make: Replacement) -> Any:
    """Return `value` with `make(what was there)` at each place that a pattern names.

    The value itself stays as it is; what no pattern reaches is shared with it.
    """
    left = list(patterns)
    if not left:
        return value
    if any(not pattern for pattern in left):
        return make(value)
    if isinstance(value, dict):
        return {key: replace(child, _below(left, key), make) for key, child in value.items()}
    if isinstance(value, list):
        return [replace(child, _below(left, str(index)), make) for index, child in enumerate(value)]
    return value


def _below(patterns: Iterable[Path], key: str) -> list[Path]:
    return [pattern[1:] for pattern in patterns if pattern[0] in (EVERY, key)]


def look_up(value: Any, path: Path) -> Any:
    """Return what stands at `path` in `value`, or `MISSING`."""
    for part in path:
        if isinstance(value, dict):
            value = value.get(part, MISSING)
        elif isinstance(value, list) and part.isdecimal() and part.isascii():
            value = value[int(part)] if len(part) < 9 and int(part) < len(value) else MISSING
        else:
            return MISSING
    return value
