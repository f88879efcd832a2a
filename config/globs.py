"""Globs over the names of tools: `*` stands for any characters, everything else for itself."""

import re
from collections.abc import Iterable
from typing import Any, Final

MAX_GLOB: Final = 100
_GLOB: Final = re.compile(r"[A-Za-z0-9_.:/*-]+")


def glob_fault(text: Any) -> str | None:
    """Return what is wrong with a glob; None: it can be used."""
    if not isinstance(text, str) or not text:
        return "A glob is the name of a tool, in which * stands for any characters."
    if len(text) > MAX_GLOB:
        return f"A glob has at most {MAX_GLOB} characters."
    if not _GLOB.fullmatch(text):
        return "A glob holds letters, digits, _ . : / - and *; no other pattern is taken."
    if "**" in text:
        return "** says no more than *."
    return None


def matches(glob: str, name: str) -> bool:
    """Say whether a glob matches a whole name; case counts."""
    first, *rest = glob.split("*")
    if not rest:
        return glob == name
    *middle, last = rest
    if len(name) < len(first) + len(last):
        return False
    if not (name.startswith(first) and name.endswith(last)):
        return False
    # What stands between two stars is found where it comes first: no glob takes long.
    place, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return True


def matches_any(globs: Iterable[str], name: str) -> bool:
    """Say whether one of the globs matches a whole name."""
    return any(matches(glob, name) for glob in globs)


def overlap(one: str, other: str) -> bool:
    """Say whether some name is matched by both globs."""
    if "*" not in one:
        return matches(other, one)
    if "*" not in other:
        return matches(one, other)
    # Between what both begin and end with, the stars take the parts of one, then of the other.
    starts = one.partition("*")[0], other.partition("*")[0]
    ends = one.rpartition("*")[2], other.rpartition("*")[2]
    longer_start, longer_end = max(starts, key=len), max(ends, key=len)
    return all(map(longer_start.startswith, starts)) and all(map(longer_end.endswith, ends))
