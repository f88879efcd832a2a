"""Limits and substitutes as people see them: what is read only and why, and who decides for whom."""

from __future__ import annotations

import pytest
from django.db import transaction

from approvals.models import Decision, Substitution
from approvals.services.grants import set_grants
from tenants.journal import SYSTEM
from tests.approvals.house import House, fresh
from tests.approvals.test_limits import ASKS, UP_TO_500, costing, within
from tests.pages.conftest import Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)
HTML_LIMIT = "decimal(arguments.amount) <= decimal('500')"


@pytest.fixture
def shared(house: House) -> House:
    """Alice decides refunds up to 500, carol all; bob decides none by himself."""
    house.policy(ASKS)
    with transaction.atomic():
        set_grants(SYSTEM, {"alice": [within(UP_TO_500)], "carol": ["*"], "bob": [], "vera": []})
    return house


def test_what_is_beyond_a_limit_is_read_only_and_says_why_and_who_may(
    shared: House, browser_of: Open
) -> None:
    gate = shared.ask(arguments=costing("900.00"))
    browser = browser_of("alice")
    page = browser.get(f"/decisions/{gate.pk}")
    assert not page.has_form("/approve")
    assert "This is more than you may decide" in page.text
    assert HTML_LIMIT in page.text
    assert "carol" in page.text
    fields = {**page.forms[0].fields, "digest": gate.digest}
    with nothing_changes():
        refused = browser.post(f"/decisions/{gate.pk}/approve", fields)
    assert refused.status == 403
    assert "Your answer was not recorded." in refused.text

    small = shared.ask()
    page = browser.get(f"/decisions/{small.pk}")
    (amount,) = (name for name, text in page.form("/edit").fields.items() if text == "20.00")
    edited = browser.send(page, "/edit", **{amount: "900.00"})
    assert (edited.status, HTML_LIMIT in edited.text) == (403, True)
    assert edited.has_form("/approve")
    assert fresh(small).state == "pending"


def test_a_person_says_who_decides_for_them_and_it_is_told_wherever_it_matters(
    shared: House, browser_of: Open
) -> None:
    gate = shared.ask()
    alice, bob = browser_of("alice"), browser_of("bob")
    assert "Who decides for you while you are away" in alice.get("/profile").text
    page = alice.get("/substitutions")
    for wrong in ("", "2020-01-01T10:00", "soon"):
        with nothing_changes():
            refused = alice.send(page, "/substitutions", substitute="bob", ends_at=wrong)
        assert (refused.status, "Nothing was changed." in refused.text) == (422, True)
    done = alice.send(page, "/substitutions", substitute="bob", ends_at="2999-12-31T10:00")
    assert done.location == "/substitutions?kept=1"
    assert "bob" in alice.get("/substitutions").text
    assert "alice" in bob.get("/substitutions").text

    assert "for alice" in bob.get("/inbox").text
    page = bob.get(f"/decisions/{gate.pk}")
    assert "You decide this for alice" in page.text
    assert "bob stands in for alice until" in browser_of("olga").get(f"/decisions/{gate.pk}").text
    bob.send(page, "/approve", hold=None)
    decision = Decision.objects.get()
    for path in ("record", f"seen/{decision.pk}"):
        assert "for alice" in alice.get(f"/decisions/{gate.pk}/{path}").text
    assert "by bob for alice" in alice.get(f"/decisions/{gate.pk}").text
    assert "for alice" in bob.get("/decided").text

    waits = shared.ask()
    page = alice.get("/substitutions")
    alice.send(page, "/end")
    assert Substitution.objects.get().ended_at is not None
    assert "Nothing waits for you" in bob.get("/inbox").text
    assert not bob.get(f"/decisions/{waits.pk}").has_form("/approve")
