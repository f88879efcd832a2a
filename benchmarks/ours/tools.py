"""The measured tools: functions of the `python` executor that do next to nothing."""

import os
import socket
import struct
from functools import cache
from typing import Any

from benchmarks.client import clock

MARK = struct.Struct("=qd")


def tick(arguments: dict[str, Any], _call: object) -> int:
    """Return the number after the given one."""
    number: int = arguments["number"]
    return number + 1


def mark(arguments: dict[str, Any], _call: object) -> int:
    """Say when its first line ran, to whoever listens at ``BENCH_METER``."""
    at = clock()
    meter, address = _meter()
    number: int = arguments["number"]
    meter.sendto(MARK.pack(number, at), address)
    return number


@cache
def _meter() -> tuple[socket.socket, str]:
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), os.environ["BENCH_METER"]
