"""What the threads of one chaos share: the service, the far end, and what was taken for good."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.farend import Ledger
from tests.chaos.service import Service, insist

API = "/api/v1"


@dataclass
class Taken:
    """What the service answered 2xx for: it must be there at the end, whatever was killed."""

    runs: set[str] = field(default_factory=set)
    steps: set[str] = field(default_factory=set)
    decisions: set[str] = field(default_factory=set)


@dataclass
class Chaos:
    service: Service
    ledger: Ledger
    credentials: dict[str, Any]
    seed: int
    taken: Taken = field(default_factory=Taken)
    ended: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    did: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)
    began: float = field(default_factory=time.monotonic)

    def dice(self, of: str) -> random.Random:
        """Dice of one's own, by the seed, so that no thread takes another's throws."""
        return random.Random(f"{self.seed} {of}")  # noqa: S311

    @property
    def agent(self) -> str:
        return str(self.credentials["agents"]["bot"])

    def person(self, name: str) -> str:
        return str(self.credentials["users"][name]["token"])

    def call(
        self, method: str, path: str, body: Any = None, *, token: str, key: str | None = None
    ) -> tuple[int, Any]:
        return insist(self.service.port, method, API + path, body, token=token, key=key)

    def results(self, path: str, token: str) -> list[dict[str, Any]]:
        """The first page of a list; what is missing is found the next time."""
        status, answer = self.call("GET", path, token=token)
        return list(answer["results"]) if status == 200 else []

    def run_taken(self, run: str) -> None:
        self.taken.runs.add(run)

    def problem(self, text: str) -> None:
        self.problems.append(text)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began
