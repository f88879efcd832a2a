"""Requests and responses as the front passes them around, whole."""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

# What Django tells the front, and nobody else: https://datatracker.ietf.org/doc/html/rfc6648 has
# no prefix for such headers, so they carry the product's name.
PRIVATE = b"x-abeyance-"


@dataclass(frozen=True)
class Request:
    """A request whose body has been read."""

    scope: Scope
    headers: Headers
    body: bytes = b""

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    def header(self, name: bytes) -> bytes | None:
        return next((value for known, value in self.headers if known == name), None)

    def with_header(self, name: bytes, value: bytes) -> "Request":
        kept = [pair for pair in self.headers if pair[0] != name]
        return replace(self, headers=[*kept, (name, value)])


@dataclass(frozen=True)
class Response:
    """A response that has been rendered."""

    status: int
    headers: Headers
    body: bytes = b""
    private: dict[bytes, str] = field(default_factory=dict)

    @classmethod
    def of(cls, status: int, headers: Headers, body: bytes) -> "Response":
        """Take the front's private headers out of those that go on to the client."""
        return cls(
            status,
            [pair for pair in headers if not pair[0].startswith(PRIVATE)],
            body,
            {name: value.decode("latin-1") for name, value in headers if name.startswith(PRIVATE)},
        )


async def send_response(send: Send, response: Response, *, body: bool = True) -> None:
    """Send it whole; without its body where the request was a HEAD."""
    headers = response.headers
    if not any(name == b"content-length" for name, _ in headers):
        headers = [*headers, (b"content-length", str(len(response.body)).encode())]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body if body else b""})
