"""What runs a flow: the requests it asks for, and its sleeping, with or without `await`."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Protocol, TypeVar

import httpx

from abeyance.protocol import Answer, Command, Flow, Lost, Now, Request, Sleep

T = TypeVar("T")
BASE_PATH: Final = "api/v1"
CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 30.0  # beside what the request asks the service to wait


class Clock(Protocol):
    """What passes the time: the real one, or one of a test."""

    def now(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...
    async def asleep(self, seconds: float) -> None: ...


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def asleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Connection:
    """Runs flows in the calling thread."""

    def __init__(self, url: str, http: httpx.Client, clock: Clock) -> None:
        self._base = base_of(url)
        self.http = http
        self._clock = clock

    def drive(self, flow: Flow[T]) -> T:
        return self._drive(flow, self._clock.sleep)

    @contextmanager
    def beside(self, flow: Flow[None]) -> Iterator[None]:
        """Run an endless flow in a thread of its own for the length of the block."""
        over = threading.Event()

        def sleep(seconds: float) -> None:
            if over.wait(seconds):
                raise _Over

        def work() -> None:
            try:
                self._drive(flow, sleep)
            except _Over:
                return

        thread = threading.Thread(target=work, name="abeyance heartbeats", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _drive(self, flow: Flow[T], sleep: Any) -> T:
        came: Answer | Lost | float | None = None
        try:
            while True:
                came = self._do(flow.send(came), sleep)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    def _do(self, command: Command, sleep: Any) -> Answer | Lost | float | None:
        match command:
            case Request():
                return self._ask(command)
            case Sleep(seconds):
                sleep(seconds)
                return None
            case Now():
                return self._clock.now()

    def _ask(self, request: Request) -> Answer | Lost:
        try:
            return answer_of(self.http.send(build(self.http, self._base, request)))
        except httpx.TransportError as fault:
            return lost(fault)


class AsyncConnection:
    """Runs flows in the calling task."""

    def __init__(self, url: str, http: httpx.AsyncClient, clock: Clock) -> None:
        self._base = base_of(url)
        self.http = http
        self._clock = clock

    async def drive(self, flow: Flow[T]) -> T:
        return await self._drive(flow, self._clock.asleep)

    @asynccontextmanager
    async def beside(self, flow: Flow[None]) -> AsyncIterator[None]:
        """Run an endless flow in a task of its own for the length of the block."""
        task = asyncio.create_task(self._drive(flow, asyncio.sleep))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _drive(self, flow: Flow[T], sleep: Any) -> T:
        came: Answer | Lost | float | None = None
        try:
            while True:
                came = await self._do(flow.send(came), sleep)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    async def _do(self, command: Command, sleep: Any) -> Answer | Lost | float | None:
        match command:
            case Request():
                return await self._ask(command)
            case Sleep(seconds):
                await sleep(seconds)
                return None
            case Now():
                return self._clock.now()

    async def _ask(self, request: Request) -> Answer | Lost:
        try:
            return answer_of(await self.http.send(build(self.http, self._base, request)))
        except httpx.TransportError as fault:
            return lost(fault)


class _Over(Exception):
    """The block that a flow runs beside has ended."""


def base_of(url: str) -> str:
    return f"{url.rstrip('/')}/{BASE_PATH}"


def limits() -> httpx.Limits:
    """However many runs wait at once, each has a connection of its own."""
    return httpx.Limits(max_connections=None, max_keepalive_connections=20)


def build(http: httpx.Client | httpx.AsyncClient, base: str, request: Request) -> httpx.Request:
    held = float(request.query.get("wait", 0))
    return http.build_request(
        request.method,
        f"{base}/{request.path}",
        params=dict(request.query),
        headers=dict(request.headers),
        json=request.body if request.method == "POST" else None,
        timeout=httpx.Timeout(ANSWER_SECONDS + held, connect=CONNECT_SECONDS),
    )


def answer_of(response: httpx.Response) -> Answer:
    try:
        document = json.loads(response.content)
    except ValueError:
        document = None
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status_code, headers, document if isinstance(document, dict) else None)


def lost(fault: httpx.TransportError) -> Lost:
    """Say that no answer came; an address that can't be one is a fault of the program."""
    if isinstance(fault, httpx.UnsupportedProtocol):
        raise fault
    return Lost(fault)
