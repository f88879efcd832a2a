"""Who is told by e-mail that a run is interrupted: those who are to say how it goes on."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import mail

from approvals.services import notices
from approvals.services.notices import Wishes
from interrupts.effects import Ruling, Says
from interrupts.models import Interrupt, Run
from interrupts.services import holds, judging, looking, responses, runs
from interrupts.services.holds import Asked
from tenants.models import Membership, OutboxMessage, Role
from tests.approvals.house import House, fresh
from tests.approvals.test_told import BASE, people, told
from tests.interrupts.house import earlier

__all__ = ["people"]

ALLOWED = {"name": "all", "trigger": "action", "tools": ["*"], "then": "allow"}
ENDS = {"name": "done", "workflow": "refunds", "when": {"before_complete": True}}
VERIFIER = {
    "kind": "python",
    "function": "checks.amount",
    "timeout": 5,
    "attempts": 1,
    "backoff": 1,
    "before_next": True,
}


def names() -> list[str]:
    return sorted(told())


def judged(house: House, monkeypatch: pytest.MonkeyPatch, ruling: Ruling, **more: Any) -> Interrupt:
    """A call that Alice approved, was made, and whose receipt was judged so."""
    monkeypatch.setattr("interrupts.effects.verifiers.verifier_named", lambda _: lambda *_: ruling)
    monkeypatch.setattr("interrupts.queue.judge", lambda _: None)
    house.tool(verifier=VERIFIER, headline="Refund {amount} of {payment}")
    gate = house.ask(run=house.run(**more))
    house.decide("alice", gate)
    house.work(gate.run_id)
    judging.judge(gate.step_id, "worker")
    return Interrupt.objects.get(run=gate.run_id, reason="verifier_rejected")


def answer(house: House, interrupt: Interrupt, resolution: str = "resume", **more: Any) -> None:
    responses.respond(
        house.people["olga"],
        interrupt.pk,
        checkpoint=interrupt.checkpoint,
        resolution=resolution,
        **more,
    )


@pytest.mark.parametrize(
    ("says", "start"), [(Says.REJECTED, "A check failed"), (None, "Not checked")]
)
def test_whoever_is_to_look_at_what_a_verifier_did_not_pass_is_told(
    people: House, monkeypatch: pytest.MonkeyPatch, says: Says | None, start: str
) -> None:
    ruling = Ruling(says, "THEIR WORDS https://evil.test")
    interrupt = judged(people, monkeypatch, ruling, requested_by="vera")

    found = told()

    assert sorted(found) == ["ada", "alice", "olga"]  # vera, whom the run is for, only looks
    for one in found.values():
        assert one.subject == f"{start}: Refund 20.00 of p-1"
        assert f"Open the run: {BASE}/runs/{interrupt.run_id}" in one.body
        assert "approves nothing" in one.body
        assert "THEIR WORDS" not in one.body
        assert "make Bob happy" not in one.body
    assert told() == {}
    assert fresh(interrupt).status == "open"


def test_what_is_answered_meanwhile_is_told_to_nobody(
    people: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(people, judged(people, monkeypatch, Ruling(Says.REJECTED)))
    assert told() == {}


def test_who_settles_no_more_or_does_not_want_it_is_not_told(
    people: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices.set_wishes(people.people["alice"], Wishes(interrupts=False))
    judged(people, monkeypatch, Ruling(Says.REJECTED))
    notices.set_wishes(people.people["ada"], Wishes(interrupts=False))
    Membership.objects.filter(user=people.people["olga"].id).update(role=Role.APPROVER)
    assert told() == {}


@pytest.fixture
def running(people: House) -> Run:
    people.policy(ALLOWED, milestones=[ENDS])
    return people.run(requested_by="carol", idle_after=60, budget={"tokens": 10})


@pytest.mark.parametrize(
    ("reason", "start", "who"),
    [
        ("input_required", "A value is needed", ["ada", "carol", "olga"]),
        ("context_missing", "Not known", ["ada", "carol", "olga"]),
        ("agent_requested", "An agent asks", ["ada", "olga"]),
    ],
)
def test_what_an_agent_asks_is_told_to_those_who_answer_and_not_in_its_words(
    people: House, running: Run, reason: Any, start: str, who: list[str]
) -> None:
    asked = Asked(reason=reason, question="TRUST ME https://evil.test", expires_in=60)
    holds.open_interrupt(people.agent, running.pk, asked=asked)

    found = told()

    assert sorted(found) == who
    assert {one.subject for one in found.values()} == {f"{start}: a run of bot"}
    assert all("TRUST ME" not in one.body for one in found.values())
    assert all("the run is cancelled" in one.body for one in found.values())


def test_a_budget_that_is_used_up_is_told_to_those_who_may_give_more(
    people: House, running: Run
) -> None:
    runs.report_usage(people.agent, running.pk, tokens=11)
    assert {name: one.subject for name, one in told().items()} == dict.fromkeys(
        ("ada", "olga"), "Budget used up: a run of bot"
    )


def test_a_silent_agent_is_given_a_minute_before_anybody_is_told(
    people: House, running: Run
) -> None:
    earlier(running, "last_seen_at", seconds=61)
    looking.look(running.pk)
    assert told() == {}
    for row in OutboxMessage.objects.filter(kind="notice.held"):
        earlier(row, "due_at", seconds=61)
    assert {one.subject for one in told().values()} == {"Gone silent: a run of bot"}


def test_a_run_that_is_to_complete_is_told_to_those_who_may_agree(
    people: House, running: Run
) -> None:
    done = {"name": "done", "trigger": "milestone", "milestones": ["done"], "then": "approve"}
    people.policy(ALLOWED, done, milestones=[ENDS])
    run = people.run(requested_by="olga")
    runs.complete_run(people.agent, run.pk, output={"SAYS": "THE AGENT"})
    found = told()
    assert {name: one.subject for name, one in found.items()} == {
        "ada": "May it complete: a run of bot"
    }
    assert "SAYS" not in found["ada"].body


def test_of_stops_and_of_what_a_gate_decides_no_such_mail_tells(people: House) -> None:
    gate = people.ask()
    asked = Asked(reason="operator_stop")
    holds.open_interrupt(people.people["olga"], gate.run_id, asked=asked)
    asked = Asked(reason="context_missing")
    holds.open_interrupt(people.people["olga"], gate.run_id, asked=asked)
    assert names() == ["ada"]
    assert len(mail.outbox) == 1
