"""Calls, answers and histories of them, without a database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from delegation.learner import Event, Learner, replay
from delegation.presets import EAGER, Settings, Stage
from delegation.records import DAY, Answer, Request, Tool

START = 1_800_000_000.0
REFUND = Tool(
    "issue_refund",
    1,
    "medium",
    {"amount": "number", "tier": "enum", "reason": "enum", "order": "id"},
)
MAIL = Tool("send_email", 1, "medium", {"to": "domain", "template": "enum"})
FILE = Tool("write_file", 1, "medium", {"path": "path"})
GOOD = Answer("approve", seconds=9.0, opened=True)
NO = Answer("reject", seconds=3.0, opened=True)
KEY = b"a tenant's key"
# Proved after a few answers and never checked: what is left is what is familiar.
PLAIN_STAGE = (Stage(0.9, 0.0),)
PLAIN = replace(
    EAGER, name="plain", stages={"low": PLAIN_STAGE, "medium": PLAIN_STAGE}, every_pair=True
)


def call(
    number: float = 0, tool: Tool = REFUND, *, agent: str = "agent-a", **given: Any
) -> Request:
    """A call at `number` minutes after the start; of a refund, what is not given is usual."""
    usual: dict[str, Any] = {"amount": 20, "tier": "basic", "reason": "late", "order": f"o{number}"}
    context = given.pop("context", {"env": "staging"})
    arguments = {**usual, **given} if tool.id == "issue_refund" else given
    return Request(f"r{number}", START + 60 * number, agent, tool, arguments, context)


def taught(
    requests: Iterable[Request], settings: Settings = PLAIN, answer: Answer = GOOD
) -> Learner:
    """A learner that saw each of the calls answered."""
    learner = Learner(settings, KEY)
    for request in requests:
        learner.observe(request, answer)
    return learner


def practised(tool: Tool = REFUND, times: int = 12, **given: Any) -> Learner:
    """A learner that is sure of one call, approved once a day."""
    return taught(call(1_440 * day, tool, **given) for day in range(times))


_amounts = st.sampled_from([5, 20, "20.5", 75, 300])
requests = st.builds(
    lambda minute, agent, tier, reason, amount, env: call(
        minute, agent=agent, tier=tier, reason=reason, amount=amount, context={"env": env}
    ),
    st.integers(0, 8 * DAY // 60),
    st.sampled_from(["agent-a", "agent-b"]),
    st.sampled_from(["basic", "silver", "gold"]),
    st.sampled_from(["late", "damaged"]),
    _amounts,
    st.sampled_from(["staging", "prod"]),
)
answers = st.one_of(
    st.just(GOOD),
    st.just(GOOD),
    st.just(GOOD),
    st.just(NO),
    st.just(Answer("approve", seconds=0.4, opened=True)),
    st.just(Answer("approve", seconds=9.0, opened=True, bulk=True)),
    st.builds(
        lambda amount: Answer(
            "edit",
            9.0,
            opened=True,
            final={"amount": amount, "tier": "basic", "reason": "late", "order": "o"},
        ),
        _amounts,
    ),
)
_kinds = st.sampled_from(["answer"] * 8 + ["incident", "lost", "ran", "stop", "start"])
_entries = st.tuples(_kinds, requests, answers)


HABITS = [
    [],
    [call(700 * number, order=f"o{number}") for number in range(12)],
    [call(700 * number, tier="gold", amount=75) for number in range(8)]
    + [call(900 * number, agent="agent-b", reason="damaged") for number in range(8)],
    [
        call(700 * number, tier=tier, reason=reason, amount=amount)
        for number in range(4)
        for tier, amount in (("basic", 20), ("gold", 75))
        for reason in ("late", "damaged")
    ],
]


@st.composite
def histories(draw: Any, most: int = 60) -> list[Event]:
    """Events with ids of their own, some at the same time; often with a habit to begin with."""
    habit = [("answer", one, GOOD) for one in draw(st.sampled_from(HABITS))]
    entries = habit + draw(st.lists(_entries, max_size=most))
    return [event(f"e{at:03}", *entry) for at, entry in enumerate(entries)]


def event(name: str, kind: Any, request: Request, answer: Answer) -> Event:
    if kind in {"stop", "start"}:
        return Event(request.at, name, kind, tool=request.tool.id)
    return Event(request.at, name, kind, request, answer if kind == "answer" else None)


def approvals(learner_events: Iterable[Event]) -> list[Event]:
    return [one for one in learner_events if one.kind == "answer" and one.answer == GOOD]


def again(events: Iterable[Event], settings: Settings = PLAIN) -> Learner:
    return replay(events, settings, KEY)
