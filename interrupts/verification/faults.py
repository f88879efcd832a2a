from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not what it was: of which stream, at which entry or row, and how."""

    stream: UUID
    at: str
    what: str

    def __str__(self) -> str:
        return f"{self.stream} {self.at}: {self.what}"


class Broken(Exception):
    """A chain does not hold: nothing can be rebuilt from it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def compare(
    stream: UUID, at: str, stored: Mapping[str, Any], told: Mapping[str, Any]
) -> Iterator[Fault]:
    """Yield each column whose stored value is not what the journal tells of it.

    What the journal does not tell is not compared: no entry can be taken from it unnoticed.
    """
    for name in stored.keys() & told.keys():
        if stored[name] != told[name]:
            yield Fault(stream, at, f"its {name} is {stored[name]}, the journal says {told[name]}")


def unmatched(stream: UUID, noun: str, rows: set[str], told: set[str]) -> Iterator[Fault]:
    """Yield what is in one of rows and journal only."""
    for pk in sorted(told - rows):
        yield Fault(stream, f"{noun} {pk}", "is gone")
    for pk in sorted(rows - told):
        yield Fault(stream, f"{noun} {pk}", "was never recorded")
