"""A worker's consumer that notices that it lost its broker, also when it had no room left to ask.

A message whose acknowledgement failed with the broker's connection is never acknowledged, and takes
a place of the prefetch for ever. With no place left the consumer waits for nothing from the broker,
so it does not see that the connection is gone either: the worker lives, idle, beside a full queue.
"""

from typing import Any

from celery import bootsteps
from celery.worker import state

LOOK_SECONDS = 1.0


class BrokerLost(ConnectionError):
    """The broker that messages came from is gone, and what was sent to acknowledge them."""


class Reconnecting(bootsteps.StartStopStep):
    """Connects anew where places are taken by messages that no request of this worker stands for.

    It looks from a timer of the consumer's own loop, in which every acknowledgement that is due has
    been sent by then; the consumer takes the error for that of its connection.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **kwargs: Any) -> None:
        super().__init__(consumer, **kwargs)
        self.timer: Any = None
        self.was_lost = False

    def start(self, consumer: Any) -> None:
        self.was_lost = False
        if consumer.hub is not None:
            self.timer = consumer.hub.call_repeatedly(LOOK_SECONDS, self.look, consumer)

    def stop(self, _consumer: Any) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def look(self, consumer: Any) -> None:
        """Raise BrokerLost where two looks, one after the other, see places taken by nothing."""
        qos = consumer.task_consumer.channel.qos
        if not qos.prefetch_count:
            return
        taken = qos.prefetch_count - qos.can_consume_max_estimate()
        waiting = sum(not request.acknowledged for request in state.reserved_requests)
        is_lost = taken > waiting
        if is_lost and self.was_lost:
            raise BrokerLost("messages were not acknowledged, and are waited for by nobody")
        self.was_lost = is_lost
