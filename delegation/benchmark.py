"""The learner behind the benchmark's interface: one for each approver, told what happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from delegation.learner import Learner
from delegation.presets import CAUTIOUS, EAGER, Settings
from delegation.records import DAY, Answer, Request, Role, Tool, Verdict

KEY: Final = b"benchmark"
# What an admin would declare of the benchmark's tools.
ROLES: Final[Mapping[str, Mapping[str, Role]]] = {
    "read_record": {"table": "enum", "record_id": "id"},
    "update_ticket": {"queue": "enum", "status": "enum", "ticket_id": "id"},
    "run_report": {"dataset": "enum", "format": "enum", "rows": "number"},
    "send_email": {"domain": "domain", "template": "enum", "message_id": "id"},
    "issue_refund": {"amount": "number", "tier": "enum", "reason": "enum", "order_id": "id"},
    "write_file": {"path": "path", "kilobytes": "number"},
    "change_plan": {"plan": "enum", "seats": "number", "customer_id": "id"},
}
LOW: Final = frozenset({"read_record", "update_ticket", "run_report"})
TOOLS: Final = {
    name: Tool(name, 1, "low" if name in LOW else "medium", roles) for name, roles in ROLES.items()
}


class Asked(Protocol):
    """A request of the benchmark; `t` in days."""

    rid: str
    t: float
    approver: str
    agent: str
    tool: str
    args: Mapping[str, Any]
    ctx: Mapping[str, str]


class Answered(Protocol):
    """What the benchmark tells of one: `review` or `incident`."""

    kind: str
    decision: Verdict
    latency_s: float
    opened_preview: bool
    bulk: bool
    final_args: Mapping[str, Any] | None


class Benchmarked:
    """Every approver's learner at once."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.name
        self.settings = settings
        self.learners: dict[str, Learner] = {}

    def decide(self, request: Asked) -> tuple[bool, str]:
        learner = self._learner(request)
        asked = request_of(request)
        ruling = learner.decide(asked)
        if ruling.automatic:
            learner.ran(asked)
        return ruling.automatic, ruling.reason.kind

    def observe(self, request: Asked, told: Answered) -> None:
        learner = self._learner(request)
        asked = request_of(request)
        if told.kind == "incident":
            learner.incident(asked)
            return
        answer = Answer(
            told.decision, told.latency_s, told.opened_preview, told.bulk, told.final_args
        )
        learner.observe(asked, answer)

    def _learner(self, request: Asked) -> Learner:
        return self.learners.setdefault(request.approver, Learner(self.settings, KEY))


def request_of(asked: Asked) -> Request:
    tool = TOOLS[asked.tool]
    return Request(asked.rid, asked.t * DAY, asked.agent, tool, asked.args, asked.ctx)


cautious: Callable[[], Benchmarked] = partial(Benchmarked, CAUTIOUS)
eager: Callable[[], Benchmarked] = partial(Benchmarked, EAGER)
