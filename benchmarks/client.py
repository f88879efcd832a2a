"""A small HTTP/1.1 client on kept connections, cheap enough not to be what is measured."""

import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

CHUNK = 1 << 16
END_OF_HEAD = b"\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


class BadAnswer(Exception):
    """The service answered otherwise than the benchmark needs."""


def request_bytes(
    method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """Return a request as it goes over the connection; a body is sent as JSON."""
    content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    fields = {"Host": "127.0.0.1", "Accept": "application/json", **(headers or {})}
    if body is not None:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content


@dataclass(frozen=True, slots=True)
class Answer:
    """One response."""

    status: int
    body: bytes

    def json(self) -> Any:
        """Return the body read as JSON."""
        return json.loads(self.body)


class Buffer:
    """What of one response has come so far."""

    def __init__(self) -> None:
        self._data = b""
        self._end = 0
        self._body = 0

    def feed(self, data: bytes) -> Answer | None:
        """Take more of the response in; return it once it is whole."""
        self._data += data
        if not self._body:
            head = self._data.find(END_OF_HEAD)
            if head < 0:
                return None
            self._body = head + len(END_OF_HEAD)
            self._end = _end_of_body(self._data[:head].lower(), self._body)
        return self._whole()

    def _whole(self) -> Answer | None:
        chunked = self._end < 0
        if chunked and not self._data.endswith(LAST_CHUNK):
            return None
        if not chunked and len(self._data) < self._end:
            return None
        status, body = int(self._data[9:12]), self._data[self._body :]
        self._data, self._body = b"", 0
        return Answer(status, _join_chunks(body) if chunked else body)


def _end_of_body(head: bytes, start: int) -> int:
    """Return where the body ends, -1 where it comes in chunks."""
    if b"transfer-encoding: chunked" in head:
        return -1
    _, found, rest = head.partition(b"content-length:")
    return start + (int(rest.split(b"\r\n", 1)[0]) if found else 0)


def _join_chunks(body: bytes) -> bytes:
    parts = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        parts.append(body[:length])
        body = body[length + 2 :] if length else b""
    return b"".join(parts)


class Client:
    """One kept connection, one request at a time."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self._socket = connect(port)
        self._buffer = Buffer()
        self._headers = authorization(token)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send a request and wait for its whole answer."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.send(request_bytes(method, path, body, self._headers | fields))

    def get(self, path: str) -> Any:
        """Return what a path holds; BadAnswer where it is not there."""
        return self._expect(self.ask("GET", path), path)

    def post(self, path: str, body: object) -> Any:
        """Post and return the answer's JSON; BadAnswer where it is refused."""
        return self._expect(self.ask("POST", path, body), path)

    def send(self, request: bytes) -> Answer:
        """Send a request made beforehand and wait for its whole answer."""
        self._socket.sendall(request)
        while True:
            data = self._socket.recv(CHUNK)
            if not data:
                raise BadAnswer("the connection was closed")
            if answer := self._buffer.feed(data):
                return answer

    def _expect(self, answer: Answer, path: str) -> Any:
        if answer.status >= 300:
            raise BadAnswer(f"{path}: {answer.status} {answer.body[:500]!r}")
        return answer.json()


def authorization(token: str | None) -> dict[str, str]:
    """Return the header that says who asks."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def connect(port: int) -> socket.socket:
    """Return a connection to the loopback port that sends at once what is written."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def answers(port: int, path: str) -> bool:
    """Return whether the path answers 200 now."""
    try:
        with Client(port) as client:
            return client.ask("GET", path).status == 200
    except (OSError, BadAnswer):
        return False


def free_port() -> int:
    """Return a loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def clock() -> float:
    """Return seconds on the one clock that all processes of the machine share."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)
