"""Whoever may decide a gate may give it more time: as policy allows, never less, never an approval."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from approvals.models import Gate
from approvals.policy import compile_policy, validate_policy
from interrupts import verification
from interrupts.models import Interrupt, Run
from interrupts.services import looking
from tenants.clock import database_now
from tenants.models import JournalEntry, OutboxMessage, User
from tests import clock
from tests.approvals.house import House, fresh
from tests.approvals.test_policy_judging import call, rule
from tests.clock import moving_clock

__all__ = ["moving_clock"]

ASKS = {"name": "asks", "trigger": "action", "then": "approve", "tools": ["*"]}
LONGER = {**ASKS, "expires_in": 600, "extendable_to": 3600}


@pytest.fixture
def gate(house: House) -> Any:
    with transaction.atomic():
        User.objects.filter(username="alice").update(email="alice@acme.test")
    house.policy(LONGER)
    return house.ask()


def extend(house: House, gate: Any, until: Any, who: str = "alice", **more: Any) -> tuple[int, Any]:
    at = until.isoformat() if isinstance(until, datetime) else until
    body = {"expires_at": at, "note": "I ask the customer first.", **more}
    return house.request(who, "POST", f"/gates/{gate.pk}/extension", body)[:2]


def trace(house: House, gate: Any) -> dict[str, Any]:
    return {
        **house.trace(gate),
        "asked": list(Interrupt.objects.values()),
        "owed": list(OutboxMessage.objects.order_by("id").values()),
        "journal": JournalEntry.objects.count(),
    }


def latest(gate: Any) -> datetime:
    found: datetime = gate.opened_at + timedelta(seconds=3600)
    return found


def test_a_gate_that_was_given_more_time_waits_till_then_and_ends_as_it_was_to(
    house: House, gate: Any
) -> None:
    before, version = gate.expires_at, Run.objects.get(pk=gate.run_id).state_version
    until = before + timedelta(seconds=900)

    status, body = extend(house, gate, until)

    gate = fresh(gate)
    assert (status, gate.expires_at, gate.on_expiry) == (200, until, "reject")
    assert datetime.fromisoformat(body["expires_at"]) == until
    assert datetime.fromisoformat(body["extendable_until"]) == latest(gate)
    asked = house.request("bot", "GET", f"/interrupts/{gate.interrupt_id}")[1]
    assert datetime.fromisoformat(asked["required_response"]["expires_at"]) == until
    assert Run.objects.get(pk=gate.run_id).state_version == version + 1
    entry = JournalEntry.objects.get(stream=gate.run_id, kind="gate.extended")
    assert "I ask the customer first." in entry.text
    assert str(house.people["alice"].id) in entry.text
    clock.move(601)
    looking.look(gate.run_id)
    assert fresh(gate).state == "pending"
    clock.move(900)
    looking.look(gate.run_id)
    assert (fresh(gate).state, fresh(gate.step).status) == ("expired", "rejected")
    assert house.calls == []
    assert list(verification.of_run(fresh(gate.run))) == []


def test_the_same_time_again_is_no_change_and_the_longest_is_the_last(
    house: House, gate: Any
) -> None:
    assert extend(house, gate, latest(gate))[0] == 200
    before = trace(house, gate)
    assert extend(house, gate, latest(gate))[0] == 200
    assert extend(house, gate, latest(gate) + timedelta(seconds=1))[1]["code"] == "not-extendable"
    assert trace(house, gate) == before
    assert house.request("alice", "GET", f"/gates/{gate.pk}")[1]["extendable_until"] is None


@pytest.mark.parametrize(
    ("until", "who", "more", "status", "code", "pointer"),
    [
        (-1, "alice", {}, 422, "invalid-body", "/expires_at"),
        (3001, "alice", {}, 422, "invalid-body", "/expires_at"),
        ("soon", "alice", {}, 422, "invalid-body", "/expires_at"),
        (60, "alice", {"note": " "}, 422, "invalid-body", "/note"),
        (60, "alice", {"note": "x" * 2001}, 422, "invalid-body", "/note"),
        (60, "alice", {"seconds": 1}, 422, "invalid-body", "/seconds"),
        (60, "bot", {}, 403, "people-only", None),
        (60, "bob", {}, 403, "not-an-approver", None),
        (60, "vera", {}, 403, "forbidden", None),
    ],
)
def test_what_is_out_of_bounds_changes_nothing(
    house: House, gate: Any, until: Any, who: str, more: Any, status: int, code: str, pointer: Any
) -> None:
    before = trace(house, gate)
    at = until if isinstance(until, str) else gate.expires_at + timedelta(seconds=until)
    told = extend(house, gate, at, who, **more)
    assert (told[0], told[1].get("code")) == (status, code)
    assert [one["pointer"] for one in told[1].get("errors", [])] == ([pointer] if pointer else [])
    assert trace(house, gate) == before


def test_nobody_extends_what_has_ended_or_what_policy_gives_no_more_time(
    house: House, gate: Any
) -> None:
    other = house.ask()
    house.policy({**ASKS, "expires_in": 600})
    before = trace(house, other)
    told = extend(house, other, other.expires_at + timedelta(seconds=60))
    assert (told[0], told[1]["code"]) == (409, "not-extendable")
    assert trace(house, other) == before
    house.policy(LONGER)
    house.decide("alice", other, "reject", reason="no")
    before = trace(house, other)
    told = extend(house, other, other.expires_at + timedelta(seconds=60))
    assert (told[0], told[1]["code"]) == (409, "already-decided")
    assert trace(house, other) == before
    clock.move(601)
    before = trace(house, gate)
    # Its time is up by the database's clock, whoever has looked.
    told = extend(house, gate, gate.expires_at + timedelta(seconds=900))
    assert (told[0], told[1]["code"]) == (410, "gate-expired")
    assert trace(house, gate) == before


def test_whoever_is_asked_next_has_as_much_time_anew(house: House) -> None:
    house.group("leads", "carol")
    house.policy({**LONGER, "on_expiry": "escalate", "escalate_to": "leads"})
    gate = house.ask()
    clock.move(601)
    looking.look(gate.run_id)
    gate = fresh(gate)
    assert gate.approvers == ["leads"]
    until = gate.expires_at + timedelta(seconds=2999)
    assert extend(house, gate, until, "alice")[1]["code"] == "not-an-approver"
    assert extend(house, gate, until + timedelta(seconds=60), "carol")[0] == 422
    assert extend(house, gate, until, "carol")[0] == 200
    assert fresh(gate).on_expiry == "reject"
    assert list(verification.of_run(fresh(gate.run))) == []


@pytest.mark.parametrize("held", ["together", "stages"])
def test_only_those_extend_a_gate_who_decide_it_by_what_policy_says_now(
    house: House, held: str
) -> None:
    house.group("finance", "alice")
    house.group("leads", "carol")
    finance, leads = {"approvers": ["finance"]}, {"approvers": ["leads"]}
    house.policy({**LONGER, **(finance if held == "together" else {"stages": [finance, leads]})})
    gate, other = house.ask(), house.ask()
    assert extend(house, other, latest(other), "carol")[0] == 403
    house.policy({**LONGER, "stages": [leads, finance]})
    before = trace(house, gate)
    told = extend(house, gate, latest(gate), "alice")
    assert (told[0], told[1]["code"]) == (403, "not-an-approver")
    assert trace(house, gate) == before
    if held == "stages":  # of the stage that is open, and as its row still says
        told = extend(house, gate, latest(gate), "carol")
        assert (told[0], told[1]["code"]) == (403, "not-your-stage")
        assert trace(house, gate) == before
    house.policy({**LONGER, "stages": [finance, leads]})
    assert extend(house, gate, latest(gate), "alice")[0] == 200


def test_people_are_reminded_anew_whether_or_not_they_were(house: House, gate: Any) -> None:
    reminders = OutboxMessage.objects.filter(kind="notice.reminder", about=gate.pk)
    first = reminders.get()
    reminders.update(sent_at=database_now(), due_at=None, attempts=1)
    until = gate.expires_at + timedelta(seconds=1200)
    extend(house, gate, until)
    second = reminders.get()
    assert second.pk != first.pk
    left = (until - second.due_at).total_seconds()
    assert left == pytest.approx(900, abs=30)
    assert (second.sent_at, second.attempts) == (None, 0)
    # One that is on its way stays.
    reminders.update(due_at=database_now(), attempts=1)
    extend(house, gate, until + timedelta(seconds=60))
    assert reminders.get().pk == second.pk


def test_an_extension_approves_nothing_and_keeps_the_votes(house: House) -> None:
    house.policy({**LONGER, "quorum": 2})
    gate = house.ask()
    house.decide("alice", gate)
    shown = extend(house, gate, latest(gate), "carol")[1]
    assert (shown["state"], shown["quorum"]) == ("pending", {"needed": 2, "given": 1})
    assert shown["what"]["digest"] == gate.digest
    assert Gate.objects.get(pk=gate.pk).on_expiry == "reject"
    assert house.decide("carol", gate).state == "approved"


def test_a_gate_is_extended_as_far_as_each_rule_allows() -> None:
    def judged(*ends: dict[str, int]) -> tuple[int | None, int | None]:
        rules = [rule(f"r{at}", **more) for at, more in enumerate(ends)]
        verdict = compile_policy({"rules": rules}).judge(call())
        return verdict.expires_in, verdict.extendable_to

    far, near = {"expires_in": 60, "extendable_to": 600}, {"expires_in": 90, "extendable_to": 120}
    assert judged({}) == (None, None)
    assert judged({"expires_in": 60}) == (60, None)
    assert judged(far) == (60, 600)
    assert judged(far, near) == judged(near, far) == (60, 120)
    assert judged(far, {"expires_in": 90}) == (60, 90)
    assert judged(far, {"expires_in": 60}) == (60, None)
    assert judged(far, {}) == (60, 600)


@pytest.mark.parametrize(
    "more",
    [
        {"extendable_to": 60},
        {"expires_in": 60, "extendable_to": 60},
        {"expires_in": 60, "extendable_to": "1 h"},
        {"expires_in": 60, "extendable_to": 0},
        {"then": "deny", "extendable_to": 60},
    ],
)
def test_what_a_rule_says_of_it_is_checked(more: Any) -> None:
    places = {place for place, _ in validate_policy({"rules": [{**ASKS, **more}]})}
    assert "/rules/0/extendable_to" in places
