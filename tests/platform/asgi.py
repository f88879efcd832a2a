"""A client for an ASGI application, in the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from config.front.application import Front
from config.front.changes import Changes, Channel
from config.front.http import Request, Response

RUN = UUID("0190a0a0-0000-7000-8000-000000000001")


class Versions(Changes):
    """Changes of rows that a test holds in a dictionary; everything else is the real thing."""

    def __init__(self, versions: dict[Channel, int]) -> None:
        super().__init__({})
        self.versions = versions
        self.looks = 0

    async def _look(self) -> None:
        self.looks += 1
        for channel in list(self.waiters):
            self._wake(channel, self.versions.get(channel, 0))


class Django:
    """Answers in Django's place, and remembers what it was asked."""

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> Response:
        self.asked.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Exchange:
    """One request on its way: what the client has got, and what it does next."""

    def __init__(
        self,
        front: Front,
        method: str,
        target: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        body: Iterable[bytes] = (),
    ) -> None:
        path, _, query = target.partition("?")
        self.parts = list(body)
        self.read = 0
        self.sent: list[dict[str, Any]] = []
        self.left = asyncio.Event()
        self.news = asyncio.Event()
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "http_version": "1.1",
            "headers": [(k.encode(), v.encode()) for k, v in headers],
        }
        self.task = asyncio.create_task(front(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self.read < len(self.parts):
            self.read += 1
            more = self.read < len(self.parts)
            return {"type": "http.request", "body": self.parts[self.read - 1], "more_body": more}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        self.news.set()

    async def until_body_holds(self, text: bytes) -> None:
        while text not in self.body:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 5)

    async def done(self) -> Exchange:
        await asyncio.wait_for(self.task, 5)
        return self

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])


def answer(body: bytes = b"{}", status: int = 200, **private: str) -> Response:
    named = [(f"x-abeyance-{k.replace('_', '-')}".encode(), v.encode()) for k, v in private.items()]
    return Response.of(status, [(b"content-type", b"application/json"), *named], body)


def nothing_new(version: int) -> Response:
    return answer(b'{"old":true}', wait=f"run:{RUN}", version=str(version))
