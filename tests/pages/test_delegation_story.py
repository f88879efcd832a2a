"""A person's questions from the first answer to the rule that sleeps, over their pages and the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from approvals.models import Decision, Gate
from approvals.services.grants import set_grants
from delegation.models import Delegation, DelegationUse, SpotCheck
from tenants.journal import SYSTEM
from tenants.models import User
from tests.approvals.house import fresh
from tests.clock import moving_clock
from tests.delegation.conftest import office
from tests.delegation.office import TOOL, Office
from tests.pages.browser import Browser
from tests.pages.conftest import FAST, PASSWORD

__all__ = ["moving_clock", "office"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice(office: Office, settings: Any) -> Browser:
    settings.PASSWORD_HASHERS = FAST
    user = User.objects.get(username="alice")
    user.set_password(PASSWORD)
    user.save()
    browser = Browser()
    assert browser.sign_in("alice", PASSWORD).location == "/inbox"
    return browser


def state(office: Office, **arguments: Any) -> str:
    """Have the agent ask over HTTP, and return what its step is then."""
    run = office.house.run()
    body = {"tool": TOOL, "arguments": {"order": "o-9", "tier": "gold", "amount": "10"} | arguments}
    status, step, _ = office.house.request("bot", "POST", f"/runs/{run.pk}/steps", body)
    assert status in (200, 201, 202), step
    return str(step["status"])


def test_a_person_is_asked_less_checked_all_the_same_and_asked_again(
    office: Office, alice: Browser
) -> None:
    assert "Nothing is suggested now." in alice.get("/delegation/").text
    rule = answer_till_one_is_suggested(office, alice)
    narrow_and_turn_on(alice, rule)
    see_what_it_allows_run_and_nothing_else(office, alice, rule)
    refuse_a_spot_check(office, alice, rule)
    lose_the_authority(office, alice, rule)
    alice.send(alice.get("/delegation/"), "/ask-everything")
    assert state(office) == "waiting"
    assert DelegationUse.objects.count() == 2


def answer_till_one_is_suggested(office: Office, alice: Browser) -> Delegation:
    office.approve(9)
    office.catch_up()
    rule = Delegation.objects.get()
    assert "1 suggested" in alice.get("/delegation/").text
    gate = office.ask()
    assert "Stop asking me about this?" in alice.get(f"/decisions/{gate.pk}").text
    told = office.house.request("alice", "GET", f"/gates/{gate.pk}")[1]
    assert told["delegation_offer"]["id"] == str(rule.pk)
    office.look_and_decide(gate)
    beyond = office.ask(tier="silver")
    assert "Stop asking me" not in alice.get(f"/decisions/{beyond.pk}").text
    office.look_and_decide(beyond)
    return rule


def narrow_and_turn_on(alice: Browser, rule: Delegation) -> None:
    page = alice.get(f"/delegation/{rule.pk}")
    for words in (
        "tier is gold",
        "amount is at most 20",
        "none of them refused",
        "would have matched nothing you refused",
    ):
        assert words in page.text, words
    (amount,) = (key for key, text in page.form("/tighten").fields.items() if text == "20")
    alice.send(page, "/tighten", **{amount: "15"})
    alice.send(alice.get(f"/delegation/{rule.pk}"), "/accept")
    assert fresh(rule).status == "active"


def see_what_it_allows_run_and_nothing_else(
    office: Office, alice: Browser, rule: Delegation
) -> None:
    """It runs in her name and on record; what is unlike it asks, and says what is."""
    Delegation.objects.update(check_share=0)
    assert state(office) == "ready"
    decision = Decision.objects.get(pk=DelegationUse.objects.get().decision)
    assert (decision.user_id, decision.delegation) == (rule.user_id, rule.pk)
    assert TOOL in alice.get(f"/delegation/{rule.pk}/uses").text
    record = alice.get(f"/decisions/{decision.gate_id}/record")
    assert "Nobody was asked: the rule that allowed it" in record.text
    assert str(decision.gate_id) not in alice.get("/decided").html
    for arguments, why in (
        ({"amount": "15.01"}, "above what you approved"),
        ({"tier": "bronze"}, "`bronze` is new"),
    ):
        assert state(office, **arguments) == "waiting"
        assert why in alice.get(f"/decisions/{latest().pk}").text


def refuse_a_spot_check(office: Office, alice: Browser, rule: Delegation) -> None:
    """It looks like any other question; the rule stops itself by what she says there."""
    Delegation.objects.update(check_share=1)
    assert state(office) == "waiting"
    check = SpotCheck.objects.get()
    page = alice.get(f"/decisions/{check.gate}")
    assert "spot" not in page.text.lower()
    assert page.has_form("/approve")
    office.look_and_decide(Gate.objects.get(pk=check.gate), "reject")
    office.catch_up()
    assert fresh(rule).status == "paused"
    told = "Paused by itself: you refused what it would have allowed."
    assert told in alice.get("/delegation/").text
    Delegation.objects.update(check_share=0)
    assert state(office) == "waiting"


def lose_the_authority(office: Office, alice: Browser, rule: Delegation) -> None:
    """She lets it go on; while she may not decide it herself, it decides nothing for her."""
    page = alice.get(f"/delegation/{rule.pk}")
    assert alice.send(page, "/accept").location == "/delegation/?done=accept"
    assert state(office) == "ready"
    for held, asked in (([], "waiting"), (["*"], None)):
        with transaction.atomic():
            set_grants(SYSTEM, {"alice": held, "carol": ["*"]})
        assert asked is None or state(office) == asked


def latest() -> Gate:
    return Gate.objects.latest("pk")
