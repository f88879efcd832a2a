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
from kombu import Connection
from kombu.exceptions import (  # type: ignore[attr-defined]  # its stubs are older
    BatchPublishError,
    OperationalError,
)

logger = logging.getLogger(__name__)

AT_ONCE = 100
# While the broker is away nothing is to pile up: what is beyond this is left to the sweep.
MOST_WAITING = 1000
# The queue that was declared over a connection: to say it with each message takes longer than to send.
_declared: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()


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
            with producer.batch() if len(hints) > 1 else nullcontext():
                for hint in hints:
                    _publish(app, producer, hint)
        except (*away, BatchPublishError) as fault:
            raise OperationalError(str(fault)) from fault


def _declare(app: Celery, producer: Any) -> None:
    """Have the queue be there: whoever sends first may be earlier than any worker."""
    connection, queue = producer.connection, app.amqp.default_queue
    if _declared.get(connection) != queue.name:
        producer.maybe_declare(queue)
        _declared[connection] = queue.name


def _publish(app: Celery, producer: Any, hint: Hint) -> None:
    queue = app.amqp.default_queue
    message = app.amqp.as_task_v2(
        str(uuid4()),
        hint.task,
        kwargs=dict(hint.names),
        argsrepr="()",
        kwargsrepr="{}",
        ignore_result=True,
    )
    producer.publish(
        message.body,
        headers=message.headers,
        routing_key=queue.name,
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
