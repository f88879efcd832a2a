"""Processor time of the processes that the benchmark started: it hardly heeds the neighbours."""

import os
from collections import defaultdict
from pathlib import Path

TICK = 1 / os.sysconf("SC_CLK_TCK")
# Of /proc/PID/stat, counted behind the command: the parent, and user and system time.
PARENT, USER, SYSTEM = 1, 11, 12


def spent() -> float:
    """Return the seconds that all living descendants of this process have used, ended threads too.

    What the process itself used is not in it: it is the load.
    """
    children: defaultdict[int, list[int]] = defaultdict(list)
    seconds: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        process = int(stat.parent.name)
        children[int(fields[PARENT])].append(process)
        seconds[process] = (int(fields[USER]) + int(fields[SYSTEM])) * TICK
    return _of_descendants(os.getpid(), children, seconds)


def _of_descendants(
    process: int, children: dict[int, list[int]], seconds: dict[int, float]
) -> float:
    own = children.get(process, [])
    return sum(seconds[child] + _of_descendants(child, children, seconds) for child in own)
