"""What is sent again, under which key, for how long, and what is not."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from abeyance import Abeyance, ProblemError, Unauthenticated, Unreachable
from abeyance.testing.engine import VirtualClock

RUN = {"id": "r-1", "status": "running", "guidance": [], "session": 1}


class Wire:
    """Answers the requests in turn as a test says; then as a service that is well."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[httpx.Request] = []
        self.clock = VirtualClock()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        answer = self.answers.pop(0) if self.answers else httpx.Response(200, json=RUN)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, **more: Any) -> Abeyance:
        http = httpx.Client(transport=httpx.MockTransport(self))
        return Abeyance("http://abeyance.test/", "aby_agent_x", http=http, clock=self.clock, **more)

    @property
    def keys(self) -> list[str]:
        return [one.headers.get("idempotency-key", "") for one in self.sent]


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "status": status}, headers=headers)


AWAY = [
    httpx.ConnectError("refused"),
    httpx.ReadError("reset"),
    httpx.ReadTimeout("slow"),
    httpx.RemoteProtocolError("cut off"),
    problem(503, "unavailable"),
    httpx.Response(502, text="<html>bad gateway"),
    httpx.Response(504, text="<html>gateway timeout"),
    problem(409, "request-in-progress"),
    problem(429, "too-many-requests"),
]


@pytest.mark.parametrize("fault", AWAY, ids=lambda fault: str(getattr(fault, "status_code", fault)))
def test_a_post_that_got_no_answer_is_sent_again_under_its_key(fault: Any) -> None:
    wire = Wire(fault, fault, httpx.Response(201, json=RUN))
    wire.client().run("refunds", "Refund")
    assert len(set(wire.keys[:3])) == 1
    assert wire.keys[0]
    assert [one.content for one in wire.sent[:2]] == [wire.sent[2].content] * 2


def test_each_post_has_a_key_of_its_own_and_a_get_has_none() -> None:
    wire = Wire()
    run = wire.client().run("refunds", "Refund")
    run.refresh()
    posts = [one for one in wire.sent if one.method == "POST"]
    gets = [one for one in wire.sent if one.method == "GET"]
    assert len({one.headers["idempotency-key"] for one in posts}) == len(posts) == 2
    assert not any("idempotency-key" in one.headers for one in gets)
    assert all(one.headers["authorization"] == "Bearer aby_agent_x" for one in wire.sent)


def test_pauses_grow_and_are_bounded() -> None:
    wire = Wire(*[httpx.ConnectError("refused")] * 12)
    pauses = []
    sleep = wire.clock.sleep
    wire.clock.sleep = lambda seconds: (pauses.append(seconds), sleep(seconds))[1]  # type: ignore[method-assign]
    wire.client(patience=1000).run("refunds", "Refund")
    assert len(pauses) == 12
    assert pauses[0] <= 0.2
    assert 5 <= max(pauses) <= 10
    assert sum(pauses[:3]) < sum(pauses[3:6])


def test_a_service_that_asks_for_time_gets_it() -> None:
    wire = Wire(problem(503, "unavailable", **{"Retry-After": "7"}))
    wire.client().run("refunds", "Refund")
    assert 7 <= wire.clock.now() < 8


def test_patience_ends_and_says_what_is_known() -> None:
    wire = Wire(*[httpx.ConnectError("refused")] * 1000)
    with pytest.raises(Unreachable) as caught:
        wire.client(patience=30).run("refunds", "Refund")
    assert 15 < wire.clock.now() <= 30
    assert "refused" in str(caught.value)
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    assert "do not make it in another way" in caught.value.tell_model


@pytest.mark.parametrize(
    "answer",
    [problem(500, "internal-error"), problem(401, "unauthenticated"), problem(409, "run-ended")],
)
def test_a_refusal_is_not_repeated(answer: httpx.Response) -> None:
    wire = Wire(answer)
    with pytest.raises(ProblemError) as caught:
        wire.client().run("refunds", "Refund")
    assert caught.value.code == answer.json()["code"]
    assert len(wire.sent) == 1


def test_a_key_that_is_not_valid_is_said_to_be_so() -> None:
    with pytest.raises(Unauthenticated):
        Wire(problem(401, "unauthenticated")).client().run("refunds", "Refund")


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>hello"),
        httpx.Response(404, text="no such page"),
        httpx.Response(302, headers={"Location": "https://elsewhere.test/"}),
        httpx.Response(200, json=[1]),
    ],
)
def test_an_answer_of_something_else_is_told_apart(answer: httpx.Response) -> None:
    wire = Wire(answer)
    with pytest.raises(ProblemError) as caught:
        wire.client().run("refunds", "Refund")
    assert caught.value.code == "unexpected-answer"
    assert len(wire.sent) == 1


def test_an_address_that_is_none_is_a_fault_of_the_program() -> None:
    with pytest.raises(httpx.UnsupportedProtocol), Abeyance("127.0.0.1:1", "k") as client:
        client.run("refunds", "Refund")


def test_only_what_was_given_is_sent() -> None:
    wire = Wire()
    wire.client().run("refunds", "Refund", key="mine", budget={"cost": "5.00"})
    assert wire.keys[0] == "mine"
    assert json.loads(wire.sent[0].content) == {
        "workflow": "refunds",
        "goal": "Refund",
        "budget": {"cost": "5.00"},
    }
    assert str(wire.sent[0].url) == "http://abeyance.test/api/v1/runs"


def test_a_client_of_ones_own_is_left_open_and_ours_is_closed() -> None:
    wire = Wire()
    http = httpx.Client(transport=httpx.MockTransport(wire))
    with Abeyance("http://abeyance.test", "k", http=http) as client:
        client.run("refunds", "Refund")
    assert not http.is_closed
    with Abeyance("http://abeyance.test", "k") as ours:
        connection = ours._connection
    assert connection.http.is_closed
