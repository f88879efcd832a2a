"""The service's API as agents and approvers use it, over kept connections."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any

from benchmarks.client import Client, authorization, request_bytes

BASE = "/api/v1"
TEXT = "x" * 100
HANDS = 4
numbers = count(1)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who asks: the agent that proposes and the person who decides."""

    agent: str
    approver: str


def step_body(tool: str) -> dict[str, Any]:
    """Return a proposal; no two are alike, or the second would be answered from the first."""
    arguments = {"number": next(numbers), "text": TEXT}
    return {"tool": tool, "arguments": arguments, "reasoning": "because it is measured"}


def new_run(agent: Client) -> str:
    """Start a run and return its id."""
    run: str = agent.post(f"{BASE}/runs", {"workflow": "bench", "goal": "be measured"})["id"]
    return run


def propose(agent: Client, run: str, body: dict[str, Any]) -> dict[str, Any]:
    """Propose one step and return it."""
    step: dict[str, Any] = agent.post(f"{BASE}/runs/{run}/steps", body)
    return step


def proposal_bytes(token: str, run: str, tool: str) -> bytes:
    """Return the request that proposes one step."""
    path = f"{BASE}/runs/{run}/steps"
    return request_bytes("POST", path, step_body(tool), authorization(token))


@dataclass(frozen=True, slots=True)
class Asked:
    """A step that waits for a person, its gate and the number that its effect will tell."""

    number: int
    step: str
    gate: str
    digest: str

    def approval(self) -> tuple[str, dict[str, str]]:
        """Return the path and the body of the approving request."""
        body = {"verdict": "approve", "digest": self.digest}
        return f"{BASE}/gates/{self.gate}/decisions", body

    def approval_bytes(self, token: str) -> bytes:
        """Return the approving request; its Idempotency-Key makes it safe to send again."""
        headers = authorization(token) | {"Idempotency-Key": f"bench-{self.gate}"}
        return request_bytes("POST", *self.approval(), headers)


def ask(port: int, credentials: Credentials, tool: str, amount: int) -> list[Asked]:
    """Propose so many steps that wait for a person, each in a run of its own."""
    shares = [range(start, amount, HANDS) for start in range(min(HANDS, amount))]
    with ThreadPoolExecutor(HANDS) as hands:
        asked = hands.map(lambda share: _ask(port, credentials, tool, len(share)), shares)
        return [each for some in asked for each in some]


def _ask(port: int, credentials: Credentials, tool: str, amount: int) -> list[Asked]:
    asked = []
    with Client(port, credentials.agent) as agent, Client(port, credentials.approver) as approver:
        for _ in range(amount):
            body = step_body(tool)
            step = propose(agent, new_run(agent), body)
            gate = approver.get(f"{BASE}/gates/{step['gate']}")
            number = body["arguments"]["number"]
            asked.append(Asked(number, step["id"], gate["id"], gate["what"]["digest"]))
    return asked
