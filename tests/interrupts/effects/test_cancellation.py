"""What a cancel leaves of a call: nothing was sent, an answer that had come, or nobody knows."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from interrupts.effects import Call, Effect, Observed, Outcome
from interrupts.effects.cancellation import Cancellation
from tests.interrupts.effects.far_end import FarEnd, answering, raw_answer
from tests.threads import PATIENCE

LONG = 120.0  # seconds: nothing in these tests ends by its timeout


@pytest.fixture
def call(call: Call) -> Call:
    return replace(call, timeout=LONG, cancellation=Cancellation())


@pytest.fixture
def beside() -> Iterator[Callable[..., Future[Any]]]:
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit


class Hanging:
    """Says what it is given and then nothing more, until the other side has gone."""

    def __init__(self, said: bytes = b"") -> None:
        self.said, self.reached, self.left = said, threading.Event(), threading.Event()

    def __call__(self, connection: socket.socket, _asked: Any) -> None:
        connection.sendall(self.said)
        self.reached.set()
        with contextlib.suppress(OSError):
            connection.recv(1)
        self.left.set()


def cut(beside: Any, effect: Effect, call: Call, hanging: Hanging) -> Observed:
    """Make the call, and cancel it once the far end has said what it says."""
    seen = beside(effect.execute, call)
    assert hanging.reached.wait(PATIENCE)
    call.cancellation.ask()
    observed: Observed = seen.result(PATIENCE)
    assert hanging.left.wait(PATIENCE)
    return observed


def test_a_call_that_is_not_answered_ends_and_its_outcome_is_unknown(
    beside: Any, effect: Effect, far_end: FarEnd, call: Call
) -> None:
    hanging = far_end.behave = Hanging()
    observed = cut(beside, effect, call, hanging)
    assert observed.outcome is Outcome.UNKNOWN
    assert observed.error == (
        "The call was cancelled before the far end had answered. Whether it acted is not known."
    )
    assert len(far_end.asked) == 1


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n", id="without its body"),
        # Its body would be whole with the end of the connection.
        pytest.param(b'HTTP/1.1 200 OK\r\n\r\n{"result": 1}', id="whole"),
        pytest.param(b"HTTP/1.1 404 Not Fo", id="in its head"),
        pytest.param(b"HTTP/1.1 102 Processing\r\n\r\n", id="not begun"),
    ],
)
def test_an_answer_that_was_cut_proves_nothing(
    beside: Any, effect: Effect, far_end: FarEnd, call: Call, begun: bytes
) -> None:
    hanging = far_end.behave = Hanging(begun)
    assert cut(beside, effect, call, hanging).outcome is Outcome.UNKNOWN


def test_a_request_that_was_cut_half_sent_is_unknown(beside: Any, effect: Effect, call: Call):
    """Its far end takes the connection and reads nothing of it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        stuck = replace(effect, url=f"http://127.0.0.1:{port}/")  # type: ignore[type-var]
        stuck = replace(stuck, allowed_hosts=frozenset({f"127.0.0.1:{port}"}))
        large = replace(call, arguments=b'{"a":"%b"}' % (b"x" * 30_000_000))
        seen = beside(stuck.execute, large)
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(1)  # it is being sent
            large.cancellation.ask()
            assert seen.result(PATIENCE).outcome is Outcome.UNKNOWN


def test_what_is_cancelled_before_it_is_sent_was_not_performed(
    effect: Effect, far_end: FarEnd, call: Call
) -> None:
    call.cancellation.ask()
    observed = effect.execute(call)
    assert (observed.outcome, observed.sent) == (Outcome.NOT_PERFORMED, False)
    assert observed.error == "The call was cancelled before anything of it was sent."
    assert far_end.asked == []


def test_a_name_that_is_not_resolved_is_waited_for_no_longer(
    beside: Any, effect_at: Any, far_end: FarEnd, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def look_up(*_: Any, **__: Any) -> Any:
        asked.set()
        answer.wait(PATIENCE)
        raise OSError("no such name")

    monkeypatch.setattr("interrupts.effects.addresses.socket.getaddrinfo", look_up)
    seen = beside(effect_at("http://slow.example/").execute, call)
    assert asked.wait(PATIENCE)
    call.cancellation.ask()
    observed = seen.result(PATIENCE)
    answer.set()
    assert (observed.outcome, observed.sent) == (Outcome.NOT_PERFORMED, False)
    assert far_end.connections == 0


def test_a_handshake_that_hangs_is_cut_and_nothing_was_sent(
    beside: Any, effect_at: Any, call: Call
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        authority = f"127.0.0.1:{listener.getsockname()[1]}"
        seen = beside(effect_at(f"https://{authority}/", [authority]).execute, call)
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(1)  # of its greeting
            call.cancellation.ask()
            observed = seen.result(PATIENCE)
    assert (observed.outcome, observed.sent) == (Outcome.NOT_PERFORMED, False)


def test_a_cancel_after_the_answer_changes_nothing(
    effect: Effect, far_end: FarEnd, call: Call
) -> None:
    far_end.behave = answering(200, {"result": 7})
    observed = effect.execute(call)
    call.cancellation.ask()
    assert (observed.outcome, observed.result) == (Outcome.SUCCEEDED, 7)


def test_an_answer_that_had_come_is_read_although_it_is_cut(
    beside: Any, effect: Effect, far_end: FarEnd, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is held up between what it sent and its reading; both come meanwhile."""
    from interrupts.effects import exchange

    hanging = far_end.behave = Hanging(raw_answer(200, b'{"result":7}'))
    receive = exchange._receive

    def held_up(connection: socket.socket, *rest: Any) -> Any:
        assert hanging.reached.wait(PATIENCE)
        connection.recv(1, socket.MSG_PEEK)  # it is here
        call.cancellation.ask()
        return receive(connection, *rest)

    monkeypatch.setattr(exchange, "_receive", held_up)
    observed = effect.execute(call)
    assert (observed.outcome, observed.result) == (Outcome.SUCCEEDED, 7)


def test_a_definite_refusal_stays_one_although_its_body_is_cut(
    beside: Any, effect: Effect, far_end: FarEnd, call: Call
) -> None:
    hanging = far_end.behave = Hanging(b"HTTP/1.1 403 No\r\nContent-Length: 50\r\n\r\n")
    assert cut(beside, effect, call, hanging).outcome is Outcome.FAILED
