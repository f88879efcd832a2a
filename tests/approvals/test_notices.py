"""Who is told by e-mail that a decision waits: once, soon, and nothing that others wrote."""

from __future__ import annotations

from datetime import timedelta
from smtplib import SMTPException

import pytest
from django.core import mail
from django.db import transaction

from approvals import deciders, sweep
from approvals.models import Assignment, Gate
from approvals.services import notices
from approvals.services.inboxes import recheck, refresh_inboxes
from approvals.services.notices import Wishes
from tenants import outbox
from tenants.clock import database_now
from tenants.models import Membership, OutboxMessage, User
from tests.approvals.house import House, fresh
from tests.threads import at_once

__all__ = ["at_once"]

BASE = "https://gates.example.test"


@pytest.fixture(autouse=True)
def told(settings, monkeypatch):
    settings.ABEYANCE_BASE_URL = BASE
    settings.DEFAULT_FROM_EMAIL = "Abeyance <gates@example.test>"
    hints = []
    monkeypatch.setattr("tenants.queue.send", hints.append)
    return hints


@pytest.fixture
def people(house: House) -> House:
    """Alice, Carol and Ada have an address; Bob, who may decide mails only, has none."""
    for name in ("ada", "alice", "carol"):
        User.objects.filter(pk=house.people[name].id).update(email=f"{name}@acme.test")
    return house


def rows(kind="notice.asked", **wanted):
    return OutboxMessage.objects.filter(kind=kind, **wanted).order_by("id")


def later(rows_, **lengths):
    """Let time pass for these rows: all that they hold is earlier."""
    back = timedelta(**lengths)
    for row in rows_:
        row.created_at -= back
        row.due_at = row.due_at and row.due_at - back
        row.sent_at = row.sent_at and row.sent_at - back
        type(row).objects.filter(pk=row.pk).update(
            created_at=row.created_at, due_at=row.due_at, sent_at=row.sent_at
        )


def to(name):
    return [one for one in mail.outbox if one.to == [f"{name}@acme.test"]]


def test_everybody_who_may_decide_is_told_once(people, told):
    gate = people.ask()
    assert told == [str(people.tenant.pk)]
    assert outbox.send_due() == 2
    assert sorted(one.to[0] for one in mail.outbox) == ["alice@acme.test", "carol@acme.test"]
    assert all(f"{BASE}/decisions/{gate.pk}" in one.body for one in mail.outbox)
    assert outbox.send_due() == 0
    assert len(mail.outbox) == 2
    assert set(rows().values_list("due_at", flat=True)) == {None}


def test_a_mail_holds_nothing_that_the_agent_or_others_wrote(people):
    people.ask(reasoning="TRUST ME", confidence=0.9, failure_modes=["NONE AT ALL"])
    outbox.send_due()
    body = mail.outbox[0].subject + mail.outbox[0].body
    assert "TRUST ME" not in body
    assert "NONE AT ALL" not in body
    assert "make Bob happy" not in body
    assert "approves nothing" in body


def test_a_headline_makes_no_link_and_no_header(people):
    people.tool("links", headline="Pay {payment}", arguments={"type": "object"})
    people.ask("links", {"payment": "https://evil.test\r\nBcc: x@evil.test"})
    outbox.send_due()
    one = mail.outbox[0]
    assert "https://evil.test" not in one.subject + one.body
    assert "\n" not in one.subject
    assert one.bcc == []


def test_the_row_stands_or_falls_with_the_assignment(people, told):
    gate = people.ask()
    Assignment.objects.all().delete()
    rows().delete()
    with transaction.atomic():
        deciders.assign([gate.pk], database_now())
        assert rows().count() == 2
        transaction.set_rollback(True)
    assert not rows().exists()
    assert len(told) == 1


def test_who_is_assigned_again_is_not_told_again(people):
    gate = people.ask()
    outbox.send_due()
    Assignment.objects.filter(gate=gate).delete()
    with transaction.atomic():
        refresh_inboxes()
    assert Assignment.objects.filter(gate=gate).count() == 2
    assert outbox.send_due() == 0


def test_a_decision_that_is_taken_meanwhile_is_told_to_nobody(people):
    people.decide("alice", people.ask())
    outbox.send_due()
    assert mail.outbox == []
    assert set(rows().values_list("due_at", flat=True)) == {None}


def test_who_left_meanwhile_is_not_told(people):
    people.ask()
    Membership.objects.filter(user=people.people["carol"].id).update(active=False)
    outbox.send_due()
    assert (len(to("alice")), len(to("carol"))) == (1, 0)


def test_who_does_not_want_to_be_told_is_not(people):
    notices.set_wishes(people.people["carol"], Wishes(asked=False, reminders=True))
    people.ask()
    assert set(rows().values_list("recipient", flat=True)) == {people.people["alice"].id}


def test_who_wants_it_no_more_is_not_told_what_was_owed(people):
    people.ask()
    notices.set_wishes(people.people["carol"], Wishes(asked=False))
    outbox.send_due()
    assert to("carol") == []


def test_many_within_a_minute_become_one_mail(people):
    gates = [people.ask(arguments={"payment": f"p-{n}", "amount": "20.00"}) for n in range(7)]
    assert outbox.send_due() == 0
    later(rows(), seconds=61)
    assert outbox.send_due() == 2
    (one,) = to("alice")
    assert one.subject.startswith("7 decisions wait for you")
    assert all(f"{BASE}/decisions/{gate.pk}" in one.body for gate in gates)
    assert outbox.send_due() == 0


def test_a_few_are_mailed_one_by_one_and_the_rest_are_gathered(people):
    for n in range(5):
        people.ask(arguments={"payment": f"p-{n}", "amount": "20.00"})
    outbox.send_due()
    assert len(to("alice")) == 5
    for n in range(2):
        people.ask(arguments={"payment": f"q-{n}", "amount": "20.00"})
    outbox.send_due()
    assert len(to("alice")) == 5
    later(rows(sent_at=None), seconds=61)
    outbox.send_due()
    assert len(to("alice")) == 6
    assert to("alice")[-1].subject.startswith("2 decisions")


@pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
def test_the_sweep_has_sent_what_no_hint_came_for(people, told, monkeypatch):
    people.ask()
    told.clear()
    monkeypatch.setattr(outbox, "_hinted", {})
    assert (outbox.sweep_outbox(), outbox.sweep_outbox()) == (1, 0)
    assert told == [str(people.tenant.pk)]
    assert mail.outbox == []
    outbox._hinted.clear()
    outbox.send_due()
    assert (outbox.sweep_outbox(), len(mail.outbox)) == (0, 2)


# Reminders


def expiring(house: House, **more) -> Gate:
    house.policy(
        {
            "name": "asks",
            "trigger": "action",
            "tools": ["*"],
            "then": "approve",
            "expires_in": 1000,
            "on_expiry": "reject",
            **more,
        }
    )
    return house.ask()


def test_a_reminder_comes_once_half_of_the_time_has_passed(people):
    gate = expiring(people)
    outbox.send_due()
    assert len(to("alice")) == 1
    due = rows("notice.reminder").first().due_at
    assert gate.opened_at + timedelta(seconds=499) < due < gate.opened_at + timedelta(seconds=501)
    later(rows("notice.reminder"), seconds=501)
    outbox.send_due()
    outbox.send_due()
    (_, reminder) = to("alice")
    assert reminder.subject.startswith("Reminder: Low risk, due ")
    assert "No answer by" in reminder.body


def test_nobody_is_reminded_of_what_is_decided_or_does_not_expire(people):
    people.ask()
    assert not rows("notice.reminder").exists()
    people.decide("alice", expiring(people))
    later(rows("notice.reminder"), seconds=501)
    outbox.send_due()
    assert [one for one in mail.outbox if "Reminder" in one.subject] == []


# Failing and repeating


class Broken:
    """A mail server that fails; it keeps what it was asked to send."""

    def __init__(self, failure):
        self.failure, self.tries = failure, []

    def __get__(self, message, _owner):
        return lambda: self._send(message)

    def _send(self, message):
        self.tries.append(message.extra_headers["Message-ID"])
        raise self.failure


@pytest.mark.parametrize("failure", [SMTPException("down"), ConnectionRefusedError("refused")])
def test_a_mail_that_fails_is_tried_again_later_under_its_id(people, monkeypatch, failure):
    people.ask()
    broken = Broken(failure)
    with monkeypatch.context() as patch:
        patch.setattr("django.core.mail.EmailMessage.send", broken)
        outbox.send_due()
        assert outbox.send_due() == 0
        first = set(broken.tries)
        later(rows(), seconds=31)
        outbox.send_due()
    assert (set(broken.tries), len(broken.tries)) == (first, 4)
    assert set(rows().values_list("attempts", flat=True)) == {2}
    assert all(row.error for row in rows())
    later(rows(), seconds=61)
    outbox.send_due()
    assert {one.extra_headers["Message-ID"] for one in mail.outbox} == first
    assert len(mail.outbox) == 2


def test_a_mail_is_given_up_after_its_tries(people, monkeypatch):
    people.ask()
    rows().update(attempts=outbox.TRIES - 1)
    monkeypatch.setattr("django.core.mail.EmailMessage.send", Broken(SMTPException("down")))
    outbox.send_due()
    assert set(rows().values_list("due_at", "sent_at", "error")) == {(None, None, "down")}


def test_a_sender_that_dies_after_sending_repeats_the_mail_under_its_id(people, monkeypatch):
    people.ask()
    with monkeypatch.context() as patch:
        patch.setattr(outbox, "Now", _dies)
        with pytest.raises(KeyboardInterrupt):
            outbox._send(outbox._claim("notice.asked", people.people["alice"].id)[0])
    assert outbox.send_due() == 1  # Carol's; Alice's is claimed
    later(rows(recipient=people.people["alice"].id), seconds=121)
    outbox.send_due()
    first, again = to("alice")
    assert first.extra_headers["Message-ID"] == again.extra_headers["Message-ID"]


def _dies():
    raise KeyboardInterrupt


def test_a_gathered_mail_is_repeated_as_it_was(people, monkeypatch):
    for n in range(6):
        people.ask(arguments={"payment": f"p-{n}", "amount": "20.00"})
    later(rows(), seconds=61)
    broken = Broken(SMTPException("down"))
    with monkeypatch.context() as patch:
        patch.setattr("django.core.mail.EmailMessage.send", broken)
        outbox.send_due()
    people.ask(arguments={"payment": "later", "amount": "20.00"})
    later(rows(), seconds=31)
    outbox.send_due()
    ids = {one.extra_headers["Message-ID"]: one for one in to("alice")}
    assert len(to("alice")) == 2
    (repeated,) = [one for message_id, one in ids.items() if message_id in broken.tries]
    assert repeated.subject.startswith("6 decisions")


def test_two_senders_send_a_mail_once(people, at_once):
    people.ask()
    at_once(outbox.send_due, outbox.send_due, outbox.send_due)
    assert sorted(one.to[0] for one in mail.outbox) == ["alice@acme.test", "carol@acme.test"]


# What nobody may decide


def test_a_gate_that_nobody_may_decide_goes_to_the_admins(people):
    people.grant("alice")
    people.grant("carol")
    gate = people.ask()
    assert gate.undecidable_at is not None
    assert "gate.undecidable" in people.kinds(gate.run_id)
    outbox.send_due()
    (one,) = mail.outbox
    assert one.to == ["ada@acme.test"]
    assert one.subject.startswith("Nobody may decide: ")
    assert people.request("ada", "GET", f"/gates/{gate.pk}")[1]["undecidable"] is True


def test_being_admin_decides_nothing(people):
    people.grant("alice")
    people.grant("carol")
    gate = people.ask()
    before = people.trace(gate)
    status, answer, _ = people.request(
        "ada", "POST", f"/gates/{gate.pk}/decisions", {"verdict": "approve", "digest": gate.digest}
    )
    assert (status, answer["code"]) == (403, "not-an-approver")
    assert people.trace(gate) == before


def test_the_only_approver_who_asked_for_the_run_leaves_nobody(people):
    people.grant("carol")
    gate = people.ask(run=people.run(requested_by="alice"))
    assert gate.undecidable_at is not None
    assert people.ask().undecidable_at is None


def test_a_right_that_is_withdrawn_leaves_nobody_and_is_noticed(people):
    gate = people.ask()
    for name in ("alice", "carol"):
        people.grant(name)
    with transaction.atomic():
        refresh_inboxes()
    assert fresh(gate).undecidable_at is not None
    assert people.kinds(gate.run_id).count("gate.undecidable") == 1
    recheck(gate.pk)
    assert people.kinds(gate.run_id).count("gate.undecidable") == 1


def test_somebody_who_is_given_authority_is_asked(people):
    people.grant("alice")
    people.grant("carol")
    gate = people.ask()
    people.grant("carol", "*")
    with transaction.atomic():
        refresh_inboxes()
    assert fresh(gate).undecidable_at is None
    assert people.kinds(gate.run_id)[-1] == "gate.decidable"
    outbox.send_due()
    assert [one.to for one in mail.outbox] == [["carol@acme.test"]]


def test_the_sweep_finds_what_was_not_looked_at(people, monkeypatch):
    gate = people.ask()
    for name in ("alice", "carol"):
        people.grant(name)
    with monkeypatch.context() as patch:
        patch.setattr("approvals.services.inboxes.recheck", lambda _: None)
        with transaction.atomic():
            refresh_inboxes()
    assert (fresh(gate).undecidable_at, fresh(gate).due_at is None) == (None, False)
    sweep._send_again(gate.tenant_id, gate.pk)
    assert fresh(gate).undecidable_at is not None
    assert fresh(gate).due_at is None
