"""A substitute is told by e-mail of what they may decide for somebody, while they stand in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail

from approvals.models import Gate
from approvals.services import notices, substitutions
from approvals.services.extensions import extend_gate
from approvals.services.notices import Wishes
from interrupts.services import looking
from tenants import outbox
from tenants.clock import database_now
from tenants.models import Membership, OutboxMessage, Role, User
from tests import clock
from tests.approvals.house import House
from tests.approvals.test_assignments import hand
from tests.approvals.test_limits import UP_TO_500, costing, grant, within
from tests.approvals.test_notices import BASE, later, rows
from tests.clock import moving_clock

__all__ = ["moving_clock"]

HOUR = 3600
ASKS: dict[str, Any] = {
    "name": "asks",
    "trigger": "action",
    "tools": ["payments.*"],
    "then": "approve",
    "expires_in": 1000,
    "on_expiry": "reject",
    "extendable_to": 9000,
}


@pytest.fixture(autouse=True)
def away(house: House, settings: Any, monkeypatch: pytest.MonkeyPatch) -> House:
    """Alice may decide refunds and is away; Bob, who may decide nothing, and Carol have addresses."""
    settings.ABEYANCE_BASE_URL = BASE
    monkeypatch.setattr("tenants.queue.send", lambda _: None)
    house.policy(ASKS)
    grant(alice=["payments.*"], carol=[], bob=[], vera=[])
    for name in ("alice", "bob", "carol"):
        User.objects.filter(pk=house.people[name].id).update(email=f"{name}@acme.test")
    User.objects.filter(pk=house.people["alice"].id).update(first_name="Alice", last_name="Ames")
    return house


def stand_in(house: House, substitute: str = "bob", starts_in: int = 0, seconds: int = HOUR) -> Any:
    now = database_now()
    return substitutions.set_as(
        house.people["alice"],
        substitute=substitute,
        starts_at=now + timedelta(seconds=starts_in) if starts_in else None,
        ends_at=now + timedelta(seconds=seconds),
    ).row


def told(name: str) -> list[Any]:
    """Send what is due; return what this person was told by it."""
    mail.outbox.clear()
    outbox.send_due()
    return [one for one in mail.outbox if one.to == [f"{name}@acme.test"]]


def test_a_substitute_is_told_of_what_waits_and_for_whom_while_they_stand_in(away: House) -> None:
    first = away.ask()
    assert told("bob") == []
    row = stand_in(away)
    (waited,) = told("bob")
    gate = away.ask(arguments=costing("30.00"))
    (asked,) = told("bob")

    for one, about in ((waited, first), (asked, gate)):
        assert one.subject.startswith("Low risk, due ")
        assert f"{BASE}/decisions/{about.pk}" in one.body
        assert "For: Alice Ames, for whom you stand in" in one.body
        assert "approves nothing" in one.body
    assert told("bob") == told("carol") == []
    assert away.decide("bob", gate).state == "approved"

    away.ask(arguments=costing("31.00"))
    substitutions.end_as(away.people["alice"], row.pk)
    away.ask(arguments=costing("32.00"))
    assert told("bob") == []
    assert not rows().filter(about=Gate.objects.latest("id").pk, recipient=away.people["bob"].id)


def test_one_who_is_yet_to_stand_in_is_told_as_they_begin(moving_clock: Any, away: House) -> None:
    stand_in(away, starts_in=600)
    gates = [away.ask(arguments=costing(f"3{n}.00")) for n in range(2)]
    assert told("bob") == []
    clock.move(601)

    (one,) = told("bob")

    assert one.subject.startswith("2 decisions wait for somebody you stand in for")
    assert all(f"{BASE}/decisions/{gate.pk}" in one.body for gate in gates)


def test_of_what_they_may_not_decide_a_substitute_is_told_nothing(away: House) -> None:
    stand_in(away)
    away.ask(run=away.run(requested_by="bob"))
    grant(alice=[within(UP_TO_500)])
    away.ask(arguments=costing("501.00"))
    assert told("bob") == []
    away.ask(arguments=costing("30.00"))
    Membership.objects.filter(user=away.people["bob"].id).update(role=Role.VIEWER)
    assert told("bob") == []


def test_who_may_decide_it_themself_is_told_once_and_for_nobody(away: House) -> None:
    grant(alice=["payments.*"], carol=["payments.*"])
    stand_in(away, substitute="carol")
    away.ask()
    (one,) = told("carol")
    assert "For: " not in one.body


@pytest.mark.parametrize("waits_first", [True, False])
def test_a_substitute_is_reminded_while_they_stand_in(away: House, *, waits_first: bool) -> None:
    if waits_first:
        gate = away.ask()
        stand_in(away, seconds=3 * HOUR)
    else:
        stand_in(away, seconds=3 * HOUR)
        gate = away.ask()
    told("bob")
    later(rows("notice.reminder"), seconds=501)

    (one,) = told("bob")

    assert one.subject.startswith("Reminder: ")
    assert "For: Alice Ames" in one.body
    extend_gate(
        away.people["bob"], gate.pk, expires_at=database_now() + timedelta(hours=2), note="later"
    )
    (anew,) = rows("notice.reminder").filter(recipient=away.people["bob"].id)
    assert anew.sent_at is None


def test_nobody_is_reminded_after_they_stood_in(away: House) -> None:
    stand_in(away, seconds=300)
    away.ask()
    assert not rows("notice.reminder").filter(recipient=away.people["bob"].id).exists()
    assert rows("notice.reminder").filter(recipient=away.people["alice"].id).exists()


def test_a_substitute_who_does_not_want_it_is_not_told(away: House) -> None:
    notices.set_wishes(away.people["bob"], Wishes(asked=False, reminders=False))
    away.ask()
    stand_in(away)
    away.ask(arguments=costing("30.00"))
    later(OutboxMessage.objects.filter(recipient=away.people["bob"].id), seconds=501)
    assert told("bob") == []


def test_a_substitute_is_told_that_nobody_decided_what_they_might_have(
    moving_clock: Any, away: House
) -> None:
    grant(alice=[within(UP_TO_500)], carol=["payments.*"])
    stand_in(away)
    stand_in(away, substitute="carol")
    gate, own = away.ask(), away.ask(run=away.run(requested_by="bob"))
    beyond = away.ask(arguments=costing("501.00"))
    for name in ("alice", "bob", "carol"):
        told(name)

    clock.move(1001)
    for one in (gate, own, beyond):
        looking.look(one.run_id)

    mail.outbox.clear()
    outbox.send_due()
    about = {
        name: [
            one.about
            for one in rows("notice.expired")
            .filter(recipient=away.people[name].id)
            .order_by("about")
        ]
        for name in ("alice", "bob", "carol")
    }
    assert about == {
        "alice": [gate.pk, own.pk],
        "bob": [gate.pk],  # not what runs for him, nor what is beyond alice's limit
        "carol": [gate.pk, own.pk, beyond.pk],  # once, who may by herself and for alice
    }
    (bobs,) = [one for one in mail.outbox if one.to == ["bob@acme.test"]]
    assert bobs.subject.startswith("Expired: ")


def test_a_substitute_is_told_of_what_is_handed_to_whom_they_stand_in_for(away: House) -> None:
    grant(carol=["payments.*"])
    row = stand_in(away)
    gate, own, other = away.ask(), away.ask(run=away.run(requested_by="bob")), away.ask()
    told("bob")
    for one in (gate, own):
        hand(away, one, "carol", "alice")

    (handed,) = told("bob")

    assert handed.subject.startswith("Handed on: ")
    assert "For: Alice Ames, for whom you stand in" in handed.body
    assert f"{BASE}/decisions/{gate.pk}" in handed.body
    # Handed away and back: once told is told; who hands it on knows; and it waits for carol anyway.
    hand(away, gate, "alice", "carol")
    hand(away, gate, "carol", "alice")
    stand_in(away, substitute="carol")
    hand(away, other, "carol", "alice")
    assert [one.subject[:9] for one in told("bob")] == ["Handed on"]
    carols = rows("notice.handed").filter(recipient=away.people["carol"].id)
    assert [one.about for one in carols] == [gate.pk]  # as alice handed it to her
    # Over before it is sent: nothing of it is news.
    last = away.ask()
    told("bob")
    hand(away, last, "carol", "alice")
    substitutions.end_as(away.people["alice"], row.pk)
    assert told("bob") == []


@pytest.mark.parametrize(("giver", "to"), [("carol", "alice"), ("alice", "carol")])
def test_who_stands_in_for_both_is_told_for_whom_it_waits_now(
    away: House, giver: str, to: str
) -> None:
    """Both might decide it; it waits for the one to whom the other has handed it."""
    grant(carol=["payments.*"])
    User.objects.filter(pk=away.people["carol"].id).update(first_name="Carol", last_name="Cole")
    for person in ("alice", "carol"):
        now = database_now()
        substitutions.set_as(
            away.people[person], substitute="bob", starts_at=None, ends_at=now + timedelta(hours=1)
        )
    assert told("bob") == []
    gate = away.ask()
    hand(away, gate, giver, to)
    name = {"alice": "Alice Ames", "carol": "Carol Cole"}[to]

    mails = told("bob")

    assert sorted(one.subject[:9] for one in mails) == ["Handed on", "Low risk,"]
    assert all(f"For: {name}, for whom you stand in" in one.body for one in mails)
