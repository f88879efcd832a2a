"""A bounded memory of what is costly to make and never changes under its key."""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """Keeps the last `size` things made, each under the key of an immutable version."""

    __slots__ = ("_kept", "_lock", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: dict[Hashable, T] = {}
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is kept under `key`, or make and keep it; two threads may both make it."""
        found = self._kept.get(key)
        if found is not None:
            return found
        made = make()
        with self._lock:
            self._kept[key] = made
            if len(self._kept) > self._size:
                del self._kept[next(iter(self._kept))]
        return made
