"""A far end whose every byte a test decides, on a loopback port of its own."""

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Behaviour = Callable[[socket.socket, Asked], None]


def raw_answer(status: int, body: bytes, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


def answering(status: int, payload: Any = None, *headers: str) -> Behaviour:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return lambda connection, _asked: connection.sendall(raw_answer(status, body, *headers))


def sending(data: bytes) -> Behaviour:
    return lambda connection, _asked: connection.sendall(data)


def resetting(connection: socket.socket, _asked: Asked) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


class FarEnd:
    """Counts connections and requests; answers each request as `behave` says, then closes."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.behave: Behaviour = answering(200, {"result": None})
        self.early: bytes | None = None
        """Sent, where set, as soon as a request begins; the rest is read and dropped."""
        self.asked: list[Asked] = []
        self.connections = 0
        self.closing = threading.Event()
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.authority}/effects/refund"

    def close(self) -> None:
        self.closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
                stack.callback(connection.close)
            if self.early:
                answer_early(connection, self.early)
            elif asked := read_request(connection):
                self.asked.append(asked)
                self.behave(connection, asked)


def answer_early(connection: socket.socket, answer: bytes) -> None:
    connection.recv(1024)
    connection.sendall(answer)
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(65536):
        pass


def read_request(connection: socket.socket) -> Asked | None:
    with connection.makefile("rb") as stream:
        first = stream.readline().decode().split()
        if not first:
            return None
        headers = {}
        while line := stream.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers.get("content-length", 0)))
    return Asked(first[0], first[1], headers, body)
