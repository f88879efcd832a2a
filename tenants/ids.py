"""UUIDv7 (RFC 9562, 5.7): ids that sort by when they were made.

The 12 bits after the milliseconds are a fraction of one (6.2, method 3), and no id of a process is
smaller than the one before it: what is made later in a process sorts later.
"""

import os
import threading
import time
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

# Ids carry the clock of the process that made them, rows the database's.
_CLOCKS_APART: Final = timedelta(days=1)
_MILLISECOND = 1_000_000  # nanoseconds
_FRACTIONS = 1 << 12  # of a millisecond
_lock = threading.Lock()
_last = 0


def uuid7() -> UUID:
    now = time.time_ns() * _FRACTIONS // _MILLISECOND
    global _last  # noqa: PLW0603 - the one thing that must be shared
    with _lock:
        _last = now = max(now, _last + 1)
    milliseconds, fraction = divmod(now, _FRACTIONS)
    random = int.from_bytes(os.urandom(8), "big") & (1 << 62) - 1
    return UUID(int=milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | random)


def first_id(since: datetime) -> UUID:
    """Return an id that is below each one made since then, whosever clock it was made by."""
    milliseconds = int((since - _CLOCKS_APART).timestamp() * 1000)
    return UUID(int=max(milliseconds, 0) << 80)
