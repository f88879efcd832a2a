"""The far end over HTTP, as docs/how-to/first-tool.md describes one.

POST /tools/NAME                    make the call (Idempotency-Key)
POST /tools/NAME/preview            what it would change, without changing it
GET  /tools/NAME/KEY                what became of the call with this key
POST /tools/NAME/KEY/compensate     take it back (Idempotency-Key)
GET  /                              the ledger, to read
GET  /ledger                        the ledger and the faults ordered, as JSON
POST /faults                        order a fault (with the shop's own key)
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from demo.far_end.callers import Callers, Stranger
from demo.far_end.faults import Faults, InvalidOrder
from demo.far_end.ledger import Ledger
from demo.far_end.page import ledger_page
from demo.far_end.shop import Refusal, Shop

AT_ONCE_AND_HARD = struct.pack("ii", 1, 0)
LARGEST_BODY = 1024 * 1024


@dataclass(frozen=True, slots=True)
class World:
    """Everything that a request is answered from."""

    ledger: Ledger
    shop: Shop
    faults: Faults
    callers: Callers


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    world: ClassVar[World]

    def log_message(self, *_args: Any) -> None:
        """Stay silent: the ledger says what happened."""

    def do_GET(self) -> None:
        match self._path():
            case []:
                self._text(ledger_page(self.world.ledger, self.world.faults))
            case ["ledger"]:
                entries = [
                    {**asdict(one), "external_id": one.external_id}
                    for one in self.world.ledger.entries
                ]
                self._json(200, {"entries": entries, "faults": self.world.faults.listed()})
            case ["tools", tool, key]:
                self._for_callers(tool, b"", lambda _: self._look_up(tool, key))
            case _:
                self._json(404, {"error": "there is no such page"})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > LARGEST_BODY:
            self.close_connection = True
            self._json(413, {"error": "too large"})
            return
        raw = self.rfile.read(length)
        try:
            body = json.loads(raw)
        except ValueError:
            self._json(400, {"error": "not JSON"})
            return
        match self._path():
            case ["faults"]:
                self._for_callers("faults", raw, lambda _: self._order(body))
            case ["tools", tool]:
                self._for_callers(tool, raw, lambda who: self._make(tool, body["arguments"], who))
            case ["tools", tool, "preview"]:
                self._for_callers(tool, raw, lambda _: self._preview(tool, body["arguments"]))
            case ["tools", tool, key, "compensate"]:
                self._for_callers(tool, raw, lambda who: self._take_back(tool, key, who))
            case _:
                self._json(404, {"error": "there is no such path"})

    def _for_callers(self, tool: str, raw: bytes, answer: Callable[[str], None]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            answer(self.world.callers.who(tool, headers, raw))
        except Stranger:
            self._json(401, {"error": "neither signed by the service nor made with the shop's key"})
        except Refusal as refusal:
            self._json(422, {"error": str(refusal)})
        except (KeyError, TypeError):
            self._json(422, {"error": "an argument is missing"})

    def _make(self, tool: str, arguments: dict[str, Any], who: str) -> None:
        shop = self.world.shop
        if read := shop.reads.get(tool):
            self._json(200, {"result": read(arguments)})
            return
        if (act := shop.effects.get(tool)) is None:
            self._json(404, {"error": "there is no such tool"})
            return
        key = self.headers.get("Idempotency-Key")
        fault = self.world.faults.take(tool, key, arguments)
        if fault in {"lost_request", "refuse", "busy"}:
            self._fail(fault)
            return
        entry = self.world.ledger.perform(who, tool, key, arguments, lambda: act(arguments))
        if fault is not None:
            self._fail(fault)
            return
        self._json(200, {"result": entry.result, "external_id": entry.external_id})

    def _fail(self, fault: str) -> None:
        match fault:
            case "refuse":
                self._json(422, {"error": "refused, as ordered"})
            case "busy":
                self._json(429, {"error": "busy, as ordered"}, ("Retry-After", "1"))
            case "error":
                self._json(500, {"error": "broken, as ordered"})
            case _:
                self._hang_up()

    def _preview(self, tool: str, arguments: dict[str, Any]) -> None:
        if tool != "payments.refund":
            self._json(404, {"error": "this tool has no preview"})
            return
        self._json(200, self.world.shop.preview_refund(arguments))

    def _look_up(self, tool: str, key: str) -> None:
        if not self.world.faults.can_be_asked_about(key):
            self._json(503, {"error": "the look-up is down, as ordered"})
        elif entry := self.world.ledger.find(tool, key):
            found = {"result": entry.result, "external_id": entry.external_id}
            self._json(200, {"outcome": "performed", **found})
        else:
            self._json(404, {"outcome": "not_performed"})

    def _take_back(self, tool: str, key: str, who: str) -> None:
        entry = self.world.ledger.find(tool, key)
        if entry is None:
            raise Refusal("nothing was done under this key")
        undone = self.world.ledger.perform(
            who,
            tool,
            self.headers.get("Idempotency-Key"),
            entry.arguments,
            lambda: {"taken_back": entry.external_id},
            undoes=entry.external_id,
        )
        self._json(200, {"result": undone.result, "external_id": undone.external_id})

    def _order(self, wanted: Any) -> None:
        try:
            order = self.world.faults.order(wanted)
        except (InvalidOrder, TypeError) as fault:
            self._json(422, {"error": str(fault)})
        else:
            self._json(201, asdict(order))

    def _path(self) -> list[str]:
        return [unquote(part) for part in urlsplit(self.path).path.split("/") if part]

    def _json(self, status: int, document: Any, *headers: tuple[str, str]) -> None:
        body = json.dumps(document, ensure_ascii=False).encode()
        self._answer(status, "application/json", body, *headers)

    def _text(self, text: str) -> None:
        self._answer(200, "text/plain; charset=utf-8", text.encode())

    def _answer(self, status: int, kind: str, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("X-Content-Type-Options", "nosniff"),
            *headers,
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _hang_up(self) -> None:
        """Close with a reset: the caller sees a broken connection and no answer."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE_AND_HARD)
        self.connection.close()


class Server(ThreadingHTTPServer):
    """Serves on the loopback address alone."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, world: World) -> None:
        super().__init__(("127.0.0.1", port), type("WorldHandler", (Handler,), {"world": world}))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"
