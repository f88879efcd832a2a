"""A call that is asked to be cancelled while it is made, from another thread than its own.

To cancel is to close the call's connection: nothing more is sent and nothing more is read. What
that proves is only what was known before: nothing of it was sent, or nobody knows.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock


class Cancelled(Exception):
    """The call was asked to be cancelled before what was about to begin."""


class Cancellation:
    """Whether one call was asked to be cancelled, and what ends its wait if it is."""

    __slots__ = ("_asked", "_end", "_lock")

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked = False
        self._end: Callable[[], None] | None = None

    @property
    def asked(self) -> bool:
        return self._asked

    def ask(self) -> None:
        """Cancel the call: end what it waits for now, and let it begin nothing else."""
        with self._lock:
            self._asked = True
            if self._end is not None:
                self._end()

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """Have a wait ended by ``end`` if the call is cancelled. Raises `Cancelled` where it was.

        After the block ``end`` is not called any more, nor being called.
        """
        with self._lock:
            if self._asked:
                raise Cancelled
            self._end = end
        try:
            yield
        finally:
            with self._lock:
                self._end = None

    @contextmanager
    def closing(self, connection: socket.socket) -> Iterator[None]:
        """Have the connection shut if the call is cancelled. Raises `Cancelled` where it was."""

        def shut() -> None:
            with suppress(OSError):
                # The plain socket's own: that of TLS first forgets that it is encrypted, and what
                # its thread is about to send would leave in clear.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

        with self.ending(shut):
            yield
