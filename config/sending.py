"""Celery messages for those who send one with nearly every request.

What they carry is Celery's own (message protocol 2), but for a text of the arguments, which nobody
reads. A web process sends them from a thread of its own, those that gather meanwhile in one batch:
a request is answered without a word with the broker. One that is lost with its process is found by
the sweep, as any lost hint is.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakKeyDictionary

from celery import Celery
from kombu import Connection, serialization
from kombu.exceptions import (  # type: ignore[attr-defined]  # its stubs are older
    BatchPublishError,
    OperationalError,
)
from kombu.transport.redis import Channel as RedisChannel
from kombu.utils import json

logger = logging.getLogger(__name__)

AT_ONCE = 100
# While the broker is away nothing is to pile up: what is beyond this is left to the sweep.
MOST_WAITING = 1000
# The queue that was declared over a connection: to say it with each message takes longer than to send.
_declared: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()
# By channel: kombu's client of it, over the channel's own connections.
_clients: WeakKeyDictionary[RedisChannel, Any] = WeakKeyDictionary()
PERSISTENT = 2  # AMQP's delivery mode


class Hint(NamedTuple):
    """The name of a task and the ids it is called with."""

    task: str
    names: Mapping[str, str | int]


def send(app: Celery, hints: Sequence[Hint]) -> None:
    """Send messages to the default queue in one batch; OperationalError where the broker is away."""
    producer: Any  # batches are not in its stubs
    with app.producer_pool.acquire(block=True) as producer:
        away = producer.connection.connection_errors + producer.connection.channel_errors
        try:
            _declare(app, producer)
            if isinstance(producer.channel, RedisChannel):
                _push(app, producer.channel, hints)
                return
            with producer.batch() if len(hints) > 1 else nullcontext():
                for hint in hints:
                    _publish(app, producer, hint)
        except (*away, BatchPublishError) as fault:
            raise OperationalError(str(fault)) from fault


def _push(app: Celery, channel: Any, hints: Sequence[Hint]) -> None:
    """Push what kombu would, in one command, over a client that is kept: it makes one a message."""
    queue = app.amqp.default_queue.name
    client = _clients.get(channel)
    if client is None:
        with channel.conn_or_acquire() as client:
            _clients[channel] = client
    client.lpush(queue, *(_packed(app, channel, queue, hint) for hint in hints))


def _packed(app: Celery, channel: Any, queue: str, hint: Hint) -> str:
    made = _message(app, hint)
    content_type, encoding, body = serialization.dumps(made.body, serializer="json")
    message = channel.prepare_message(
        body,
        content_type=content_type,
        content_encoding=encoding,
        headers=made.headers,
        properties={**made.properties, "delivery_mode": PERSISTENT},
    )
    channel._inplace_augment_message(message, "", queue)  # noqa: SLF001 - kombu has no other name
    packed: str = json.dumps(message)
    return packed


def _declare(app: Celery, producer: Any) -> None:
    """Have the queue be there: whoever sends first may be earlier than any worker."""
    connection, queue = producer.connection, app.amqp.default_queue
    if _declared.get(connection) != queue.name:
        producer.maybe_declare(queue)
        _declared[connection] = queue.name


def _message(app: Celery, hint: Hint) -> Any:
    return app.amqp.as_task_v2(
        str(uuid4()),
        hint.task,
        kwargs=dict(hint.names),
        argsrepr="()",
        kwargsrepr="{}",
        ignore_result=True,
    )


def _publish(app: Celery, producer: Any, hint: Hint) -> None:
    message = _message(app, hint)
    producer.publish(
        message.body,
        headers=message.headers,
        routing_key=app.amqp.default_queue.name,
        serializer="json",
        **message.properties,
    )


class Sender(threading.Thread):
    """Sends what is put, in order, for as long as the process lives."""

    def __init__(self, send: Callable[[Sequence[Hint]], None]) -> None:
        super().__init__(name="hints", daemon=True)
        self.send = send
        self.waiting: SimpleQueue[Hint] = SimpleQueue()

    def put(self, hint: Hint) -> None:
        """Have a hint sent soon; it is dropped where too many wait."""
        if self.waiting.qsize() < MOST_WAITING:
            self.waiting.put(hint)

    def run(self) -> None:
        while True:
            hints = self._gathered()
            try:
                self.send(hints)
            except Exception:  # whatever it is: every later hint would be lost with the thread
                logger.exception("could not send %d hints", len(hints))

    def _gathered(self) -> list[Hint]:
        hints = [self.waiting.get()]
        try:
            while len(hints) < AT_ONCE:
                hints.append(self.waiting.get_nowait())
        except Empty:
            pass
        return hints
