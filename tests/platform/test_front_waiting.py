"""A GET that waits is held without a thread, and answered once there is something new."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from config.front import changes, holding
from config.front.application import Front
from config.front.changes import Channel, Kind
from config.front.holding import wait_seconds
from config.front.http import Request
from tests.platform.asgi import RUN, Django, Exchange, Versions, answer, nothing_new

CHANNEL = Channel(Kind.STATE, RUN)


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "LOOK_EVERY_SECONDS", 0.01)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 10))


def test_a_held_request_is_answered_with_what_is_new() -> None:
    async def test() -> None:
        django = Django(nothing_new(3), answer(b'{"new":true}'))
        versions = Versions({CHANNEL: 3})
        exchange = Exchange(Front(django, versions), "GET", "/api/v1/runs/r?wait=5")
        await asyncio.sleep(0.05)
        assert exchange.sent == []
        assert len(django.asked) == 1
        versions.versions[CHANNEL] = 4
        await exchange.done()
        assert (exchange.status, exchange.body) == (200, b'{"new":true}')
        assert len(django.asked) == 2

    run(test())


def test_a_change_that_is_nothing_new_to_django_is_waited_past() -> None:
    async def test() -> None:
        django = Django(nothing_new(3), nothing_new(4), answer(b'{"new":true}'))
        versions = Versions({CHANNEL: 4})
        exchange = Exchange(Front(django, versions), "GET", "/api/v1/steps/s?wait=5")
        await asyncio.sleep(0.05)
        assert len(django.asked) == 2
        assert exchange.sent == []
        versions.versions[CHANNEL] = 5
        assert (await exchange.done()).body == b'{"new":true}'

    run(test())


def test_django_is_told_which_version_was_seen_first() -> None:
    async def test() -> None:
        django = Django(nothing_new(3), nothing_new(4), answer())
        await Exchange(Front(django, Versions({CHANNEL: 9})), "GET", "/r?wait=5").done()
        seen = [request.header(b"x-abeyance-seen") for request in django.asked]
        assert seen == [None, b"3", b"3"]

    run(test())


def test_at_the_limit_the_answer_in_hand_is_given() -> None:
    async def test() -> None:
        django = Django(nothing_new(3))
        exchange = Exchange(Front(django, Versions({CHANNEL: 3})), "GET", "/r?wait=0.1")
        assert (await exchange.done()).body == b'{"old":true}'
        assert len(django.asked) == 1

    run(test())


def test_nobody_is_held_who_did_not_ask_to_wait() -> None:
    async def test() -> None:
        exchange = Exchange(Front(Django(nothing_new(3)), Versions({})), "GET", "/r")
        assert (await exchange.done()).body == b'{"old":true}'

    run(test())


def test_only_a_get_waits() -> None:
    async def test() -> None:
        django = Django(nothing_new(3))
        await Exchange(Front(django, Versions({})), "POST", "/r?wait=60").done()
        assert len(django.asked) == 1

    run(test())


def test_what_django_tells_the_front_goes_no_further() -> None:
    async def test() -> None:
        exchange = Exchange(Front(Django(nothing_new(3)), Versions({})), "GET", "/r")
        await exchange.done()
        assert not any(name.startswith(b"x-abeyance") for name in exchange.headers)

    run(test())


def test_a_client_cannot_speak_as_the_front() -> None:
    async def test() -> None:
        django = Django(answer())
        forged = [("x-abeyance-seen", "1"), ("accept", "*/*")]
        await Exchange(Front(django, Versions({})), "GET", "/r", headers=forged).done()
        assert [name for name, _ in django.asked[0].headers] == [b"accept"]

    run(test())


def test_a_client_that_leaves_is_forgotten() -> None:
    async def test() -> None:
        django, versions = Django(nothing_new(3)), Versions({CHANNEL: 3})
        exchange = Exchange(Front(django, versions), "GET", "/r?wait=60")
        await asyncio.sleep(0.03)
        assert versions.waiters
        exchange.left.set()
        await exchange.done()
        assert exchange.sent == []
        assert not versions.waiters
        assert len(django.asked) == 1

    run(test())


def test_nothing_is_asked_while_nobody_waits() -> None:
    async def test() -> None:
        versions = Versions({CHANNEL: 3})
        await Exchange(Front(Django(nothing_new(3)), versions), "GET", "/r?wait=0.05").done()
        await asyncio.sleep(0.05)
        before = versions.looks
        await asyncio.sleep(0.1)
        assert versions.looks == before

    run(test())


def test_one_look_serves_everybody_who_waits() -> None:
    async def test() -> None:
        versions = Versions({CHANNEL: 3})
        fronts = [Django(nothing_new(3), answer(b'{"new":true}')) for _ in range(200)]
        exchanges = [Exchange(Front(d, versions), "GET", "/r?wait=5") for d in fronts]
        await asyncio.sleep(0.1)
        assert versions.looks <= 12
        versions.versions[CHANNEL] = 4
        for exchange in exchanges:
            assert (await exchange.done()).body == b'{"new":true}'

    run(test())


def test_the_end_of_the_process_lets_everybody_go() -> None:
    async def test() -> None:
        versions = Versions({CHANNEL: 3})
        front = Front(Django(nothing_new(3)), versions)
        exchange = Exchange(front, "GET", "/r?wait=60")
        await asyncio.sleep(0.03)
        messages = iter(["lifespan.startup", "lifespan.shutdown"])
        told: list[Any] = []

        async def receive() -> dict[str, str]:
            return {"type": next(messages)}

        async def send(message: Any) -> None:
            told.append(message["type"])

        await front({"type": "lifespan"}, receive, send)
        assert told == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert (await exchange.done()).body == b'{"old":true}'
        late = Exchange(front, "GET", "/r?wait=60")
        assert (await late.done()).body == b'{"old":true}'

    run(test())


@pytest.mark.parametrize(
    ("query", "seconds"),
    [("wait=5", 5), ("wait=600", 60), ("wait=-1", 0), ("wait=nan", 0), ("wait=x", 0), ("", 0)],
)
def test_a_wait_is_bounded(query: str, seconds: float) -> None:
    scope = {"method": "GET", "path": "/r", "query_string": query.encode()}
    assert wait_seconds(Request(scope, [])) == seconds


class TestStreams:
    CHANNEL = Channel(Kind.RUN, RUN)

    def events(self, first: int, last: int, **private: str) -> Any:
        body = b"".join(b"id: %d\ndata: {}\n\n" % number for number in range(first, last + 1))
        return answer(body, stream=f"run:{RUN}", version=str(last), **private)

    def test_events_are_sent_as_they_come_until_the_stream_ends(self) -> None:
        async def test() -> None:
            django = Django(self.events(1, 2), self.events(3, 3), self.events(4, 5, stream_end="1"))
            versions = Versions({self.CHANNEL: 2})
            exchange = Exchange(Front(django, versions), "GET", "/api/v1/runs/r/events")
            await exchange.until_body_holds(b"id: 2\n")
            assert b"id: 3" not in exchange.body
            versions.versions[self.CHANNEL] = 3
            await exchange.until_body_holds(b"id: 3\n")
            versions.versions[self.CHANNEL] = 5
            await exchange.done()
            assert exchange.body.count(b"id:") == 5
            assert [r.header(b"last-event-id") for r in django.asked] == [None, b"2", b"3"]
            assert exchange.sent[-1] == {
                "type": "http.response.body",
                "body": b"",
                "more_body": False,
            }

        run(test())

    def test_a_caller_who_loses_the_right_gets_nothing_more(self) -> None:
        async def test() -> None:
            refused = answer(b'{"code":"unauthenticated"}', status=401)
            django = Django(self.events(1, 1), refused)
            exchange = Exchange(Front(django, Versions({self.CHANNEL: 2})), "GET", "/e")
            await exchange.done()
            assert exchange.body == b"id: 1\ndata: {}\n\n"

        run(test())

    def test_a_quiet_stream_shows_that_it_lives(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(holding, "SIGN_OF_LIFE_SECONDS", 0.02)

        async def test() -> None:
            versions = Versions({self.CHANNEL: 1})
            exchange = Exchange(Front(Django(self.events(1, 1)), versions), "GET", "/e")
            await exchange.until_body_holds(holding.SIGN_OF_LIFE * 3)
            exchange.left.set()
            await exchange.done()
            assert not versions.waiters

        run(test())

    def test_a_refused_stream_is_an_ordinary_answer(self) -> None:
        async def test() -> None:
            django = Django(answer(b'{"code":"not-found"}', status=404))
            exchange = await Exchange(Front(django, Versions({})), "GET", "/e").done()
            assert (exchange.status, exchange.body) == (404, b'{"code":"not-found"}')

        run(test())
