"""Forty requests at once: a run for each, taken up again after any stop, told line by line."""

from __future__ import annotations

import asyncio
import csv
import json
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from abeyance import AsyncAbeyance, AsyncRun, RunEnded, StillWaiting

from demo.agent import Agent, Request
from demo.places import Places
from demo.service import Service

REQUESTS = Path(__file__).with_name("requests.csv")
# The payment whose refund's answer is lost.
LOST_PAYMENT = "pay-1006"
Say = Callable[[str], None]
ENDED = frozenset({"completed", "failed", "cancelled"})
WAITS: Mapping[str, str] = {
    "waiting": "waits for a person",
    "unknown": "got no answer: nobody knows whether it was done",
}
# What of a call's arguments tells it from others, in a line.
SHOWN = ("payment", "amount", "customer", "to")


def read_requests(path: Path = REQUESTS) -> list[Request]:
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Request(row["request"], row["customer"], row["order"], row["message"])
            for row in csv.DictReader(file)
        ]


class Round:
    """One pass over the requests; a file says which run works on which until all are done."""

    def __init__(self, places: Places) -> None:
        self._path = places.runs
        kept = json.loads(self._path.read_text()) if self._path.exists() else {}
        self.id: str = kept.get("round") or uuid.uuid4().hex
        self.runs: dict[str, str] = kept.get("runs", {})
        self._keep()

    @property
    def is_taken_up(self) -> bool:
        return bool(self.runs)

    def began(self, request: Request, run: AsyncRun) -> None:
        self.runs[request.id] = run.id
        self._keep()

    def finish(self) -> None:
        self._path.unlink(missing_ok=True)

    def _keep(self) -> None:
        whole = self._path.with_suffix(".new")
        whole.write_text(json.dumps({"round": self.id, "runs": self.runs}))
        whole.replace(self._path)


class Desk:
    """Works all requests of a round, and says what waits for whom."""

    def __init__(self, client: AsyncAbeyance, round_: Round, service: Service, say: Say) -> None:
        self.client = client
        self.round = round_
        self.service = service
        self.say = say
        self.waiting: dict[str, str] = {}
        self.done: Counter[str] = Counter()

    async def work(self, requests: Sequence[Request]) -> None:
        """Return once every request is done, however long people take."""
        async with asyncio.TaskGroup() as group:
            for request in requests:
                group.create_task(self._work_one(request))
            group.create_task(self._tell_when_it_is_quiet(len(requests)))
        self.round.finish()

    async def _work_one(self, request: Request) -> None:
        run = await self._run_for(request)
        if run.status in ENDED:
            self.done["before"] += 1
            return
        agent = Agent(run, request, lambda waiting: self._watch(request, run, waiting))
        try:
            said = await agent.work()
        except RunEnded as ended:
            said = ended.tell_model
        self.waiting.pop(request.id, None)
        self.done["after somebody decided" if agent.asked else "without asking anybody"] += 1
        self.say(f"{request.id}  {said}")

    async def _run_for(self, request: Request) -> AsyncRun:
        """Take up the run that works on the request, or start one."""
        if known := self.round.runs.get(request.id):
            return await self.client.resume(known)
        run = await self.client.run(
            "support",
            f"{request.customer} ({request.order}): {request.message}",
            inputs={"request": request.id, "order": request.order},
            labels={"request": request.id},
            key=f"{self.round.id}/{request.id}",
        )
        self.round.began(request, run)
        return run

    def _watch(self, request: Request, run: AsyncRun, waiting: StillWaiting) -> None:
        """Say what the request waits for, each thing once."""
        step = waiting.step
        if step.status not in WAITS or self.waiting.get(request.id) == step.status:
            return
        self.waiting[request.id] = step.status
        what = ", ".join(str(step.arguments[name]) for name in SHOWN if name in step.arguments)
        self.say(f"{request.id}  {step.tool} ({what}) {WAITS[step.status]}")
        if step.status == "unknown":
            self.say(
                f"      Look into the ledger, and settle it as ada: {self.service.url}/runs/{run.id}"
            )

    async def _tell_when_it_is_quiet(self, number: int) -> None:
        """Say what to click, once only what waits for people is left."""
        while sum(self.done.values()) + len(self.waiting) < number:
            await asyncio.sleep(0.2)
        if not self.waiting:
            return
        service = self.service
        self.say(
            f"\n{sum(self.done.values())} of {number} requests are done; {len(self.waiting)} wait for"
            f" you at {service.url}/inbox\nSign in as bob, or carol; the passwords are in"
            f" {service.places.credentials}\nApprove, edit or reject some: what is approved stands in"
            f" {service.far_end.url}/ a moment later.\nThe answer to the refund of {LOST_PAYMENT} will"
            " be lost: see what becomes of it.\nCtrl-C leaves, and `make demo` takes it up again.\n"
        )
