"""The Celery application. Its messages are hints: whoever sends one goes on without a broker."""

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from celery import Celery
from celery.signals import worker_process_init, worker_shutting_down
from kombu import Connection
from kombu.exceptions import OperationalError

from config.consuming import Reconnecting
from config.sending import Hint, Sender, send
from config.stopping import stop

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

# Whoever sends a hint waits for the broker this long, once; then nobody tries for a while. A thread
# that sends for others keeps nobody waiting: a broker that is only slow, as all are on a busy
# machine, is to lose none of its hints.
SECONDS, SECONDS_OF_A_THREAD = 0.1, 2.0
QUIET_SECONDS = 1.0

logger = logging.getLogger(__name__)


def hint_options(seconds: float) -> dict[str, float]:
    """Return the transport's options for one try of ``seconds``."""
    return {
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
        "interval_max": 0,
        "connect_retries_timeout": seconds,
        "socket_connect_timeout": seconds,
        "socket_timeout": seconds,
    }


class Hints(Celery):
    """Celery whose senders lose a hint rather than time when the broker is away or hangs."""

    quiet_until = 0.0
    sender: Sender | None = None

    def send_from_a_thread(self) -> None:
        """Have hints sent from a thread of their own from now on."""
        self.sender = Sender(self._send_or_lose)
        self.sender.start()

    def connection_for_write(self, url: str | None = None, **kwargs: Any) -> Connection:
        waits = hint_options(SECONDS if self.sender is None else SECONDS_OF_A_THREAD)
        options = {**kwargs.pop("transport_options", {}), **waits}
        return super().connection_for_write(url, transport_options=options, **kwargs)

    def send_task(
        self, name: str, args: Any = None, kwargs: Any = None, *more: Any, **options: Any
    ) -> Any:
        """Send a message; OperationalError at once where the broker has just failed to take one.

        One that has nothing but keyword arguments is a hint, of which there is no result to ask
        for; where hints are sent from a thread it is lost if the broker is away.
        """
        if args or more or options:
            with self._quiet_after_a_failure():
                return super().send_task(name, args, kwargs, *more, **options)
        hint = Hint(name, kwargs or {})
        if self.sender is not None:
            self.sender.put(hint)
        else:
            self._send([hint])
        return None

    def _send(self, hints: Sequence[Hint]) -> None:
        with self._quiet_after_a_failure():
            send(self, hints)

    def _send_or_lose(self, hints: Sequence[Hint]) -> None:
        with suppress(OperationalError, OSError):
            self._send(hints)

    @contextmanager
    def _quiet_after_a_failure(self) -> Iterator[None]:
        if time.monotonic() < self.quiet_until:
            raise OperationalError("the broker took no message a moment ago")
        try:
            yield
        except (OperationalError, OSError) as fault:
            self.quiet_until = time.monotonic() + QUIET_SECONDS
            reason = type(fault.__cause__ or fault).__name__
            logger.warning("the broker took no message (%s): it is left to the sweep", reason)
            raise


# The pool is forked from the process that reads this, and is to know it.
_WORKER = os.getpid()

app = Hints("abeyance")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add(Reconnecting)


@worker_shutting_down.connect
def tell_the_pool(**_: object) -> None:
    stop()


@worker_process_init.connect
def die_with_worker(**_: object) -> None:
    """Leave no pool process behind when the worker is killed outright."""
    from config.supervisor.processes import die_with_parent  # noqa: PLC0415 - needs Linux

    die_with_parent(_WORKER)
