"""A door before PostgreSQL that counts how often a client waits for the server."""

import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

PORT = 5432
CHUNK = 1 << 16
TERMINATE = b"X\x00\x00\x00\x04"


def socket_in(folder: Path) -> str:
    """Return the path of the server's socket in a folder, as libpq names it."""
    return str(folder / f".s.PGSQL.{PORT}")


class Wire:
    """Passes a Unix socket's traffic on and counts the turns from server back to client.

    A round trip is one turn: the client speaks after the server spoke last. A pipeline is one
    round trip, a prepare that is waited for is one more. What the server says is held back for
    ``delay`` seconds, so that a client that does not wait for it has gone on meanwhile. It works
    for any driver and any process, and costs time: nothing is timed through it.
    """

    def __init__(self, server: Path, delay: float = 0.001) -> None:
        self._delay = delay
        self._server = socket_in(server)
        self._folder = tempfile.TemporaryDirectory(prefix="abeyance-wire-")
        self._door = socket.socket(socket.AF_UNIX)
        self._open: list[socket.socket] = [self._door]
        self._counting = threading.Lock()
        self.round_trips = 0

    @property
    def folder(self) -> Path:
        """The folder whose socket clients connect to in place of the server's."""
        return Path(self._folder.name)

    def __enter__(self) -> Self:
        self._door.bind(socket_in(self.folder))
        self._door.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in self._open:
            # Whoever reads it now reads its end.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._open += (client, server)
            connection = _Connection(self._count, self._delay)
            for pump in (
                (client, server, connection.client_spoke),
                (server, client, connection.server_spoke),
            ):
                threading.Thread(target=_pass_on, args=pump, daemon=True).start()

    def _count(self) -> None:
        with self._counting:
            self.round_trips += 1


class _Connection:
    """Who spoke last on one connection."""

    def __init__(self, count: Callable[[], None], delay: float) -> None:
        self._count = count
        self._delay = delay
        self._servers_turn_was_last = True

    def client_spoke(self, chunk: bytes) -> None:
        if self._servers_turn_was_last and chunk != TERMINATE:
            self._count()
            self._servers_turn_was_last = False

    def server_spoke(self, _chunk: bytes) -> None:
        time.sleep(self._delay)
        self._servers_turn_was_last = True


def _pass_on(source: socket.socket, target: socket.socket, heard: Callable[[bytes], None]) -> None:
    """Pass on what comes until one side ends; a turn is noted before the other side hears of it."""
    with suppress(OSError):
        while chunk := source.recv(CHUNK):
            heard(chunk)
            target.sendall(chunk)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
