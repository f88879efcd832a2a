"""UUIDv7 (RFC 9562, 5.7): ids that sort by the millisecond they were made in."""

import os
import time
from uuid import UUID


def uuid7() -> UUID:
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64
    return UUID(int=value | 0b10 << 62 | random & (1 << 62) - 1)
