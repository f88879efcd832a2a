"""`python -m demo.far_end --port PORT --folder FOLDER`: serve until told to stop."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from demo.far_end.callers import Callers
from demo.far_end.faults import Faults
from demo.far_end.ledger import Ledger
from demo.far_end.server import Server, World
from demo.far_end.shop import Shop
from demo.places import Places


def main() -> None:
    parser = argparse.ArgumentParser(prog="demo.far_end")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    with Server(given.port, world(Places(given.folder))) as server:
        server.serve_forever()


def world(places: Places) -> World:
    """The shop in this folder."""
    ledger = Ledger(places.ledger)
    callers = Callers(places.credentials, places.tenant, places.merchant_key)
    return World(ledger, Shop(ledger), Faults(), callers)


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)


if __name__ == "__main__":
    main()
