"""A closed loop of requests over a few kept connections, from one thread."""

import selectors
import socket
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.client import CHUNK, BadAnswer, Buffer, clock, connect

CONNECTIONS = 8


@dataclass(slots=True)
class Load:
    """What came of a load."""

    seconds: float = 0.0
    own_seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    @property
    def per_second(self) -> float:
        """Answers per second."""
        return len(self.latencies) / self.seconds

    @property
    def own_share(self) -> float:
        """The part of one processor that the load itself took, 0..1."""
        return self.own_seconds / self.seconds

    def expect(self, status: int) -> None:
        """Raise BadAnswer unless every answer had this status."""
        if set(self.statuses) != {status}:
            raise BadAnswer(f"{status} was expected of each: {dict(self.statuses)}")


class _Lane:
    """One connection: the request on its way and what of its answer has come."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.buffer = Buffer()
        self.sent_at = 0.0

    def send(self, request: bytes) -> None:
        self.sent_at = clock()
        self.connection.sendall(request)


def drive(port: int, requests: Iterable[bytes], connections: int = CONNECTIONS) -> Load:
    """Send every request, each connection its next one as soon as it has its answer."""
    waiting = deque(requests)
    load = Load()
    lanes = [_Lane(connect(port)) for _ in range(min(connections, len(waiting)))]
    with selectors.DefaultSelector() as selector:
        for lane in lanes:
            selector.register(lane.connection, selectors.EVENT_READ, lane)
        started, own = time.perf_counter(), time.thread_time()
        for lane in lanes:
            lane.send(waiting.popleft())
        open_lanes = len(lanes)
        while open_lanes:
            for key, _ in selector.select():
                open_lanes -= _receive(key.data, waiting, load)
        load.seconds = time.perf_counter() - started
        load.own_seconds = time.thread_time() - own
    for lane in lanes:
        lane.connection.close()
    return load


def _receive(lane: _Lane, waiting: deque[bytes], load: Load) -> bool:
    """Take in what has come and send the next request; return whether the lane is done."""
    data = lane.connection.recv(CHUNK)
    if not data:
        raise BadAnswer("a connection was closed under load")
    answer = lane.buffer.feed(data)
    if answer is None:
        return False
    load.latencies.append(clock() - lane.sent_at)
    load.statuses[answer.status] += 1
    if not waiting:
        return True
    lane.send(waiting.popleft())
    return False
