"""A second worker beside the one that `manage.py up` keeps: kept alive in the same way."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType
from typing import NoReturn

from config.supervisor.children import Child, stop_all
from config.supervisor.paths import data_folder
from config.supervisor.service import worker_program

STOP_SECONDS = 7.0


class Stopped(BaseException):
    """It was told to stop."""


def main() -> None:
    log = data_folder().logs / "worker-beside.log"
    child = Child("worker", worker_program(os.environ), log, longest_pause=1.0)
    signal.signal(signal.SIGINT, _stop)
    try:
        child.start()
        while True:
            time.sleep(0.1)
            child.look_after()
    except Stopped:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stop_all([child], STOP_SECONDS)


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Stopped


if __name__ == "__main__":
    main()
