"""Celery messages for those who send one with nearly every request.

What they carry is Celery's own (message protocol 2). What is left out is what a hint does not need:
the text of its arguments, and a new Redis client for every message; the two were half its cost.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from uuid import uuid4

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES, redis


class Channel(redis.Channel):
    """Sends with one client, where kombu makes one for every message."""

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002 - kombu's
        return self._made(True) if asynchronous else self._sender  # noqa: FBT003 - kombu's

    @cached_property
    def _sender(self) -> Any:
        return self._made(False)  # noqa: FBT003 - kombu's

    def _made(self, asynchronous: bool) -> Any:  # noqa: FBT001 - kombu's
        return super()._create_client(asynchronous)  # type: ignore[misc]  # not in its stubs


class Transport(redis.Transport):
    Channel = Channel


# By its name, since a connection finds its transport again by the name in its address.
TRANSPORT_ALIASES["redis"] = f"{__name__}:Transport"


def send(app: Celery, task: str, names: Mapping[str, str | int]) -> None:
    """Send a message for ``task`` to the default queue; raises what the broker raises."""
    message = app.amqp.as_task_v2(
        str(uuid4()), task, kwargs=dict(names), argsrepr="()", kwargsrepr="{}", ignore_result=True
    )
    queue = app.amqp.default_queue
    with app.producer_pool.acquire(block=True) as producer:
        producer.publish(
            message.body,
            headers=message.headers,
            routing_key=queue.name,
            declare=[queue],
            serializer="json",
            **message.properties,
        )
