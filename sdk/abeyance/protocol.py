"""How flows ask for what only a connection can do, so that each is written once for both kinds.

A flow is a generator that yields a `Request`, a `Sleep` or `Now`, and is sent what came of it. It
knows no socket, no thread and no event loop; `connections` runs it with or without `await`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the API, from its base path on."""

    method: str
    path: str
    query: Mapping[str, str | int | float] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `document` is None where the body is no JSON object."""

    status: int
    headers: Mapping[str, str]
    document: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer came back; whether the request was taken is not known."""

    fault: Exception


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float


@dataclass(frozen=True, slots=True)
class Now:
    """The connection's own clock, in seconds, which only ever goes forward."""


Command = Request | Sleep | Now
Flow = Generator[Command, Any, T]


def send(request: Request) -> Flow[Answer | Lost]:
    came: Answer | Lost = yield request
    return came


def sleep(seconds: float) -> Flow[None]:
    yield Sleep(seconds)


def now() -> Flow[float]:
    moment: float = yield Now()
    return moment
