"""A broker that is away costs a sender next to nothing, and never fails it for long."""

import socket
import time
from pathlib import Path

import pytest
from kombu.exceptions import OperationalError
from redis import ConnectionPool, Redis

from config import sending
from config.celery import Hints

MOST_SECONDS = 0.25


def hints(url: str) -> Hints:
    app = Hints("test", broker=url, set_as_current=False)
    app.conf.update(task_publish_retry=False, task_ignore_result=True)
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
    assert seconds_of_a_refused(app) < 0.01


def test_a_broker_that_is_back_takes_hints_again() -> None:
    app = hints("memory://")
    app.quiet_until = time.monotonic() + 0.05
    seconds_of_a_refused(app)
    time.sleep(0.06)
    app.send_task("x.y", kwargs={"id": "1"})


def test_hints_to_redis_are_sent_with_one_client(folder: Path) -> None:
    connection = hints(f"redis+socket://{folder}/gone.sock").connection_for_write()
    assert connection.get_transport_cls() is sending.Transport
    assert connection.clone().get_transport_cls() is sending.Transport
    channel = object.__new__(sending.Channel)
    channel._pool, channel.Client = ConnectionPool(), Redis
    assert channel._create_client() is channel._create_client()
    assert channel._create_client().connection_pool is channel._pool


def test_a_hint_is_a_message_that_a_worker_takes() -> None:
    app = hints("memory://")
    app.send_task("x.y", kwargs={"id": "1"})
    with app.connection_for_read() as connection:
        message = app.amqp.default_queue(connection.default_channel).get(no_ack=True)
    assert message is not None
    args, kwargs, _ = message.decode()
    assert (message.headers["task"], args, kwargs) == ("x.y", [], {"id": "1"})
    assert message.content_type == "application/json"
