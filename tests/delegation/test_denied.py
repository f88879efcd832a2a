"""A rule whose tool policy began to deny sleeps until its person lets it go on."""

from __future__ import annotations

import json

from django.core import mail

from approvals import owed
from approvals.models import Gate, PolicyVersion
from delegation import authorizer, beside
from delegation.models import Delegation, DelegationStatus, EventStream
from delegation.services import events, learning, rules
from delegation.services.rebuilding import check
from interrupts import verification
from tenants import outbox
from tenants.models import JournalEntry, OutboxMessage, User
from tests.approvals.house import fresh
from tests.delegation.office import CALL, PREDICATE, ROLES, SCHEMA, TOOL

ASKS = {"name": "ask", "trigger": "action", "tools": ["*"], "then": "approve"}
DENIES = {**ASKS, "name": "no", "then": "deny", "tools": ["refunds.*"]}
ABOVE = {**DENIES, "name": "above", "condition": 'decimal(arguments.amount) > decimal("1000")'}
AUTOMATIC = {"mode": "automatic"}


def denied_meanwhile(office, *, denies=DENIES, **more):
    """Policy denies the tool in a version, and asks again in the next; which denied it."""
    office.house.policy(denies, ASKS, **more)
    number = PolicyVersion.objects.order_by("-number").values_list("number", flat=True)[0]
    office.house.policy(ASKS, **more)
    return number


def asks(office):
    step = office.propose()
    assert (step.status, step.authorized_by) == ("waiting", None)
    return step


def runs(office):
    step = office.propose()
    assert (step.status, step.authorized_by) == ("ready", "delegation")
    return step


def test_it_does_not_speak_even_before_anything_had_it_sleep(office):
    rule = office.rule()
    runs(office)
    denied_meanwhile(office)
    before = office.trace()
    step = asks(office)
    assert (fresh(rule).status, office.trace()) == ("active", before)
    gate = Gate.objects.get(pk=step.gate)
    assert "policy denied this tool in version" in beside.why_asked(gate, rule.user_id)


def test_what_it_had_allowed_before_does_not_start_either(office):
    office.rule()
    step = runs(office)
    denied_meanwhile(office)
    office.house.work(step.run_id)
    assert (fresh(step).status, office.house.calls) == ("waiting", [])
    assert list(verification.of_tenant()) == []


def test_while_it_is_denied_it_is_denied(office):
    office.rule()
    office.house.policy(DENIES, ASKS)
    before = office.trace()
    assert (office.propose().status, office.trace()) == ("denied", before)


def test_it_sleeps_soon_and_whoever_looks_is_told_why(office):
    rule = office.rule()
    number = denied_meanwhile(office)
    office.catch_up()
    rule = fresh(rule)
    assert (rule.status, rule.pause_reason, rule.note) == ("paused", "denied", f"version {number}")
    told = JournalEntry.objects.filter(stream=rule.tenant_id, kind="delegation.paused")
    (data,) = [json.loads(one.text)["data"] for one in told]
    assert (data["rule"], data["reason"]) == (str(rule.pk), "denied")
    assert data["note"] == f"version {number}"
    assert list(verification.of_tenant()) == []
    gate = Gate.objects.get(pk=asks(office).gate)
    why = beside.why_asked(gate, rule.user_id)
    assert why == f"policy denied this tool in version {number}: let your rule for it go on"
    office.catch_up()
    assert told.count() == 1


def test_its_person_is_told_by_mail_once(office, settings, monkeypatch):
    settings.ABEYANCE_BASE_URL = "https://gates.example.test"
    monkeypatch.setattr("tenants.queue.send", lambda _: None)
    alice = office.house.people["alice"]
    User.objects.filter(pk=alice.id).update(email="alice@acme.test")
    office.rule()
    number = denied_meanwhile(office)
    office.catch_up()
    office.catch_up()
    assert OutboxMessage.objects.filter(kind=owed.PAUSED).count() == 1
    mail.outbox.clear()
    outbox.send_due()
    (sent,) = [one for one in mail.outbox if one.subject == f"Paused: your rule for {TOOL}"]
    words = " ".join(sent.body.split())
    assert f"Policy denied this tool in version {number}. Let it go on if it still holds." in words


def test_once_it_was_let_go_on_it_stays_awake_under_versions_that_begin_to_deny_nothing(office):
    rule, alice = office.rule(), office.house.people["alice"]
    denied_meanwhile(office)
    office.catch_up()
    rules.accept(alice, rule.pk)
    runs(office)
    for document in (
        [ASKS, {**DENIES, "tools": ["mail.*"]}],
        [ASKS],
        [ASKS, {**DENIES, "tools": ["refunds.read"]}],
    ):
        office.house.policy(*document)
        office.catch_up()
        runs(office)
    assert fresh(rule).status == "active"
    # And sleeps again, once it is denied again.
    denied_meanwhile(office)
    asks(office)
    office.catch_up()
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "denied")


def test_a_denial_that_stood_when_it_began_has_nothing_sleep(office):
    office.house.policy(ASKS, ABOVE)
    rule = office.rule()
    for document in (
        [ASKS, ABOVE, {**ASKS, "name": "and", "tools": ["mail.*"]}],
        [ASKS, {**ABOVE, "name": "renamed", "reason": "Too much."}],
        [ASKS],
    ):
        office.house.policy(*document)
        office.catch_up()
        runs(office)
    assert fresh(rule).status == "active"


def test_a_new_denial_has_it_sleep_whatever_its_condition_says(office):
    rule = office.rule()
    office.house.policy(ASKS, ABOVE)
    asks(office)
    office.catch_up()
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "denied")
    rules.accept(office.house.people["alice"], rule.pk)
    runs(office)  # the condition stands, and its person has said so since


def test_who_lets_it_go_on_while_it_is_denied_has_said_so(office):
    rule = office.rule()
    office.house.policy(DENIES, ASKS)
    office.catch_up()
    rules.accept(office.house.people["alice"], rule.pk)
    assert office.propose().status == "denied"
    office.house.policy(ASKS)
    office.catch_up()
    runs(office)


def learned(office):
    """A rule that began by what was learned alone, without spot checks."""
    office.house.policy(ASKS, delegation=AUTOMATIC)
    office.approve(26)
    office.catch_up()
    Delegation.objects.update(check_share=0)
    return Delegation.objects.get(status=DelegationStatus.ACTIVE, origin="learned")


def test_what_is_learned_does_not_wake_it(office):
    rule = learned(office)
    runs(office)
    denied_meanwhile(office, delegation=AUTOMATIC)
    asks(office)
    assert check() == []
    office.catch_up()
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "denied")
    office.approve(9)
    office.catch_up()
    learning.fade()
    assert (fresh(rule).status, Delegation.objects.count()) == ("paused", 1)
    assert check() == []
    rules.accept(office.house.people["alice"], rule.pk)
    Delegation.objects.update(check_share=0)
    runs(office)
    assert check() == []


def test_what_sleeps_by_itself_is_not_woken_over_a_denial(office):
    rule = learned(office)
    Delegation.objects.update(check_share=1)
    office.reject(order="o-8")
    office.reject(order="o-9")
    office.catch_up()
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "refused")
    denied_meanwhile(office, delegation=AUTOMATIC)
    office.catch_up()
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "denied")
    assert check() == []


def test_learning_that_began_before_a_denial_confirms_nothing_under_it(office, monkeypatch):
    office.house.policy(ASKS, delegation=AUTOMATIC)
    office.approve(26)
    portion = learning._portion

    def meanwhile(*said):
        found = portion(*said)
        monkeypatch.setattr(learning, "_portion", portion)
        denied_meanwhile(office, delegation=AUTOMATIC)
        return found

    monkeypatch.setattr(learning, "_portion", meanwhile)
    events.collect()
    learning.learn([office.house.people["alice"].id])
    rule = Delegation.objects.get()
    Delegation.objects.update(check_share=0)
    assert rule.status == "active"
    asks(office)
    office.catch_up()
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "denied")


def test_other_rules_of_the_person_go_on(office):
    office.house.tool("mail.send", arguments=SCHEMA, roles=ROLES)
    alice = office.house.people["alice"]
    other = rules.propose_by_hand(alice, "mail.send", PREDICATE)
    rules.accept(alice, other.pk)
    office.rule()
    Delegation.objects.update(check_share=0)
    denied_meanwhile(office)
    office.catch_up()
    assert fresh(other).status == "active"
    assert office.house.propose("mail.send", CALL).authorized_by == "delegation"


def test_a_version_is_looked_at_once_and_once_a_day_again(office):
    rule = office.rule()
    office.catch_up()
    number = denied_meanwhile(office) + 1
    office.catch_up()
    assert EventStream.objects.get().denials_through == number
    # Whoever read an older version began it after the pass.
    Delegation.objects.filter(pk=rule.pk).update(status="active", pause_reason=None)
    learning.heed_denials(everything=False)
    assert fresh(rule).status == "active"
    authorizer._TOOLS._kept.clear()
    asks(office)
    learning.heed_denials()
    assert fresh(rule).status == "paused"
