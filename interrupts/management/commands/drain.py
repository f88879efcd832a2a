"""`manage.py drain`: have the workers of a host, or all, begin nothing, and wait till they are done."""

from __future__ import annotations

import argparse
import time
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from interrupts.models import EVERY_HOST
from interrupts.services import draining
from interrupts.services.draining import InFlight

LOOK_SECONDS: Final = 0.2
TELL_SECONDS: Final = 5.0


class Command(BaseCommand):
    help = (
        "Have the workers of this host begin nothing from now on, wait until what they have begun"
        " is recorded, and exit 0; exit 1 with a list of what is still in flight when the time is"
        " up. The drain stands until `drain --undo`, or until `manage.py up` starts on the host."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--all", action="store_true", help="the workers of every host")
        where.add_argument("--host", help="the workers of this host, as receipts name it")
        parser.add_argument("--undo", action="store_true", help="end the drain")
        parser.add_argument(
            "--timeout", type=_seconds, default=300.0, help="how long to wait, in seconds"
        )

    def handle(self, **options: Any) -> None:
        host = EVERY_HOST if options["all"] else options["host"] or draining.this_host()
        if options["undo"]:
            self._undo(host)
        else:
            self._drain(host, time.monotonic() + options["timeout"])

    def _undo(self, host: str) -> None:
        if draining.end_drain(host):
            self._say(f"the drain of {_named(host)} has ended")
        for drain in draining.standing():
            self._say(f"{_named(drain.host)}: drained since {drain.since:%Y-%m-%d %H:%M:%S} UTC")

    def _drain(self, host: str, deadline: float) -> None:
        drain = draining.begin_drain(host)
        try:
            draining.wait_for_intents(lambda: deadline - time.monotonic())
        except draining.IntentsOutstanding as fault:
            raise CommandError(
                f"a transaction that may begin a call does not end: {fault}"
            ) from fault
        self._say(
            f"drained: {_named(host)} begins nothing since {drain.since:%Y-%m-%d %H:%M:%S} UTC"
        )
        left = self._wait(host, deadline)
        if left:
            for one in left:
                self.stderr.write(_told(one))
            raise CommandError(f"{len(left)} still in flight; the drain stands")
        self._say("nothing is in flight")

    def _wait(self, host: str, deadline: float) -> list[InFlight]:
        """Wait till nothing is in flight; return what still is when the time is up."""
        reads = {one.step for one in draining.reads_in_flight()}
        said, tell_at = -1, 0.0
        while left := self._in_flight(host, reads):
            now = time.monotonic()
            if now >= deadline:
                return left
            if len(left) != said or now >= tell_at:
                self._say(f"{len(left)} in flight, {deadline - now:.0f} s left")
                said, tell_at = len(left), now + TELL_SECONDS
            time.sleep(LOOK_SECONDS)
        return []

    def _in_flight(self, host: str, reads: set[Any]) -> list[InFlight]:
        left = draining.calls_in_flight(host)
        return left + draining.reads_in_flight(reads) if reads else left

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e6:
        raise argparse.ArgumentTypeError("a number of seconds, 0 or more")
    return seconds


def _named(host: str) -> str:
    return "every worker" if host == EVERY_HOST else f"every worker of {host}"


def _told(one: InFlight) -> str:
    return (
        f"  {one.tenant}: run {one.run} step {one.step} by {one.worker}"
        f" till {one.until:%H:%M:%S} UTC at the latest"
    )
