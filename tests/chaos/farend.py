"""A far end in the checker's own process: it counts what it performs, and breaks in every way.

Nothing is deduplicated, so that a call that is sent twice without need shows in the ledger.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

MODES = (
    "ok", "ok", "ok", "ok", "ok", "ok", "slow", "late", "lost_response", "lost_request",
    "error_after", "error_before", "busy", "conflict", "garbage", "kill_after", "kill_before",
    "refuse",
)  # fmt: skip


class Ledger:
    """What the far end did, by name and idempotency key."""

    def __init__(self, seed: int) -> None:
        self.lock = threading.Lock()
        self.random = random.Random(seed)  # noqa: S311
        self.effects: Counter[tuple[str, str]] = Counter()
        self.undone: Counter[tuple[str, str]] = Counter()
        self.calls = 0
        self.kills = 0
        self.calm = False

    def mode(self) -> str:
        with self.lock:
            self.calls += 1
            return "ok" if self.calm else self.random.choice(MODES)

    def perform(self, name: str, key: str) -> None:
        with self.lock:
            self.effects[name, key] += 1

    def undo(self, name: str, key: str) -> None:
        """Compensations are deduplicated by their key, as a tool that declares one promises."""
        with self.lock:
            self.undone[name, key] = 1

    def performed(self, name: str, key: str) -> bool:
        with self.lock:
            return self.effects[name, key] > 0


def serve(ledger: Ledger) -> ThreadingHTTPServer:
    """Start the far end on a free port of the loopback; its port is ``server_address[1]``."""
    handler = type("Handler", (_Handler,), {"ledger": ledger})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


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

    def _answer(self, status: int, body: Any, raw: bytes | None = None) -> None:
        data = json.dumps(body).encode() if raw is None else raw
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _drop(self) -> None:
        self.close_connection = True
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()

    def do_GET(self) -> None:
        _, _, name, key = self.path.split("/")
        if self.ledger.performed(name, unquote(key)):
            self._answer(200, {"outcome": "performed", "result": {"done": name}})
        else:
            self._answer(404, {"outcome": "not_performed"})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        parts = self.path.strip("/").split("/")
        name = parts[1]
        if parts[-1] == "compensate":
            self.ledger.undo(name, unquote(parts[2]))
            self._answer(200, {"result": "undone"})
            return
        key = self.headers["Idempotency-Key"]
        mode = self.ledger.mode()
        getattr(self, f"_{mode}", self._ok)(name, key)

    def _ok(self, name: str, key: str) -> None:
        self.ledger.perform(name, key)
        self._answer(200, {"result": {"done": name}, "external_id": f"{name}-{key[-6:]}"})

    def _slow(self, name: str, key: str) -> None:
        time.sleep(0.5)
        self._ok(name, key)

    def _late(self, name: str, key: str) -> None:
        timer = threading.Timer(2.5, self.ledger.perform, (name, key))
        timer.daemon = True
        timer.start()
        time.sleep(3)
        self._drop()

    def _lost_response(self, name: str, key: str) -> None:
        self.ledger.perform(name, key)
        self._drop()

    def _lost_request(self, _name: str, _key: str) -> None:
        self._drop()

    def _error_after(self, name: str, key: str) -> None:
        self.ledger.perform(name, key)
        self._answer(500, {})

    def _error_before(self, _name: str, _key: str) -> None:
        self._answer(500, {})

    def _busy(self, _name: str, _key: str) -> None:
        self._answer(429, {})

    def _conflict(self, _name: str, _key: str) -> None:
        self._answer(409, {})

    def _refuse(self, _name: str, _key: str) -> None:
        self._answer(400, {"error": "the far end refuses this"})

    def _garbage(self, name: str, key: str) -> None:
        self.ledger.perform(name, key)
        self._answer(200, None, raw=b'{"result": ')

    def _kill_after(self, name: str, key: str) -> None:
        self.ledger.perform(name, key)
        self._kill_caller()

    def _kill_before(self, _name: str, _key: str) -> None:
        self._kill_caller()

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
