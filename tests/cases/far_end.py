"""The outside systems of the cases: one server that performs, counts, and breaks as it is told."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from socket import socket
from typing import Any

from tests.interrupts.effects.far_end import Asked, Behaviour, FarEnd, answering, resetting

HELD_SECONDS = 240  # a killed service is up again by then, also on a machine that has much to do


@dataclass
class Outside:
    """A far end with a ledger of what it performed; nothing is deduplicated but compensations."""

    server: FarEnd = field(default_factory=FarEnd)
    performed: list[tuple[str, str, Any]] = field(default_factory=list)  # tool, key, arguments
    undone: list[tuple[str, str]] = field(default_factory=list)
    undo_calls: int = 0
    previews: dict[str, Any] = field(default_factory=dict)
    behaviour: dict[str, Behaviour] = field(default_factory=dict)
    arrived: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.server.behave = self._serve

    def close(self) -> None:
        self.let_go.set()
        self.server.close()

    def calls(self, tool: str) -> list[tuple[str, Any]]:
        """(key, arguments) of each time the tool did what it does."""
        return [(key, arguments) for name, key, arguments in self.performed if name == tool]

    def keys_sent(self, tool: str) -> list[str]:
        """The idempotency key of every request for the tool, performed or not."""
        path = f"/effects/{tool}"
        return [
            one.headers["idempotency-key"]
            for one in self.server.asked
            if (one.method, one.path) == ("POST", path)
        ]

    # How a tool may behave

    def loses_the_answer(self, tool: str) -> None:
        self.behaviour[tool] = self._lose

    def loses_the_request(self, tool: str) -> None:
        self.behaviour[tool] = resetting

    def refuses(self, tool: str) -> None:
        self.behaviour[tool] = answering(422, {"error": "refused"})

    def is_busy(self, tool: str) -> None:
        self.behaviour[tool] = answering(429, {})

    def takes_its_time(self, tool: str) -> None:
        """Perform once the test lets it go."""
        self.behaviour[tool] = self._hold

    def says(self, tool: str, raw: bytes) -> None:
        """Perform, and answer with these bytes."""

        def behave(connection: socket, asked: Asked) -> None:
            self._perform(asked)
            answering(200, raw)(connection, asked)

        self.behaviour[tool] = behave

    def behaves(self, tool: str) -> None:
        self.behaviour.pop(tool, None)

    # What it does

    def _serve(self, connection: socket, asked: Asked) -> None:
        parts = asked.path.strip("/").split("/")
        kind, tool = parts[0], parts[1]
        if asked.method == "GET":
            self._asked_about(tool, parts[2], connection, asked)
        elif kind == "preview":
            answering(200, self.previews[tool])(connection, asked)
        elif parts[-1] == "compensate":
            self._undo(tool, connection, asked)
        else:
            self.behaviour.get(tool, self.done)(connection, asked)

    def _perform(self, asked: Asked) -> str:
        body = asked.json()
        with self.lock:
            self.performed.append(
                (body["tool"], asked.headers["idempotency-key"], body["arguments"])
            )
            return f"X-{len(self.performed)}"

    def done(self, connection: socket, asked: Asked) -> None:
        name = self._perform(asked)
        answering(200, {"result": {"done": True}, "external_id": name})(connection, asked)

    def _lose(self, connection: socket, asked: Asked) -> None:
        self._perform(asked)
        resetting(connection, asked)

    def _hold(self, connection: socket, asked: Asked) -> None:
        self.arrived.set()
        assert self.let_go.wait(HELD_SECONDS)
        self.done(connection, asked)

    def _undo(self, tool: str, connection: socket, asked: Asked) -> None:
        with self.lock:
            self.undo_calls += 1
        behave = self.behaviour.get(f"undo {tool}")
        if behave is not None:
            behave(connection, asked)
            return
        with self.lock:
            self.undone.append((tool, asked.headers["idempotency-key"]))
        answering(200, {"result": "undone"})(connection, asked)

    def _asked_about(self, tool: str, key: str, connection: socket, asked: Asked) -> None:
        if behave := self.behaviour.get(f"ask {tool}"):
            behave(connection, asked)
        elif any(key == done for done, _ in self.calls(tool)):
            answering(200, {"outcome": "performed", "external_id": "X-found"})(connection, asked)
        else:
            answering(404, {"outcome": "not_performed"})(connection, asked)

    @property
    def times(self) -> Counter[str]:
        """How often each tool did what it does."""
        return Counter(tool for tool, _, _ in self.performed)
