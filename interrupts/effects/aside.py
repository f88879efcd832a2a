"""Foreign code that only looks, run beside the thread that asks, which waits no longer than it said.

Nothing stops such code from outside. It has no effect, by its promise, so one that is late is left
behind; but no more than `MOST_LATE` of a name in one process, after which it is not asked again
before one of them has ended. It runs without the caller's context: for no tenant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final

MOST_LATE: Final = 4

_lock = Lock()
_late: Counter[str] = Counter()


class Late(Exception):
    """It did not return in time, or too many did not before it. The message may be shown."""


class BrokeOff(Exception):
    """It wanted to end the thread or the process that it ran in, and has only ended itself."""


class _Look:
    def __init__(self, name: str, act: Callable[[], Any]) -> None:
        self.name, self.act = name, act
        self.answer: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self.has_ended = self.is_late = False

    def run(self) -> None:
        try:
            self.answer.put((self.act(), None))
        except BaseException as fault:  # noqa: BLE001  (foreign code; raised where it was asked for)
            self.answer.put((None, fault))
        with _lock:
            self.has_ended = True
            _late[self.name] -= self.is_late

    def leave(self) -> None:
        with _lock:
            self.is_late = not self.has_ended
            _late[self.name] += self.is_late


def within(seconds: float, name: str, act: Callable[[], Any]) -> Any:
    """Return what `act` returns, or raise the exception that it raises.

    Raises `Late` after so many seconds, `BrokeOff` where `act` would have ended the process.
    """
    with _lock:
        if _late[name] >= MOST_LATE:
            raise Late("It was not asked: earlier looks of it have not ended.")
    look = _Look(name, act)
    Thread(target=look.run, name=f"look {name}", daemon=True).start()
    try:
        value, fault = look.answer.get(timeout=seconds)
    except Empty:
        look.leave()
        raise Late(f"It did not answer within {seconds:g} seconds.") from None
    if isinstance(fault, Exception):
        raise fault
    if fault is not None:
        raise BrokeOff from fault
    return value
