"""Handing a gate on changes who is asked, and never who may decide."""

from __future__ import annotations

import json

import pytest
from django.core import mail
from django.db import transaction

from approvals import waiting
from approvals.models import Assignment, Gate
from approvals.services import assignments
from approvals.services.grants import set_grants
from approvals.services.inboxes import refresh_inboxes
from config.errors import PeopleOnly
from interrupts import verification
from interrupts.models import Run
from tenants import outbox
from tenants.ids import uuid7
from tenants.journal import SYSTEM
from tenants.models import Agent, JournalEntry, OutboxMessage, User
from tests.approvals.house import CALL


def hand(house, gate, who="alice", to="carol", **more):
    return house.request(who, "POST", f"/gates/{gate.pk}/assignment", {"to": to, **more})


def inbox(house, who):
    return [row.gate.pk for row in waiting.waiting(house.people[who].id, waiting.Wanted()).rows]


def trace(house, gate):
    return {
        **house.trace(gate),
        "rows": list(Assignment.objects.order_by("id").values()),
        "journal": JournalEntry.objects.count(),
        "owed": OutboxMessage.objects.count(),
        "runs": list(Run.objects.order_by("id").values()),
    }


def refused(house, gate, told, status, code, before):
    assert (told[0], told[1]["code"]) == (status, code)
    assert trace(house, gate) == before


@pytest.fixture
def two(house):
    return house.ask(), house.ask(arguments={"payment": "p-2", "amount": "1"})


def test_it_stands_first_in_one_inbox_and_leaves_the_other(house, two):
    first, second = two
    assert inbox(house, "carol") == inbox(house, "alice") == [first.pk, second.pk]
    version = Run.objects.get(pk=second.run_id).state_version

    status, body, headers = hand(house, second, note="You know them.")

    assert (status, body["id"], body["state"]) == (200, str(second.pk), "pending")
    assert inbox(house, "carol") == [second.pk, first.pk]
    assert inbox(house, "alice") == [first.pk]
    assert waiting.count(house.people["alice"].id) == "1"
    assert waiting.counts(house.people["alice"].id).decisions == 1
    mine = house.request("alice", "GET", "/gates?mine=true")[1]["results"]
    assert [one["id"] for one in mine] == [str(first.pk)]
    assert headers["ETag"] == f'"{version}"'
    assert list(verification.of_run(Run.objects.get(pk=second.run_id))) == []


@pytest.mark.parametrize("who", ["alice", "carol"])
def test_whoever_might_decide_it_still_may(house, who):
    gate = house.ask()
    hand(house, gate)
    assert house.request("alice", "GET", f"/gates/{gate.pk}")[1]["may_decide"] is True
    assert house.decide(who, gate).state == "approved"


def test_the_journal_says_who_handed_it_to_whom_and_why_and_agents_are_not_told_who(house):
    gate = house.ask()
    hand(house, gate, note="You know them.")
    said = json.loads(JournalEntry.objects.get(kind="gate.reassigned").text)
    people = house.people
    assert said["actor"] == {"kind": "user", "id": str(people["alice"].id)}
    assert said["data"]["to"] == {"kind": "user", "id": str(people["carol"].id)}
    assert (said["data"]["gate"], said["data"]["note"]) == (str(gate.pk), "You know them.")
    shown = json.dumps(house.request("bot", "GET", f"/runs/{gate.run_id}/journal")[1])
    assert str(people["carol"].id) not in shown


def test_an_operator_hands_on_what_is_not_theirs_and_takes_it_from_nobody(house, two):
    first, second = two
    assert hand(house, second, "olga")[0] == 200
    assert hand(house, first, "ada", "alice")[0] == 200
    assert inbox(house, "carol") == [second.pk, first.pk]
    assert inbox(house, "alice") == [first.pk, second.pk]


def test_the_same_again_changes_nothing(house):
    gate = house.ask()
    hand(house, gate)
    entries = JournalEntry.objects.count()
    rows = list(Assignment.objects.order_by("id").values())
    assert hand(house, gate)[0] == 200
    assert JournalEntry.objects.count() == entries
    assert list(Assignment.objects.order_by("id").values()) == rows


def test_it_can_be_handed_back(house):
    gate = house.ask()
    hand(house, gate)
    assert hand(house, gate, "carol", "alice")[0] == 200
    assert (inbox(house, "alice"), inbox(house, "carol")) == ([gate.pk], [])


def test_what_was_handed_on_stays_away_when_authority_changes(house):
    gate = house.ask()
    hand(house, gate)
    with transaction.atomic():
        set_grants(SYSTEM, {"bob": ["*"]})
        refresh_inboxes()
    assert (inbox(house, "alice"), inbox(house, "bob")) == ([], [gate.pk])


def test_what_was_handed_to_who_may_not_any_more_comes_back(house):
    gate = house.ask()
    hand(house, gate)
    with transaction.atomic():
        set_grants(SYSTEM, {"alice": ["*"]}, others_end=True)
        refresh_inboxes()
    assert (inbox(house, "alice"), inbox(house, "carol")) == ([gate.pk], [])
    assert Gate.objects.get(pk=gate.pk).undecidable_at is None


@pytest.mark.parametrize("to", ["bob", "vera", "olga", "nobody", "dora"])
def test_it_goes_to_nobody_who_may_not_decide_it(house, to):
    User.objects.create(username="dora")  # of no tenant here
    gate = house.ask()
    before = trace(house, gate)
    told = hand(house, gate, to=to)
    refused(house, gate, told, 422, "invalid-body", before)
    assert [one["pointer"] for one in told[1]["errors"]] == ["/to"]


def test_it_goes_to_nobody_for_whom_it_runs_nor_whose_agent_it_is(house):
    gate = house.ask(run=house.run(requested_by="carol"))
    before = trace(house, gate)
    refused(house, gate, hand(house, gate), 422, "invalid-body", before)
    Agent.objects.filter(name="bot").update(owner=house.people["carol"].id)
    other = house.ask(arguments={**CALL, "payment": "p-3"})
    before = trace(house, other)
    refused(house, other, hand(house, other), 422, "invalid-body", before)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/to"),
        ({"to": ""}, "/to"),
        ({"to": 7}, "/to"),
        ({"to": "carol", "note": "x" * 2001}, "/note"),
        ({"to": "carol", "who": "x"}, "/who"),
    ],
)
def test_another_shape_is_refused(house, body, pointer):
    gate = house.ask()
    before = trace(house, gate)
    told = house.request("alice", "POST", f"/gates/{gate.pk}/assignment", body)
    refused(house, gate, told, 422, "invalid-body", before)
    assert [one["pointer"] for one in told[1]["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("who", "code"),
    [("bot", "people-only"), ("bob", "not-an-approver"), ("vera", "forbidden")],
)
def test_who_is_not_asked_hands_nothing_on(house, who, code):
    gate = house.ask()
    before = trace(house, gate)
    refused(house, gate, hand(house, gate, who), 403, code, before)


def test_who_handed_it_on_hands_it_to_nobody_else(house):
    house.grant("bob", "*")
    gate = house.ask()
    hand(house, gate)
    before = trace(house, gate)
    refused(house, gate, hand(house, gate, to="bob"), 403, "forbidden", before)


def test_for_whom_it_runs_hands_nothing_on(house):
    gate = house.ask(run=house.run(requested_by="alice"))
    before = trace(house, gate)
    refused(house, gate, hand(house, gate), 403, "own-request", before)


def test_what_is_decided_is_handed_to_nobody(house):
    gate = house.ask()
    house.decide("carol", gate, "reject", reason="no")
    before = trace(house, gate)
    refused(house, gate, hand(house, gate, "olga"), 409, "already-decided", before)


def test_what_has_expired_is_handed_to_nobody(house):
    gate = house.ask()
    Gate.objects.filter(pk=gate.pk).update(expires_at=gate.opened_at)
    before = trace(house, gate)
    refused(house, gate, hand(house, gate), 410, "gate-expired", before)


def test_a_gate_that_is_not_there_is_not_found(house):
    path = f"/gates/{uuid7()}/assignment"
    assert house.request("alice", "POST", path, {"to": "carol"})[0] == 404


def test_the_service_asks_again_who_calls(house):
    gate = house.ask()
    before = trace(house, gate)
    with pytest.raises(PeopleOnly):
        assignments.reassign_gate(house.agent, gate.pk, to="carol")
    assert trace(house, gate) == before


def test_whoever_it_is_handed_to_is_told_and_who_handed_it_on_is_not_reminded(
    house, settings, monkeypatch
):
    settings.ABEYANCE_BASE_URL = "https://gates.example.test"
    monkeypatch.setattr("tenants.queue.send", lambda _: None)
    for name in ("alice", "carol"):
        User.objects.filter(username=name).update(email=f"{name}@acme.test")
    gate = house.ask()
    hand(house, gate, note="CLICK HERE")
    outbox.send_due()
    told = [one for one in mail.outbox if one.subject.startswith("Handed to you")]
    assert [one.to for one in told] == [["carol@acme.test"]]
    assert "CLICK" not in told[0].subject + told[0].body
    assert not [one for one in mail.outbox if one.to == ["alice@acme.test"]]
