"""A far end in the checker's own process: it counts what it performs, and breaks in every way.

It deduplicates nothing but what is sent under a key that it said it would, so that a call that is
sent twice without need shows in the ledger. It never lies: what it says did not happen does not
happen later either, since no request is performed that is older than LANDS_WITHIN_SECONDS.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

# Counted from the second in which the request was signed. The tools' timeout and settle_after add
# up to as much (tests/chaos/tenant.py), so nobody asks while a call may still land.
LANDS_WITHIN_SECONDS = 3.0
SLOW_SECONDS, LATE_SECONDS, HANG_SECONDS = 0.4, 1.4, 2.5
DEDUPLICATED = frozenset({"tell"})

Ways = Mapping[str, float]
EXECUTE: Ways = {
    "ok": 9, "slow": 1, "late": 1, "lost_response": 1, "lost_request": 1, "error_after": 1,
    "error_before": 1, "refuse": 0.5, "busy": 1, "conflict": 1, "garbage": 1, "kill_after": 1,
    "kill_before": 1, "hang": 0.5,
}  # fmt: skip
ASK: Ways = {
    "ok": 6, "down": 1, "pending": 1, "failed": 1, "wrong_route": 1, "hang": 0.5, "kill_before": 1,
}  # fmt: skip
UNDO: Ways = {"ok": 4, "down": 1, "lost": 1, "kill_before": 1, "kill_after": 1}
PREVIEW: Ways = {"ok": 5, "down": 1, "hang": 0.5, "kill_before": 1}
WAYS: Mapping[str, Ways] = {"execute": EXECUTE, "ask": ASK, "undo": UNDO, "preview": PREVIEW}


def cards(ways: Ways) -> list[str]:
    """Return each way as often as it weighs beside the others, the lightest once."""
    least = min(ways.values())
    return [way for way, weight in ways.items() for _ in range(round(weight / least))]


class Effect(NamedTuple):
    """An effect as the far end knows it: what, and under which idempotency key."""

    name: str
    key: str


class Ledger:
    """What the far end did."""

    def __init__(self, seed: int) -> None:
        self.lock = threading.RLock()
        self.dice = random.Random(seed)  # noqa: S311
        self.performed: Counter[Effect] = Counter()
        self.calls: dict[Effect, tuple[str, ...]] = {}  # whose call it is, as the agent names it
        self.undone: dict[Effect, Counter[str]] = defaultdict(Counter)
        self.refused: set[Effect] = set()
        self.ways: Counter[str] = Counter()
        self.decks: dict[str, list[str]] = defaultdict(list)
        self.kills = 0
        self.calm = False

    def way(self, of: str) -> str:
        """Draw how the next request of this kind goes; of what is rare each way comes too."""
        with self.lock:
            if not self.decks[of]:
                self.decks[of] = cards(WAYS[of])
                self.dice.shuffle(self.decks[of])
            way = "ok" if self.calm else self.decks[of].pop()
            self.ways[f"{of} {way}"] += 1
            return way

    def perform(self, effect: Effect, whose: tuple[str, ...], signed_at: float) -> bool:
        with self.lock:
            if effect in self.refused or time.time() - signed_at >= LANDS_WITHIN_SECONDS:
                return False
            if not (effect.name in DEDUPLICATED and self.performed[effect]):
                self.performed[effect] += 1
                self.calls[effect] = whose
            return True

    def undo(self, effect: Effect, key: str) -> None:
        """Compensations are deduplicated by their key, as a tool that declares one promises."""
        with self.lock:
            self.undone[effect][key] = 1

    def happened(self, effect: Effect) -> bool:
        with self.lock:
            return self.performed[effect] > 0

    def rule_out(self, effect: Effect) -> bool:
        """Say whether it was performed; if it was not, it never will be."""
        with self.lock:
            if not self.performed[effect]:
                self.refused.add(effect)
            return self.performed[effect] > 0

    @property
    def effects(self) -> int:
        with self.lock:
            return sum(self.performed.values())


def serve(ledger: Ledger) -> ThreadingHTTPServer:
    """Start the far end on a free port of the loopback; its port is ``server_address[1]``."""
    handler = type("Handler", (_Handler,), {"ledger": ledger})
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ledger: Ledger

    def log_message(self, *_: Any) -> None:
        pass

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            return  # the caller was killed

    def do_GET(self) -> None:
        _, _, name, key = self.path.split("/")
        getattr(self, f"_ask_{self.ledger.way('ask')}")(Effect(name, unquote(key)))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        _, kind, name, *rest = self.path.split("/")
        if kind == "preview":
            getattr(self, f"_preview_{self.ledger.way('preview')}")(body)
        elif rest:
            getattr(self, f"_undo_{self.ledger.way('undo')}")(Effect(name, unquote(rest[0])))
        else:
            whose = (name, str(body["arguments"]["run"]), str(body["arguments"]["key"]))
            effect = Effect(name, self.headers["Idempotency-Key"])
            getattr(self, f"_{self.ledger.way('execute')}")(effect, whose)

    # Performing

    def _perform(self, effect: Effect, whose: tuple[str, ...]) -> bool:
        return self.ledger.perform(effect, whose, float(self.headers["webhook-timestamp"]))

    def _ok(self, effect: Effect, whose: tuple[str, ...]) -> None:
        if self._perform(effect, whose):
            self._answer(200, {"result": {"done": effect.name}, "external_id": effect.key[-6:]})
        else:
            self._drop()

    def _slow(self, effect: Effect, whose: tuple[str, ...]) -> None:
        time.sleep(SLOW_SECONDS)
        self._ok(effect, whose)

    def _late(self, effect: Effect, whose: tuple[str, ...]) -> None:
        """Performed once its caller has given it up, and never told."""
        time.sleep(LATE_SECONDS)
        self._perform(effect, whose)
        self._drop()

    def _hang(self, _effect: Effect, _whose: tuple[str, ...]) -> None:
        time.sleep(HANG_SECONDS)
        self._drop()

    def _lost_response(self, effect: Effect, whose: tuple[str, ...]) -> None:
        self._perform(effect, whose)
        self._drop()

    def _lost_request(self, _effect: Effect, _whose: tuple[str, ...]) -> None:
        self._drop()

    def _error_after(self, effect: Effect, whose: tuple[str, ...]) -> None:
        self._perform(effect, whose)
        self._answer(500, {})

    def _error_before(self, _effect: Effect, _whose: tuple[str, ...]) -> None:
        self._answer(500, {})

    def _busy(self, _effect: Effect, _whose: tuple[str, ...]) -> None:
        self._answer(429, {}, {"Retry-After": "1"})

    def _conflict(self, _effect: Effect, _whose: tuple[str, ...]) -> None:
        self._answer(409, {})

    def _refuse(self, effect: Effect, whose: tuple[str, ...]) -> None:
        """Refused for good, unless it was performed by an earlier try: then that is said again."""
        if self.ledger.rule_out(effect):
            self._answer(200, {"result": {"done": effect.name}, "external_id": effect.key[-6:]})
        else:
            self._answer(400, {"error": "the far end refuses this"})

    def _garbage(self, effect: Effect, whose: tuple[str, ...]) -> None:
        self._perform(effect, whose)
        self._answer(200, None, raw=b'{"result": ')

    def _kill_after(self, effect: Effect, whose: tuple[str, ...]) -> None:
        self._perform(effect, whose)
        self._kill_caller()

    def _kill_before(self, _effect: Effect, _whose: tuple[str, ...]) -> None:
        self._kill_caller()

    # Saying what was performed

    def _ask_ok(self, effect: Effect) -> None:
        if self.ledger.happened(effect):
            self._answer(200, {"outcome": "performed", "result": {"done": effect.name}})
        else:
            self._answer(404, {"outcome": "not_performed"})

    def _ask_failed(self, effect: Effect) -> None:
        if self.ledger.rule_out(effect):
            self._answer(200, {"outcome": "performed", "result": {"done": effect.name}})
        else:
            self._answer(200, {"outcome": "failed"})

    def _ask_down(self, _effect: Effect) -> None:
        self._answer(503, {"error": "cannot tell"})

    def _ask_pending(self, _effect: Effect) -> None:
        self._answer(200, {"outcome": "pending"})

    def _ask_wrong_route(self, _effect: Effect) -> None:
        self._answer(404, None, raw=b"<html><body>404 Not Found</body></html>")

    def _ask_hang(self, _effect: Effect) -> None:
        time.sleep(HANG_SECONDS)
        self._drop()

    def _ask_kill_before(self, _effect: Effect) -> None:
        self._kill_caller()

    # Undoing

    def _undo_ok(self, effect: Effect) -> None:
        self.ledger.undo(effect, self.headers["Idempotency-Key"])
        self._answer(200, {"result": "undone"})

    def _undo_down(self, _effect: Effect) -> None:
        self._answer(503, {"error": "compensation is down"})

    def _undo_lost(self, effect: Effect) -> None:
        self.ledger.undo(effect, self.headers["Idempotency-Key"])
        self._drop()

    def _undo_kill_after(self, effect: Effect) -> None:
        self.ledger.undo(effect, self.headers["Idempotency-Key"])
        self._kill_caller()

    def _undo_kill_before(self, _effect: Effect) -> None:
        self._kill_caller()

    # Looking ahead

    def _preview_ok(self, body: Any) -> None:
        changes = [
            {"object": name, "before": None, "after": value}
            for name, value in body["arguments"].items()
        ]
        self._answer(200, {"summary": "as asked", "warnings": [], "changes": changes})

    def _preview_down(self, _body: Any) -> None:
        self._answer(503, {"error": "preview is down"})

    def _preview_hang(self, _body: Any) -> None:
        time.sleep(HANG_SECONDS)
        self._drop()

    def _preview_kill_before(self, _body: Any) -> None:
        self._kill_caller()

    # Answering

    def _answer(
        self, status: int, body: Any, headers: Mapping[str, str] | None = None, raw: bytes = b""
    ) -> None:
        data = raw or json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _drop(self) -> None:
        """Close with a reset: the caller sees a broken connection and no answer."""
        self.close_connection = True
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()

    def _kill_caller(self) -> None:
        for pid in callers(self.client_address[1], self.server.server_address[1]):
            with self.ledger.lock:
                self.ledger.kills += 1
            kill(pid)
        self._drop()


def kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def callers(client_port: int, server_port: int) -> list[int]:
    """The processes that hold the caller's end of a loopback connection, but this one."""
    held = set()
    for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = row.split()
        ends = [int(fields[n].rsplit(":", 1)[1], 16) for n in (1, 2)]
        if ends == [client_port, server_port]:
            held.add(f"socket:[{fields[9]}]")
    return [pid for pid in _pids() if pid != os.getpid() and _holds(pid, held)]


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _holds(pid: int, sockets: set[str]) -> bool:
    try:
        return any(
            _target(descriptor) in sockets for descriptor in Path(f"/proc/{pid}/fd").iterdir()
        )
    except OSError:
        return False


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""
