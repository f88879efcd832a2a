"""A broker that is away costs a sender next to nothing, and never fails it for long."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from base64 import b64decode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
import redis
from kombu.exceptions import OperationalError
from kombu.transport.virtual import Channel

from config import sending
from config.celery import SECONDS, Hints
from config.supervisor.broker import broker_answers, broker_program
from config.supervisor.paths import DataFolder
from tests.platform.service import free_port

MOST_SECONDS = 0.25


def hints(url: str) -> Hints:
    app = Hints("test", broker=url, set_as_current=False)
    app.conf.update(
        task_publish_retry=False, task_ignore_result=True, task_default_queue=f"hints-{uuid4()}"
    )
    app.connection_for_write().transport  # noqa: B018 - imports the transport beforehand
    return app


@pytest.fixture(autouse=True)
def broker_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CELERY_BROKER_URL")  # Celery would prefer it


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("b")  # a short path: a socket's address is bounded


def seconds_of_a_refused(app: Hints) -> float:
    began = time.monotonic()
    with pytest.raises((OperationalError, OSError)):
        app.send_task("x.y", kwargs={"id": "1"})
    return time.monotonic() - began


def test_a_broker_that_is_gone_is_given_up_at_once(folder: Path) -> None:
    app = hints(f"redis+socket://{folder}/gone.sock")
    seconds_of_a_refused(app)
    app.quiet_until = 0
    assert seconds_of_a_refused(app) < MOST_SECONDS


def test_a_broker_that_hangs_is_given_up_soon(folder: Path) -> None:
    path = folder / "hangs.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        app = hints(f"redis+socket://{path}")
        seconds_of_a_refused(app)
        app.quiet_until = 0
        assert seconds_of_a_refused(app) < MOST_SECONDS


def test_after_a_failure_nobody_tries_for_a_while(folder: Path) -> None:
    app = hints(f"redis+socket://{folder}/gone.sock")
    seconds_of_a_refused(app)
    app.connection_for_write = lambda **_: pytest.fail("it was tried")  # type: ignore[method-assign]
    seconds_of_a_refused(app)


def test_a_broker_that_is_back_takes_hints_again() -> None:
    app = hints("memory://")
    app.quiet_until = time.monotonic() + 0.05
    seconds_of_a_refused(app)
    time.sleep(0.06)
    app.send_task("x.y", kwargs={"id": "1"})


def test_a_hint_is_a_message_that_a_worker_takes() -> None:
    app = hints("memory://")
    app.send_task("x.y", kwargs={"id": "1"})
    message = taken(app)
    assert message is not None
    args, kwargs, _ = message.decode()
    assert (message.headers["task"], args, kwargs) == ("x.y", [], {"id": "1"})
    assert message.content_type == "application/json"


def taken(app: Hints) -> Any:
    """Take the next message as a worker would; None where there is none."""
    with app.connection_for_read() as connection:
        return app.amqp.default_queue(connection.default_channel).get(no_ack=True)


def test_the_queue_is_declared_with_the_first_hint_only(monkeypatch: pytest.MonkeyPatch) -> None:
    app, declared = hints("memory://"), []
    declare = Channel.queue_declare

    def counted(channel: Channel, queue: str | None = None, *args: Any, **more: Any) -> Any:
        declared.append(queue)
        return declare(channel, queue, *args, **more)

    monkeypatch.setattr(Channel, "queue_declare", counted)
    for number in range(3):
        app.send_task("x.y", kwargs={"id": str(number)})
    assert declared == [app.amqp.default_queue.name]


def test_hints_from_a_thread_are_sent_in_order_and_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = hints("memory://")
    may_send, batches = threading.Event(), []

    def slowly(_: Hints, gathered: Sequence[sending.Hint]) -> None:
        batches.append([hint.names["id"] for hint in gathered])
        may_send.wait(10)

    monkeypatch.setattr("config.celery.send", slowly)
    app.send_from_a_thread()
    app.send_task("x.y", kwargs={"id": 0})
    while not batches:
        time.sleep(0.001)
    for number in range(1, 4):
        app.send_task("x.y", kwargs={"id": number})
    may_send.set()
    while len(batches) < 2:
        time.sleep(0.001)
    assert batches == [[0], [1, 2, 3]]


def test_hints_from_a_thread_are_lost_while_the_broker_is_away_and_sent_again_after(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = hints(f"redis+socket://{folder}/gone.sock")
    app.send_from_a_thread()
    app.send_task("x.y", kwargs={"id": 0})  # raises nothing, and waits for nothing
    while not app.quiet_until:
        time.sleep(0.001)
    sent: list[object] = []
    monkeypatch.setattr("config.celery.send", lambda _, gathered: sent.extend(gathered))
    app.quiet_until = 0
    app.send_task("x.y", kwargs={"id": 1})
    while not sent:
        time.sleep(0.001)
    assert sent == [sending.Hint("x.y", {"id": 1})]


def test_a_broker_that_is_slow_loses_no_hint_of_a_thread(folder: Path) -> None:
    with running(folder) as (place, child):
        app = hints(f"redis+socket://{place.broker_socket}")
        app.send_from_a_thread()
        for number in range(2):  # the second one over the connection that is kept
            child.send_signal(signal.SIGSTOP)
            app.send_task("x.y", kwargs={"id": number})
            time.sleep(3 * SECONDS)
            child.send_signal(signal.SIGCONT)
            message = None
            while message is None and not app.quiet_until:
                message = taken(app)
            assert message is not None
            assert message.decode()[1] == {"id": number}


def test_a_broker_that_took_nothing_is_told_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = hints(f"redis+socket://{folder}/gone.sock")
    for _ in range(3):
        seconds_of_a_refused(app)
    told = [record.getMessage() for record in caplog.records if record.name == "config.celery"]
    assert told == ["the broker took no message (ConnectionError): it is left to the sweep"]


def test_what_is_too_much_to_wait_is_left_to_the_sweep() -> None:
    sender = sending.Sender(lambda _: None)  # not started
    for number in range(sending.MOST_WAITING + 10):
        sender.put(sending.Hint("x.y", {"id": number}))
    assert sender.waiting.qsize() == sending.MOST_WAITING


def test_a_fault_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[object] = []

    def broken_once(gathered: Sequence[sending.Hint]) -> None:
        sent.extend(gathered)
        if len(sent) == 1:
            raise RuntimeError("a fault of ours")

    sender = sending.Sender(broken_once)
    sender.start()
    for number in range(2):
        sender.put(sending.Hint("x.y", {"id": number}))
        while len(sent) <= number:
            time.sleep(0.001)
    assert "could not send 1 hints" in caplog.text


@contextmanager
def broker(folder: Path) -> Iterator[DataFolder]:
    """A broker that is killed at the end of the block."""
    with running(folder) as (place, _):
        yield place


@contextmanager
def running(folder: Path) -> Iterator[tuple[DataFolder, subprocess.Popen[bytes]]]:
    place = DataFolder(folder)
    child = broker_program(place).start()
    try:
        while not broker_answers(place):
            assert child.poll() is None
            time.sleep(0.01)
        yield place, child
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("many", [1, 3])
def test_a_broker_that_is_killed_between_two_hints_is_away_and_then_back(
    folder: Path, many: int
) -> None:
    def together(id: str) -> list[sending.Hint]:  # noqa: A002 - a name of the message
        return [sending.Hint("x.y", {"id": f"{id}-{number}"}) for number in range(many)]

    with broker(folder) as place:
        app = hints(f"redis+socket://{place.broker_socket}")
        sending.send(app, together("1"))
    with pytest.raises((OperationalError, OSError)):
        sending.send(app, together("2"))
    with broker(folder):
        sending.send(app, together("3"))
        messages = [taken(app) for _ in together("3")]
    assert [message.decode()[1] for message in messages] == [one.names for one in together("3")]


def test_what_is_pushed_is_what_kombu_would_push(folder: Path) -> None:
    hint = sending.Hint("x.y", {"id": "1", "epoch": 2})
    with broker(folder) as place:
        app = hints(f"redis+socket://{place.broker_socket}")
        sending.send(app, [hint])  # the first is kombu's
        sending.send(app, [hint])
        channel: Any = app.producer_pool.acquire(block=True).channel
        with channel.conn_or_acquire() as client:
            pushed = client.lrange(app.amqp.default_queue.name, 0, -1)
        ours, kombu_s = map(json.loads, pushed)
    own = [
        {one["headers"]["id"], one["headers"]["root_id"], one["properties"]["correlation_id"]}
        for one in (ours, kombu_s)
    ]
    assert [len(ids) for ids in own] == [1, 1]
    tags = [one["properties"].pop("delivery_tag") for one in (ours, kombu_s)]
    assert tags[0] != tags[1]
    for one in (ours, kombu_s):
        del one["headers"]["id"], one["headers"]["root_id"], one["properties"]["correlation_id"]
    bodies = [json.loads(b64decode(one.pop("body"))) for one in (ours, kombu_s)]
    assert bodies[0] == bodies[1]
    assert ours == kombu_s


def test_a_broker_that_hangs_after_a_hint_costs_the_next_one_little(folder: Path) -> None:
    with running(folder) as (place, child):
        app = hints(f"redis+socket://{place.broker_socket}")
        app.send_task("x.y", kwargs={"id": "kombu's"})
        app.send_task("x.y", kwargs={"id": "over the connection that is kept"})
        child.send_signal(signal.SIGSTOP)
        assert seconds_of_a_refused(app) < MOST_SECONDS
        child.send_signal(signal.SIGCONT)
        app.quiet_until = 0
        app.send_task("x.y", kwargs={"id": "after it"})
        names = [message.decode()[1]["id"] for message in iter(lambda: taken(app), None)]
    # What was refused may have been taken all the same: it is a hint.
    assert set(names) - {"1"} == {
        "kombu's", "over the connection that is kept", "after it",
    }  # fmt: skip


def test_a_process_that_was_forked_has_a_connection_of_its_own(folder: Path) -> None:
    with broker(folder) as place:
        app = hints(f"redis+socket://{place.broker_socket}")
        for number in range(2):
            app.send_task("x.y", kwargs={"id": number})
        with pytest.MonkeyPatch.context() as forked:
            forked.setattr(os, "getpid", lambda: 1)
            of_the_first = sending._ways[app]
            app.send_task("x.y", kwargs={"id": 2})
            app.send_task("x.y", kwargs={"id": 3})
            of_the_fork = sending._ways[app]
        names = [message.decode()[1]["id"] for message in iter(lambda: taken(app), None)]
    assert names == [0, 1, 2, 3]
    assert of_the_fork.link is not of_the_first.link


def at(place: DataFolder) -> Any:
    """Return a client of the broker that is not the sender's; its stubs are older."""
    return redis.Redis(unix_socket_path=str(place.broker_socket))


def ids_of(app: Hints) -> list[object]:
    return [message.decode()[1]["id"] for message in iter(lambda: taken(app), None)]


def test_a_connection_that_the_broker_closed_meanwhile_costs_no_hint(folder: Path) -> None:
    with broker(folder) as place:
        app, client = hints(f"redis+socket://{place.broker_socket}"), at(place)
        for number in range(2):
            app.send_task("x.y", kwargs={"id": number})
        client.client_kill_filter(_type="normal", skipme=True)  # as its `timeout` does
        app.send_task("x.y", kwargs={"id": 2})
        assert ids_of(app) == [0, 1, 2]


def test_a_connection_is_made_anew_as_its_kind_is_made(folder: Path) -> None:
    """One through Sentinel asks there for its master, in nothing but `connect`."""
    with broker(folder) as place:
        app = hints(f"redis+socket://{place.broker_socket}")
        app.send_task("x.y", kwargs={"id": 0})
        link = sending._ways[app].link
        for _ in range(2):
            with patch.object(link, "connect", wraps=link.connect) as made:
                app.send_task("x.y", kwargs={"id": 1})
            assert made.call_count == 1
            link.disconnect()


def test_a_broker_that_refuses_now_and_then_takes_hints_each_time_it_is_well(folder: Path) -> None:
    with broker(folder) as place:
        app, client = hints(f"redis+socket://{place.broker_socket}"), at(place)
        for number in range(12):  # more than a pool of kombu's makes connections
            app.send_task("x.y", kwargs={"id": number})
            client.config_set("maxmemory", 1)
            seconds_of_a_refused(app)
            client.config_set("maxmemory", 0)
            app.quiet_until = 0
        assert ids_of(app) == list(range(12))


def test_who_send_at_once_do_not_wait_one_after_the_other_for_a_broker_that_hangs(
    folder: Path,
) -> None:
    with running(folder) as (place, child):
        app = hints(f"redis+socket://{place.broker_socket}")
        for number in range(2):
            app.send_task("x.y", kwargs={"id": number})
        child.send_signal(signal.SIGSTOP)
        with ThreadPoolExecutor(6) as pool:
            took = list(pool.map(lambda _: seconds_of_a_refused(app), range(6)))
        child.send_signal(signal.SIGCONT)
    assert max(took) < MOST_SECONDS


def test_hints_go_where_the_keys_of_the_broker_begin(folder: Path) -> None:
    with broker(folder) as place:
        app = hints(f"redis+socket://{place.broker_socket}")
        app.conf.broker_transport_options = {"global_keyprefix": "ours:"}
        for number in range(2):
            app.send_task("x.y", kwargs={"id": number})
        assert ids_of(app) == [0, 1]


def test_an_answer_that_was_not_waited_for_is_not_the_next_ones(folder: Path) -> None:
    with broker(folder) as place:
        app, client = hints(f"redis+socket://{place.broker_socket}"), at(place)
        for number in range(2):
            app.send_task("x.y", kwargs={"id": number})
        link = sending._ways[app].link
        client.config_set("maxmemory", 1)
        with (
            patch.object(link, "read_response", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            app.send_task("x.y", kwargs={"id": 2})
        assert not link.is_connected


def test_a_broker_behind_a_password_takes_them_in_the_database_that_is_named(folder: Path) -> None:
    with broker(folder) as place:
        client, port = at(place), free_port()
        client.config_set("bind", "127.0.0.1")
        client.config_set("port", port)
        client.config_set("requirepass", "s3cret")
        app = hints(f"redis://:s3cret@127.0.0.1:{port}/1")
        for number in range(3):
            app.send_task("x.y", kwargs={"id": number})
        client = redis.Redis(port=port, db=1, password="s3cret")
        assert client.llen(app.amqp.default_queue.name) == 3
