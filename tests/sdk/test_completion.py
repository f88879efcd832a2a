"""The agent's side of a run whose completion people are asked about."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from abeyance import NotCompleted, driving


class Scripted:
    """Answers each request with the next document, and keeps the keys that were sent."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.keys = list(answers), []

    def post(
        self, path: str, body: Any, key: str | None = None
    ) -> Generator[Any, Any, dict[str, Any]]:
        self.keys.append(key)
        yield path
        return self.answers.pop(0)

    def get(self, path: str, query: Any = None) -> Generator[Any, Any, dict[str, Any]]:
        yield path
        return self.answers.pop(0)


def document(status: str, *guidance: str) -> dict[str, Any]:
    told = [
        {
            "id": text,
            "text": text,
            "by": "olga",
            "at": "2026-11-30T08:00:00Z",
            "acknowledged": False,
        }
        for text in guidance
    ]
    return {"id": "r", "status": status, "guidance": told, "state_version": 1}


def complete(caller: Scripted) -> dict[str, Any]:
    run = driving.Driven(caller, {}, document("running"))  # type: ignore[arg-type]
    flow = driving.end(run, "complete", {"output": None})
    try:
        while True:
            next(flow)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def test_an_agent_waits_for_who_is_asked_before_its_run_completes() -> None:
    caller = Scripted(document("suspended"), document("completed"), document("completed"))
    assert complete(caller)["status"] == "completed"
    assert len(caller.keys) == 1


def test_what_a_person_wants_first_is_told_and_what_was_told_before_is_not() -> None:
    held, on = document("suspended", "be kind"), document("running", "be kind", "refund the rest")
    with pytest.raises(NotCompleted, match="refund the rest") as caught:
        complete(Scripted(held, on))
    assert caught.value.guidance == "refund the rest"


def test_what_was_agreed_to_while_something_else_held_the_run_is_sent_once_more() -> None:
    caller = Scripted(
        document("suspended", "be kind"), document("running", "be kind"), document("completed")
    )
    assert complete(caller)["status"] == "completed"
    assert len(set(caller.keys)) == 2
