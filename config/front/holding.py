"""Requests that wait: held until there is something new, then passed to Django again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from config.front.bridge import Bridge
from config.front.changes import Changes, Channel, Kind
from config.front.http import Receive, Request, Response, Send

WAIT, STREAM = b"x-abeyance-wait", b"x-abeyance-stream"
VERSION, END = b"x-abeyance-version", b"x-abeyance-stream-end"
SEEN = b"x-abeyance-seen"  # asked again, Django is told which version it first answered with
LONGEST_WAIT_SECONDS = 60.0
SIGN_OF_LIFE_SECONDS = 15.0
SIGN_OF_LIFE = b": waiting\n\n"


class Held:
    """One GET that Django answered with "nothing new yet" or "this is a stream"."""

    def __init__(self, bridge: Bridge, changes: Changes, request: Request) -> None:
        self.bridge = bridge
        self.changes = changes
        self.request = request

    async def until_news(self, response: Response, receive: Receive) -> Response | None:
        """Return the answer once it says something new, or the last one when the time is up.

        None when the client has gone meanwhile.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_seconds(self.request)
        # Where the caller named no version, the one first seen is what the next answer is new to.
        again = self.request.with_header(SEEN, response.private[VERSION].encode())
        async with client_leaving(receive) as leaving:
            while (channel := channel_of(response, WAIT)) and (left := deadline - loop.time()) > 0:
                waiter = self.changes.after(channel, version_of(response))
                done = await first_of(waiter, leaving, left)
                if done is leaving:
                    return None
                if done is None or not waiter.result():
                    break
                response = await self.bridge(again)
        return response

    async def stream(self, response: Response, receive: Receive, send: Send) -> None:
        """Send events as they come, until Django says the stream ends or the client goes."""
        headers = [pair for pair in response.headers if pair[0] != b"content-length"]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        async with client_leaving(receive) as leaving:
            while response.status == 200 and (channel := channel_of(response, STREAM)):
                if response.body:
                    await send(body(response.body))
                    self._resume_after(response.body)
                if END in response.private:
                    break
                if not await self._until_past(channel, version_of(response), leaving, send):
                    break
                response = await self.bridge(self.request)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _until_past(
        self, channel: Channel, version: int, leaving: asyncio.Future[None], send: Send
    ) -> bool:
        waiter = self.changes.after(channel, version)
        try:
            while True:
                done = await first_of(asyncio.shield(waiter), leaving, SIGN_OF_LIFE_SECONDS)
                if done is leaving:
                    return False
                if waiter.done():
                    return waiter.result()
                await send(body(SIGN_OF_LIFE))
        finally:
            waiter.cancel()

    def _resume_after(self, events: bytes) -> None:
        ids = [line[3:].strip() for line in events.splitlines() if line.startswith(b"id:")]
        if ids:
            self.request = self.request.with_header(b"last-event-id", ids[-1])


def body(events: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": events, "more_body": True}


def wait_seconds(request: Request) -> float:
    """The `wait` of the query within its bounds; Django refuses one that is no number."""
    values = parse_qs(request.scope["query_string"].decode("latin-1")).get("wait", ["0"])
    try:
        seconds = float(values[-1])
    except ValueError:
        return 0.0
    return min(seconds, LONGEST_WAIT_SECONDS) if seconds > 0 else 0.0


def channel_of(response: Response, header: bytes) -> Channel | None:
    """Return what Django says the answer would change with."""
    if not (named := response.private.get(header)):
        return None
    kind, _, row_id = named.partition(":")
    return Channel(Kind.STATE if header == WAIT else Kind(kind), UUID(row_id))


def version_of(response: Response) -> int:
    return int(response.private[VERSION])


@asynccontextmanager
async def client_leaving(receive: Receive) -> AsyncIterator[asyncio.Future[None]]:
    """Give a future that is done when the client goes away."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    leaving = asyncio.create_task(watch())
    try:
        yield leaving
    finally:
        leaving.cancel()


async def first_of(
    waiter: asyncio.Future[bool], leaving: asyncio.Future[None], seconds: float
) -> asyncio.Future[bool] | asyncio.Future[None] | None:
    """Return which of the two is done first, None after the time; the waiter is then cancelled."""
    both: set[asyncio.Future[Any]] = {waiter, leaving}
    try:
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if waiter.done():
            return waiter
        return leaving if leaving.done() else None
    finally:
        waiter.cancel()
