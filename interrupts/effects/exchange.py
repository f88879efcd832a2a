"""One HTTP/1.1 request on a connection of its own, within one deadline.

No connection is kept. On a kept one a request can be lost because the peer was about to close it,
and then nobody can tell "not sent" from "sent and performed": it would have to be called unknown,
or sent twice. A fresh connection costs a round trip or two and leaves one clear line: up to the
first byte handed to the kernel nothing was sent, from it on anything may have happened.
"""

import socket
import ssl
from collections.abc import Container
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import h11

from interrupts.effects.addresses import AddressRefused, Unresolved, addresses_of
from interrupts.effects.cancellation import Cancellation, Cancelled
from interrupts.effects.deadline import Deadline
from interrupts.effects.targets import InvalidUrl, Target, target_of

MAX_BODY: Final = 1024 * 1024
_CHUNK = 64 * 1024
_USUAL: Final = (("User-Agent", "Abeyance"), ("Accept", "application/json"))
_CUT_BEFORE: Final = "The call was cancelled before anything of it was sent."
_CUT: Final = "The call was cancelled before the far end had answered."
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


class Unsendable(Exception):
    """The request can never be sent as it is, and nothing was."""


class NotSent(Exception):
    """Nothing of the request was sent this time."""


class Lost(Exception):
    """The request was sent, at least in part, and no answer to it could be read."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. The URL's host is the Host header and the name the certificate must bear."""

    method: str
    url: str
    headers: list[tuple[str, str]] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `body` is None where it could not be read whole; `fault` says why."""

    status: int
    headers: dict[str, str]
    body: bytes | None
    fault: str | None = None


def exchange(
    request: Request,
    *,
    allowed: Container[str],
    deadline: Deadline,
    cancellation: Cancellation,
) -> Answer:
    """Send the request once and return the final answer, redirects included.

    A cancel closes the connection; an answer that had come by then is returned all the same.
    Raises `Unsendable`, `NotSent` and `Lost`; the messages name no address.
    """
    try:
        target = target_of(request.url)
        wire, payload = _write(request, target)
    except (InvalidUrl, h11.LocalProtocolError, UnicodeEncodeError) as fault:
        raise Unsendable(f"The request cannot be formed: {fault}") from None
    try:
        with (
            closing(_connect(target, allowed, deadline, cancellation)) as connection,
            cancellation.closing(connection),
        ):
            _send(connection, payload, deadline)
            return _receive(connection, wire, deadline, cancellation)
    except Cancelled:
        raise NotSent(_CUT_BEFORE) from None
    except NotSent as fault:
        raise (NotSent(_CUT_BEFORE) if cancellation.asked else fault) from fault.__cause__
    except Lost as fault:
        raise (Lost(_CUT) if cancellation.asked else fault) from None


def _write(request: Request, target: Target) -> tuple[h11.Connection, bytes]:
    wire = h11.Connection(h11.CLIENT)
    given = {name.lower() for name, _ in request.headers}
    headers = [
        ("Host", target.host_header),
        *((name, value) for name, value in _USUAL if name.lower() not in given),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
        *request.headers,
    ]
    if request.body or request.method in _WITH_BODY:
        headers.append(("Content-Length", str(len(request.body))))
    head = h11.Request(method=request.method, target=target.path, headers=headers)
    payload = wire.send(head)
    if request.body:
        payload += wire.send(h11.Data(data=request.body))
    return wire, payload + wire.send(h11.EndOfMessage())


def _connect(
    target: Target, allowed: Container[str], deadline: Deadline, cancellation: Cancellation
) -> socket.socket:
    """Return a connection to an address that was checked, with the time left as its timeout."""
    try:
        addresses = addresses_of(
            target, allowed=allowed, deadline=deadline, cancellation=cancellation
        )
        connection = _reach(addresses, target.port, deadline, cancellation)
        if target.scheme == "https":
            connection = _secure(connection, target, deadline, cancellation)
        connection.settimeout(deadline.remaining())
    except AddressRefused as fault:
        raise Unsendable(
            "The far end's address is not a public one, and its host is not allowed."
        ) from fault
    except (Unresolved, OSError) as fault:
        raise NotSent(f"The far end could not be reached: {_reason(fault)}.") from fault
    return connection


def _reason(fault: Unresolved | OSError) -> str:
    match fault:
        case Unresolved():
            return str(fault)
        case TimeoutError():
            return "it did not answer in time"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not valid ({fault.verify_message})"
        case ssl.SSLError():
            return "it does not speak TLS as it should"
        case _:
            return (fault.strerror or "the connection failed").lower()


def _reach(
    addresses: list[str], port: int, deadline: Deadline, cancellation: Cancellation
) -> socket.socket:
    """Connect to the first address that answers; each has its share of the time left."""
    failed = OSError("no address")
    for left in range(len(addresses), 0, -1):
        address = addresses[-left]
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(deadline.remaining() / left)
            with cancellation.closing(connection):
                connection.connect((address, port))
        except Cancelled:
            connection.close()
            raise
        except OSError as fault:
            connection.close()
            failed = fault
        else:
            return connection
    raise failed


@cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _secure(
    connection: socket.socket, target: Target, deadline: Deadline, cancellation: Cancellation
) -> socket.socket:
    try:
        connection.settimeout(deadline.remaining())
        connection = secured = _tls().wrap_socket(
            connection, server_hostname=target.host.rstrip("."), do_handshake_on_connect=False
        )
        with cancellation.closing(secured):
            # The handshake as a whole is bounded by the socket's timeout.
            secured.do_handshake()
    except (OSError, Cancelled):
        connection.close()
        raise
    return secured


def _send(connection: socket.socket, payload: bytes, deadline: Deadline) -> None:
    """Hand the whole request to the kernel. What fails from here on may have been sent."""
    rest = memoryview(payload)
    try:
        while rest := rest[connection.send(rest) :]:
            connection.settimeout(deadline.remaining())
    except TimeoutError:
        raise Lost("The far end did not take the whole request in time.") from None
    except OSError:
        # It may have refused the request before it had read it all, and have said so.
        return


def _receive(
    connection: socket.socket,
    wire: h11.Connection,
    deadline: Deadline,
    cancellation: Cancellation,
) -> Answer:
    try:
        event = _next(connection, wire, deadline, cancellation)
        while isinstance(event, h11.InformationalResponse):
            event = _next(connection, wire, deadline, cancellation)
    except TimeoutError:
        raise Lost("The far end gave no answer in time.") from None
    except OSError:
        raise Lost("The connection broke before the far end answered.") from None
    except h11.RemoteProtocolError:
        raise Lost("The far end gave no answer, or one that is not HTTP.") from None
    if not isinstance(event, h11.Response):
        raise Lost("The far end gave no answer.")
    headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
    body, fault = _body(connection, wire, deadline, cancellation)
    return Answer(event.status_code, headers, body, fault)


def _body(
    connection: socket.socket,
    wire: h11.Connection,
    deadline: Deadline,
    cancellation: Cancellation,
) -> tuple[bytes | None, str | None]:
    body = bytearray()
    try:
        while isinstance(event := _next(connection, wire, deadline, cancellation), h11.Data):
            body += event.data
            if len(body) > MAX_BODY:
                return None, "its answer is larger than 1 MiB"
    except TimeoutError:
        return None, "its answer did not end in time"
    except (OSError, h11.RemoteProtocolError):
        return None, "its answer broke off"
    return bytes(body), None


def _next(
    connection: socket.socket,
    wire: h11.Connection,
    deadline: Deadline,
    cancellation: Cancellation,
) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
    """Return the next event that is not a want of data."""
    while (event := wire.next_event()) is h11.NEED_DATA:
        connection.settimeout(deadline.remaining())
        data = connection.recv(_CHUNK)
        if _is_cut(data, cancellation):
            raise ConnectionAbortedError
        wire.receive_data(data)
    return event


def _is_cut(data: bytes, cancellation: Cancellation) -> bool:
    """Say whether this side made the end: it ends no body that goes on to the connection's end."""
    return not data and cancellation.asked
