"""Who is told by e-mail what became of a decision: by others, by time, by the far end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail

from approvals import owed
from approvals.services import notices
from approvals.services.notices import Wishes
from interrupts.effects.python import PythonTool
from interrupts.models import Interrupt, Step
from interrupts.services import attempts, looking, responses, starting
from tenants import outbox
from tenants.models import Membership, OutboxMessage, User
from tests.approvals.house import House, fresh
from tests.interrupts.house import earlier

BASE = "https://gates.example.test"
TWO = {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
LESS = {"payment": "p-1", "amount": "7.00"}


@pytest.fixture(autouse=True)
def people(house: House, settings, monkeypatch) -> House:
    """Everybody but Bob has an address, and wants to be told of nothing that waits."""
    settings.ABEYANCE_BASE_URL = BASE
    monkeypatch.setattr("tenants.queue.send", lambda _: None)
    for name in ("ada", "olga", "alice", "carol", "vera"):
        User.objects.filter(pk=house.people[name].id).update(email=f"{name}@acme.test")
        notices.set_wishes(house.people[name], Wishes(asked=False, reminders=False))
    return house


def rows(kind):
    return OutboxMessage.objects.filter(kind=kind)


def told():
    """Send what is due; return by name what each was told, as subject and body."""
    mail.outbox.clear()
    outbox.send_due()
    return {one.to[0].partition("@")[0]: one for one in mail.outbox}


def local(house):
    """A tool that the agent runs itself."""
    house.tool("local.pay", executor={"kind": "agent"}, executor_kind="agent")


def report(house, gate, outcome, **more):
    attempt, *_ = starting.claim_step(house.agent, gate.step_id)
    attempts.report(house.agent, attempt.pk, fence=attempt.fence, outcome=outcome, **more)
    return attempt


def approved(house, *who):
    local(house)
    gate = house.ask("local.pay")
    for name in who or ("alice",):
        house.decide(name, gate)
    return gate


# By others


def test_who_approved_is_told_that_another_did_too_and_whether_one_more_is_missing(people):
    people.policy({**TWO, "quorum": 3})
    gate = people.ask()
    people.decide("alice", gate)
    assert told() == {}
    people.decide("carol", gate)
    (one,) = told().values()
    assert one.to == ["alice@acme.test"]
    assert one.subject.startswith("One more approval: ")
    assert "carol approved this too. 1 more is missing." in one.body
    assert f"{BASE}/decisions/{gate.pk}" in one.body
    assert told() == {}


@pytest.mark.parametrize(
    ("verdict", "more", "start"),
    [
        ("approve", {}, "Approved: "),
        ("reject", {"reason": "THEIR WORDS"}, "Rejected: "),
        ("request_changes", {"reason": "THEIR WORDS"}, "Sent back: "),
        ("respond", {"value": "THEIR WORDS"}, "Answered: "),
        ("approve", {"arguments": LESS}, "Changed: "),
    ],
)
def test_who_approved_is_told_what_another_made_of_it(people, verdict, more, start):
    people.policy(TWO)
    gate = people.ask()
    people.decide("alice", gate)
    people.decide("carol", gate, verdict, **more)
    found = told()
    assert list(found) == ["alice"]
    assert found["alice"].subject.startswith(start)
    assert "THEIR WORDS" not in found["alice"].body
    assert ("counts no more" in found["alice"].body) == ("arguments" in more)


def test_what_one_says_oneself_is_news_to_nobody_else_who_did_not_approve(people):
    people.policy(TWO)
    gate = people.ask()
    people.decide("alice", gate)
    people.decide("alice", gate, "reject", reason="on second thought")
    assert told() == {}


# By time


def test_for_whom_it_had_waited_is_told_that_it_expired(people):
    people.policy(
        {
            "name": "asks",
            "trigger": "action",
            "tools": ["*"],
            "then": "approve",
            "expires_in": 1000,
            "on_expiry": "reject",
        }
    )
    gate = people.ask()
    earlier(gate, "expires_at", 1001)
    earlier(Interrupt.objects.get(pk=gate.interrupt_id), "expires_at", 1001)
    looking.look(gate.run_id)
    assert fresh(gate).state == "expired"
    found = told()
    assert sorted(found) == ["alice", "carol"]
    assert found["alice"].subject.startswith("Expired: ")
    assert "It was rejected, and the run went on. It was not run." in found["alice"].body


def test_of_what_is_decided_in_time_nobody_is_told_that_it_expired(people):
    people.decide("alice", people.ask())
    assert not rows(owed.EXPIRED).exists()


# By the far end


def test_who_approved_is_told_that_it_failed(people):
    gate = approved(people)
    report(people, gate, "failed", error="THE FAR END SAYS SO")
    found = told()
    assert list(found) == ["alice"]
    assert found["alice"].subject.startswith("Failed: ")
    assert f"{BASE}/runs/{gate.run_id}" in found["alice"].body
    assert "THE FAR END SAYS SO" not in found["alice"].body


def test_of_what_succeeds_nobody_is_told(people):
    report(people, approved(people), "succeeded", result={})
    assert told() == {}


def test_an_unknown_outcome_goes_to_who_approved_and_to_those_who_settle_it(people):
    gate = approved(people)
    report(people, gate, "unknown")
    found = told()
    assert sorted(found) == ["ada", "alice", "olga"]
    assert found["olga"].subject.startswith("Unknown outcome, to be settled: ")
    assert found["alice"].subject.startswith("Unknown outcome: ")
    assert all(f"{BASE}/runs/{gate.run_id}" in one.body for one in found.values())
    assert all("approves nothing" in one.body for one in found.values())


def test_what_nobody_approved_is_told_to_those_who_settle_alone(people):
    people.policy({"name": "all", "trigger": "action", "tools": ["*"], "then": "allow"})
    local(people)
    step = people.propose("local.pay")
    attempt, *_ = starting.claim_step(people.agent, step.pk)
    attempts.report(people.agent, attempt.pk, fence=attempt.fence, outcome="unknown")
    assert sorted(told()) == ["ada", "olga"]


def test_who_was_told_that_it_is_unknown_is_told_what_was_found(people):
    gate = approved(people)
    attempt = report(people, gate, "unknown")
    told()
    attempts.report(people.agent, attempt.pk, fence=attempt.fence, outcome="succeeded", result={})
    found = told()
    assert sorted(found) == ["ada", "alice", "olga"]
    assert {one.subject.partition(":")[0] for one in found.values()} == {"It happened"}
    assert told() == {}


def test_a_person_who_settles_it_closes_it_for_the_others(people):
    gate = approved(people)
    report(people, gate, "unknown")
    told()
    interrupt = Interrupt.objects.get(step=gate.step_id, reason="outcome_unknown")
    value = {"outcome": "skip", "evidence": "it is not in the ledger"}
    responses.respond(
        people.people["olga"],
        interrupt.pk,
        checkpoint=interrupt.checkpoint,
        resolution="resume",
        value=value,
    )
    found = told()
    assert found["alice"].subject.startswith("Failed: ")
    assert found["ada"].subject.startswith("It did not happen: ")


def test_what_is_found_out_before_anybody_was_told_is_told_to_nobody(people):
    gate = approved(people)
    attempt = report(people, gate, "unknown")
    attempts.report(people.agent, attempt.pk, fence=attempt.fence, outcome="succeeded", result={})
    assert told() == {}
    assert not rows(owed.FOUND).exists()


def test_what_the_service_asks_about_by_itself_is_given_a_minute(people, monkeypatch):
    tool = PythonTool(breaks_off, reconcile=breaks_off)
    for module in ("interrupts.effects", "interrupts.effects.python"):
        monkeypatch.setattr(f"{module}.tool_named", lambda _: tool)
    people.tool("asked.pay", reconcile={"settle_after": 30})
    gate = people.ask("asked.pay")
    people.decide("alice", gate)
    people.work(gate.run_id)
    step = Step.objects.get(pk=gate.step_id)
    assert step.status == "unknown"
    assert told() == {}
    due = rows(owed.RECOVERY).first().due_at
    assert due == step.unknown_at + owed.PATIENCE
    OutboxMessage.objects.filter(due_at=due).update(due_at=due - timedelta(seconds=61))
    assert sorted(told()) == ["ada", "alice", "olga"]


def breaks_off(*_):
    raise RuntimeError("the connection broke off")


# Whom


@pytest.mark.parametrize(
    ("who", "wish"), [("alice", "outcomes"), ("olga", "recoveries"), ("ada", "recoveries")]
)
def test_who_does_not_want_it_is_not_told(people, who, wish):
    notices.set_wishes(people.people[who], Wishes(asked=False, reminders=False, **{wish: False}))
    report(people, approved(people), "unknown")
    assert sorted(told()) == sorted({"ada", "alice", "olga"} - {who})


def test_who_left_or_settles_no_more_is_not_told(people):
    report(people, approved(people), "unknown")
    Membership.objects.filter(user=people.people["olga"].id).update(role="viewer")
    Membership.objects.filter(user=people.people["alice"].id).update(active=False)
    assert sorted(told()) == ["ada"]


def test_many_become_one_mail(people):
    local(people)
    gates = []
    for number in range(7):
        gate = people.ask("local.pay", {"payment": f"p-{number}", "amount": "20.00"})
        people.decide("alice", gate)
        report(people, gate, "failed")
        gates.append(gate)
    assert told() == {}
    for row in rows(owed.FAILED):
        back = timedelta(seconds=61)
        rows(owed.FAILED).filter(pk=row.pk).update(
            due_at=row.due_at - back, created_at=row.created_at - back
        )
    (one,) = told().values()
    assert one.subject.startswith("7 calls you approved have failed: ")
    assert all(f"{BASE}/runs/{gate.run_id}" in one.body for gate in gates)
