"""Celery messages for those who send one with nearly every request.

What they carry is Celery's own (message protocol 2), but for a text of the arguments, which nobody
reads. A web process sends them from a thread of its own, those that gather meanwhile in one batch:
a request is answered without a word with the broker. One that is lost with its process is found by
the sweep, as any lost hint is.
"""

import json
import logging
import os
import threading
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from queue import Empty, SimpleQueue
from threading import Lock
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
_ways: WeakKeyDictionary[Celery, "_Way"] = WeakKeyDictionary()
PERSISTENT = 2  # AMQP's delivery mode


class Hint(NamedTuple):
    """The name of a task and the ids it is called with."""

    task: str
    names: Mapping[str, str | int]


def send(app: Celery, hints: Sequence[Hint]) -> None:
    """Send messages to the default queue in one batch; OperationalError where the broker is away."""
    if (way := _ways.get(app)) is not None and way.process == os.getpid():
        _push(app, way, hints)
        return
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
        if producer.connection.transport.driver_type == "redis":
            _ways[app] = _way_of(producer.channel, app.amqp.default_queue.name, away)


class _Way(NamedTuple):
    """How hints go to Redis once one has gone there: kombu makes a client for each message.

    A connection of its own, one command at a time: what Redis' client does around a command takes
    longer than the command. A process that was forked from this one does not use it.
    """

    link: Any
    lock: Lock
    process: int
    queue: str
    away: tuple[type[Exception], ...]


def _way_of(channel: Any, queue: str, away: tuple[type[Exception], ...]) -> _Way:
    with channel.conn_or_acquire() as client:
        pool = client.connection_pool
    # Not one that the pool makes: it counts those, and makes no more after ten.
    link = pool.connection_class(**pool.connection_kwargs)
    return _Way(link, Lock(), os.getpid(), channel.global_keyprefix + queue, away)


def _push(app: Celery, way: _Way, hints: Sequence[Hint]) -> None:
    """Push what kombu would, in one command; after a failure kombu tries again."""
    messages = [_packed(_pattern(app, hint.task), hint) for hint in hints]
    with way.lock:
        if app not in _ways:  # who waited here is not to wait for the same broker as well
            raise OperationalError("the broker took no message a moment ago")
        try:
            _command(way, "LPUSH", way.queue, *messages)
        except way.away as fault:
            _ways.pop(app, None)
            raise OperationalError(str(fault)) from fault


def _command(way: _Way, *words: str) -> None:
    """Have Redis do one command, over a new connection where the other end has closed this one."""
    link = way.link
    try:
        if link.is_connected and _ended(way):
            link.disconnect()
        if not link.is_connected:
            link.connect()  # to send would connect as well, but past Sentinel
        link.send_packed_command(link.pack_command(*words), check_health=False)
        link.read_response()
    except BaseException:  # an answer that comes after it would be taken for the next one's
        link.disconnect()
        raise


def _ended(way: _Way) -> bool:
    """Return whether a connection is closed, or holds what nobody asked for."""
    try:
        return bool(way.link.can_read())
    except way.away:
        return True


_NAME, _TAG, _BODY = (f"\u241f{word}\u241f" for word in ("name", "tag", "body"))


class _Pattern(NamedTuple):
    """A task's message, with places for its ids and arguments, and what its body ends with."""

    text: str
    embedded: str


@lru_cache(maxsize=100)
def _pattern(app: Celery, task: str) -> _Pattern:
    made = app.amqp.as_task_v2(
        _NAME, task, kwargs={}, argsrepr="()", kwargsrepr="{}", ignore_result=True
    )
    message = {
        "body": _BODY,
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": made.headers,
        "properties": {
            **made.properties,
            "delivery_mode": PERSISTENT,
            "delivery_info": {"exchange": "", "routing_key": app.amqp.default_queue.name},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": _TAG,
        },
    }
    return _Pattern(json.dumps(message, ensure_ascii=False), json.dumps(made.body[2]))


def _packed(pattern: _Pattern, hint: Hint) -> str:
    body = f"[[], {json.dumps(hint.names)}, {pattern.embedded}]".encode()
    name = str(uuid4())
    made = pattern.text.replace(_NAME, name).replace(_TAG, str(uuid4()))
    return made.replace(_BODY, b64encode(body).decode())


def _declare(app: Celery, producer: Any) -> None:
    """Have the queue be there: whoever sends first may be earlier than any worker."""
    connection, queue = producer.connection, app.amqp.default_queue
    if _declared.get(connection) != queue.name:
        producer.maybe_declare(queue)
        _declared[connection] = queue.name


def _publish(app: Celery, producer: Any, hint: Hint) -> None:
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
