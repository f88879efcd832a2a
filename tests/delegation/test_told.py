"""What a person is told by e-mail of their rules: each thing once, and nothing that an agent wrote."""

from __future__ import annotations

import pytest
from django.core import mail
from django.urls import reverse

from approvals import owed
from approvals.services import notices
from approvals.services.notices import Wishes
from delegation.models import Delegation
from delegation.services import rules
from tenants import outbox
from tenants.models import OutboxMessage, User
from tests.approvals.house import fresh
from tests.clock import move
from tests.delegation.office import PREDICATE, ROLES, SCHEMA, TOOL

BASE = "https://gates.example.test"


@pytest.fixture(autouse=True)
def reachable(office, settings, monkeypatch):
    """Alice and Carol have an address, and wish to be told of rules alone."""
    settings.ABEYANCE_BASE_URL = BASE
    monkeypatch.setattr("tenants.queue.send", lambda _: None)
    quiet = dict.fromkeys(("asked", "reminders", "votes", "outcomes", "expiries"), False)
    for name in ("alice", "carol"):
        User.objects.filter(pk=office.house.people[name].id).update(email=f"{name}@acme.test")
        notices.set_wishes(office.house.people[name], Wishes(**quiet))


def told():
    """Send what is due; return the mails."""
    mail.outbox.clear()
    outbox.send_due()
    return list(mail.outbox)


def test_a_suggestion_is_told_once_and_its_link_decides_nothing(office):
    office.approve(8, tier="WIN-A-PRIZE")
    office.catch_up()
    rule = Delegation.objects.get()
    (sent,) = told()
    assert (sent.to, sent.subject) == (["alice@acme.test"], f"A rule is suggested: {TOOL}")
    assert f"Look at the rule: {BASE}{reverse('rule', args=[rule.pk])}" in sent.body
    assert "allowed 8 that you approved and 0 that you refused" in sent.body
    assert "A link here signs nobody in and approves nothing." in sent.body
    assert "WIN-A-PRIZE" not in sent.body  # an agent's words
    office.approve(3, tier="WIN-A-PRIZE")
    office.catch_up()
    assert told() == []
    assert fresh(rule).status == "suggested"
    # What one made by hand, one knows of.
    office.house.tool("mail.send", arguments=SCHEMA, roles=ROLES)
    rules.propose_by_hand(office.house.people["alice"], "mail.send", PREDICATE)
    assert OutboxMessage.objects.filter(kind=owed.SUGGESTED).count() == 1


def test_each_pause_by_a_check_is_told_once_while_the_rule_sleeps(office):
    alice, rule = office.house.people["alice"], office.rule(share=1)
    rules.pause(alice, rule.pk)
    assert told() == []  # it was her own word
    for again in range(2):
        rules.accept(alice, rule.pk)
        office.reject(order=f"o-{again}")
        office.catch_up()
        (sent,) = told()
        assert sent.subject == f"Paused: your rule for {TOOL}"
        assert "You refused what it would have allowed." in sent.body
        assert f"{BASE}{reverse('rule', args=[rule.pk])}" in sent.body
        office.catch_up()
        assert told() == []
        move(60)
    rules.accept(alice, rule.pk)
    rules.pause(office.house.people["ada"], rule.pk)
    rules.revoke(alice, rule.pk)
    assert told() == []  # it has ended since
    assert OutboxMessage.objects.filter(kind=owed.PAUSED).count() == 3


def test_many_share_one_mail_and_who_wants_none_gets_none(office):
    alice, carol = office.house.people["alice"], office.house.people["carol"]
    made = []
    for at in range(7):
        office.house.tool(f"tool.n{at}", arguments=SCHEMA, roles=ROLES)
        for who in (alice, carol):
            one = rules.propose_by_hand(who, f"tool.n{at}", PREDICATE)
            made.append(rules.accept(who, one.pk))
    notices.set_wishes(carol, Wishes(asked=False, rules=False))
    for one in made:
        rules.pause(office.house.people["ada"], one.pk, "a while")
    move(61)
    (sent,) = told()
    assert sent.subject == "7 rules of yours were paused: Acme"
    assert sent.to == ["alice@acme.test"]
    assert f"All of them: {BASE}/delegation/" in sent.body
    assert "a while" not in sent.body
