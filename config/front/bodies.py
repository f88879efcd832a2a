"""Reading a request's body within its limit, so that the client can always read the answer."""

import asyncio
import re

from config.front.http import Headers, Receive, Scope

MEBIBYTE = 1024 * 1024
USUAL_LIMIT = MEBIBYTE
CHECKPOINT_LIMIT = 17 * MEBIBYTE
CHECKPOINTS = re.compile(r"/api/v1/runs/[^/]+/checkpoints")
# How much of a refused body is read away before the answer, and for how long any body may take.
DRAINED_AT_MOST = 64 * MEBIBYTE
READ_WITHIN_SECONDS = 60.0


class BodyOverLimit(Exception):
    """The body is larger than its path takes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"The body is over {limit // MEBIBYTE} MiB.")


class ClientGone(Exception):
    """The client went away, or did not send its body in time."""


def limit_of(scope: Scope) -> int:
    if scope["method"] == "POST" and CHECKPOINTS.fullmatch(scope["path"]):
        return CHECKPOINT_LIMIT
    return USUAL_LIMIT


async def read_body(scope: Scope, headers: Headers, receive: Receive) -> bytes:
    """Return the whole body.

    Raises BodyOverLimit once the rest has been read away (a client that still writes would not read
    the answer), and ClientGone.
    """
    known = dict(headers)
    if b"content-length" not in known and b"transfer-encoding" not in known:
        return b""
    try:
        async with asyncio.timeout(READ_WITHIN_SECONDS):
            return await _read(limit_of(scope), known, receive)
    except TimeoutError:
        raise ClientGone from None


async def _read(limit: int, known: dict[bytes, bytes], receive: Receive) -> bytes:
    waits_for_leave = known.get(b"expect", b"").lower() == b"100-continue"
    if waits_for_leave and _declared(known) > limit:
        raise BodyOverLimit(limit)  # it has sent nothing of it yet
    parts: list[bytes] = []
    size, more = 0, True
    while more and size <= DRAINED_AT_MOST:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part = message.get("body", b"")
        size += len(part)
        if size <= limit:
            parts.append(part)
        else:
            parts.clear()
        more = message.get("more_body", False)
    if size > limit:
        raise BodyOverLimit(limit)
    return b"".join(parts)


def _declared(known: dict[bytes, bytes]) -> int:
    length = known.get(b"content-length", b"")
    return int(length) if length.isdigit() else 0
