"""`make demo`: an agent works on forty requests, through the service that `make up` started."""

from __future__ import annotations

import asyncio
import os
import sys

from abeyance import AsyncAbeyance, StaleSession, Unreachable

from demo.desk import LOST_PAYMENT, Desk, Round, read_requests
from demo.service import NotThere, Service

# One refund's answer is lost: it is performed, and neither the service nor the agent hears of it.
LOST = {
    "tool": "payments.refund",
    "mode": "lost_answer",
    "match": {"payment": LOST_PAYMENT},
    "lookups": False,
}


def main() -> None:
    try:
        service = Service.here(os.environ)
        asyncio.run(work(service))
    except NotThere as fault:
        sys.exit(f"demo: {fault}")
    except KeyboardInterrupt:
        say("\nThe agent is gone; what waits goes on waiting. `make demo` takes it up again.")


async def work(service: Service) -> None:
    round_ = Round(service.places)
    requests = read_requests()
    if round_.is_taken_up:
        say("Taking up where the agent was; nothing is done twice.")
    else:
        service.far_end.order(LOST)
        say(f"An agent begins to work on {len(requests)} requests ({service.url}).")
    ended = None
    async with AsyncAbeyance(service.url, service.agent_key) as client:
        desk = Desk(client, round_, service, say)
        try:
            await desk.work(requests)
        except* (Unreachable, StaleSession) as faults:
            ended = faults.exceptions[0]
    if ended is not None:
        raise NotThere(f"{ended}; what waits goes on waiting, and `make demo` takes it up again")
    told = ", ".join(f"{number} {how}" for how, number in desk.done.items())
    say(f"\nAll {len(requests)} requests are done: {told}.")
    say(f"What really happened: {service.far_end.url}/")
    say(f"The mail: {service.mail}")


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is a program for a terminal


if __name__ == "__main__":
    main()
