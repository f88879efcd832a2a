"""Bodies are read within their limits, and whoever sends more can always read the answer."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import pytest

from config.front import bodies
from config.front.application import Front
from config.front.bodies import CHECKPOINT_LIMIT, MEBIBYTE, USUAL_LIMIT
from config.front.bridge import Bridge, environ_of
from config.front.http import Request
from tests.platform.asgi import Django, Exchange, Versions, answer

CHECKPOINTS = "/api/v1/runs/0190a0a0/checkpoints"


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 20))


def sized(size: int) -> dict[str, Any]:
    """A body of this size in parts, with the header that says so."""
    parts = [b"x" * min(65536, size - at) for at in range(0, size, 65536)]
    return {"headers": [("content-length", str(size))], "body": parts}


@pytest.mark.parametrize(
    ("path", "limit"), [("/api/v1/runs", USUAL_LIMIT), (CHECKPOINTS, CHECKPOINT_LIMIT)]
)
def test_a_body_at_the_limit_reaches_django_whole(path: str, limit: int) -> None:
    async def test() -> None:
        django = Django(answer(status=201))
        exchange = Exchange(Front(django, Versions({})), "POST", path, **sized(limit))
        assert (await exchange.done()).status == 201
        assert len(django.asked[0].body) == limit

    run(test())


@pytest.mark.parametrize(
    ("path", "limit"), [("/api/v1/runs", USUAL_LIMIT), (CHECKPOINTS, CHECKPOINT_LIMIT)]
)
def test_a_body_over_the_limit_is_read_away_and_refused(path: str, limit: int) -> None:
    async def test() -> None:
        django = Django(answer(status=204))
        exchange = Exchange(Front(django, Versions({})), "POST", path, **sized(limit + 1))
        await exchange.done()
        assert exchange.status == 413
        assert exchange.headers[b"content-type"] == b"application/problem+json"
        assert json.loads(exchange.body)["code"] == "body-too-large"
        assert exchange.read == len(exchange.parts)
        assert [request.method for request in django.asked] == ["OPTIONS"]
        assert django.asked[0].body == b""

    run(test())


def test_a_body_without_a_length_is_counted() -> None:
    async def test() -> None:
        parts = [b"x" * 65536] * 17
        headers = [("transfer-encoding", "chunked")]
        front = Front(Django(answer()), Versions({}))
        exchange = Exchange(front, "POST", "/api/v1/runs", headers=headers, body=parts)
        assert (await exchange.done()).status == 413

    run(test())


def test_only_a_post_of_a_checkpoint_may_be_large() -> None:
    async def test() -> None:
        front = Front(Django(answer()), Versions({}))
        exchange = Exchange(front, "PUT", CHECKPOINTS, **sized(2 * MEBIBYTE))
        assert (await exchange.done()).status == 413

    run(test())


def test_a_stranger_is_told_401_before_the_size_is_judged() -> None:
    async def test() -> None:
        django = Django(answer(b'{"code":"unauthenticated"}', status=401))
        exchange = Exchange(Front(django, Versions({})), "POST", "/api/v1/runs", **sized(2**21))
        assert (await exchange.done()).status == 401

    run(test())


def test_a_client_that_asks_leave_first_is_refused_before_it_sends() -> None:
    async def test() -> None:
        sent = sized(2 * MEBIBYTE)
        sent["headers"].append(("expect", "100-continue"))
        exchange = Exchange(Front(Django(answer()), Versions({})), "POST", "/api/v1/runs", **sent)
        assert (await exchange.done()).status == 413
        assert exchange.read == 0

    run(test())


def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "DRAINED_AT_MOST", 2 * MEBIBYTE)

    async def test() -> None:
        sent = sized(8 * MEBIBYTE)
        exchange = Exchange(Front(Django(answer()), Versions({})), "POST", "/api/v1/runs", **sent)
        assert (await exchange.done()).status == 413
        assert exchange.read < len(exchange.parts)

    run(test())


def test_a_body_that_comes_too_slowly_reaches_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "READ_WITHIN_SECONDS", 0.05)

    async def test() -> None:
        django = Django(answer())
        headers = [("content-length", "10")]
        exchange = Exchange(Front(django, Versions({})), "POST", "/api/v1/runs", headers=headers)
        await exchange.done()
        assert django.asked == []
        assert exchange.sent == []

    run(test())


def test_a_head_has_the_length_and_no_body() -> None:
    async def test() -> None:
        front = Front(Django(answer(b'{"a":1}')), Versions({}))
        exchange = await Exchange(front, "HEAD", "/api/v1/tools").done()
        assert exchange.body == b""
        assert exchange.headers[b"content-length"] == b"7"

    run(test())


def environ(headers: list[tuple[bytes, bytes]], **scope: Any) -> dict[str, Any]:
    usual = {"method": "GET", "path": "/r", "query_string": b"", "http_version": "1.1"}
    return environ_of(Request({**usual, **scope}, headers, b"body"))


def test_an_underscore_does_not_pass_for_a_hyphen() -> None:
    forged = environ([(b"x_abeyance_seen", b"1"), (b"accept", b"*/*")])
    assert {key for key in forged if key.startswith("HTTP_")} == {"HTTP_ACCEPT"}


def test_the_length_is_that_of_the_body_that_was_read() -> None:
    lied = environ([(b"content-length", b"9999"), (b"transfer-encoding", b"chunked")])
    assert lied["CONTENT_LENGTH"] == "4"
    assert "HTTP_TRANSFER_ENCODING" not in lied


def test_repeated_headers_are_joined_as_http_says() -> None:
    joined = environ([(b"cookie", b"a=1"), (b"cookie", b"b=2"), (b"via", b"x"), (b"via", b"y")])
    assert (joined["HTTP_COOKIE"], joined["HTTP_VIA"]) == ("a=1; b=2", "x,y")


def test_a_path_keeps_its_bytes() -> None:
    assert environ([], path="/é")["PATH_INFO"].encode("latin-1").decode() == "/é"


def test_a_thread_forgets_what_a_request_set() -> None:
    from contextvars import ContextVar

    left: ContextVar[str] = ContextVar("left", default="nothing")
    seen: list[str] = []

    def application(environ: Any, start_response: Any) -> list[bytes]:
        seen.append(left.get())
        left.set("something")
        start_response("200 OK", [])
        return [b""]

    async def test() -> None:
        bridge = Bridge(application, threads=1)
        request = Request(
            {"method": "GET", "path": "/", "query_string": b"", "http_version": "1.1"}, []
        )
        await bridge(request)
        await bridge(request)

    run(test())
    assert seen == ["nothing", "nothing"]
