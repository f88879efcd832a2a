"""Whether this worker has been told to stop, as every process of its pool can see."""

import mmap

# One byte that is shared across forks: Celery tells only the worker's main process of a stop.
_told = mmap.mmap(-1, 1)


def is_stopping() -> bool:
    """Return whether work should end at its next boundary, since its process will soon."""
    return _told[0] != 0


def stop() -> None:
    """Tell the pool; called in the worker's main process, and not taken back."""
    _told[0] = 1
