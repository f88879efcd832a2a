"""One limit of time over everything that a call does."""

from time import monotonic
from typing import Self


class Deadline:
    """A moment that every wait of one call shares."""

    __slots__ = ("_at",)

    def __init__(self, at: float) -> None:
        self._at = at

    @classmethod
    def after(cls, seconds: float) -> Self:
        return cls(monotonic() + seconds)

    def remaining(self) -> float:
        """Return the seconds left, more than none. Raises `TimeoutError` once it has passed."""
        left = self._at - monotonic()
        if left <= 0:
            raise TimeoutError("the time is up")
        return left
