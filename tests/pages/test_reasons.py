"""Declared reasons, allowed decisions and more time, on the pages of a decision."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import Decision
from tests.approvals.house import House, fresh
from tests.approvals.test_extensions import LONGER
from tests.approvals.test_reasons import ASKS, MAILS, OTHER, WRONG
from tests.pages.conftest import Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)


def path(gate: Any, more: str = "") -> str:
    return f"/decisions/{gate.pk}{more}"


def test_reasons_are_chosen_on_the_page_and_stand_in_record_and_journal(
    house: House, browser_of: Open
) -> None:
    house.policy(ASKS, reasons=[WRONG, OTHER, MAILS])
    gate, browser = house.ask(), browser_of("alice")
    page = browser.get(path(gate))
    assert 'type="radio" name="reason_code" value="wrong-amount" required' in page.html
    assert "spam" not in page.html
    assert page.form("/reject").fields["reason"] == ""
    # To approve one need be chosen by nobody; and it can be held back as before.
    assert page.form("/approve").fields["reason_code"] == ""
    assert page.form("/approve").fields["hold"] == "1"

    with nothing_changes():
        refused = browser.send(page, "/reject", reason_code="other", reason=" ")
        assert "Say more: this reason needs a note. Nothing was recorded." in refused.text
        assert 'value="other" required checked' in refused.html
        assert "Choose one of wrong-amount, other." in browser.send(page, "/changes").text
    done = browser.send(page, "/reject", reason_code="wrong-amount", reason="It was 2.00")

    assert done.location == path(gate, "/record")
    assert "The amount is wrong: It was 2.00" in browser.get(done.location).text
    assert "The amount is wrong: It was 2.00" in browser.get(path(gate)).text
    run = browser.get(f"/runs/{gate.run_id}").text
    assert "The amount is wrong: It was 2.00" in run
    assert "wrong-amount" in run


def test_an_edit_says_why_where_it_is_approved(house: House, browser_of: Open) -> None:
    house.policy(ASKS, reasons=[WRONG])
    gate, browser = house.ask(), browser_of("alice")
    edit = {"payment": "p-1", "amount": "19.00"}
    form = browser.get(path(gate)).form("/edit")
    amounts = {name: "19.00" for name, value in form.fields.items() if value == "20.00"}
    shown = browser.send(browser.get(path(gate)), "/edit", **amounts)
    assert 'name="reason_code" value="wrong-amount"' in shown.html
    with nothing_changes():
        refused = browser.send(shown, "/approve")
        assert "Choose one of wrong-amount. Nothing was recorded." in refused.text
    browser.send(refused, "/approve", reason_code="wrong-amount")
    assert Decision.objects.get().reason_code == "wrong-amount"
    assert fresh(gate).state == "approved"
    house.work(gate.run_id)
    assert house.calls == [("payments.refund", edit)]


def test_what_the_tool_takes_away_is_not_offered(house: House, browser_of: Open) -> None:
    house.tool(decisions=["approve", "reject"])
    gate, browser = house.ask(), browser_of("alice")
    page = browser.get(path(gate))
    assert [page.has_form(one) for one in ("/approve", "/reject")] == [True, True]
    assert not any(page.has_form(one) for one in ("/edit", "/changes", "/respond"))
    fields = {**page.form("/reject").fields, "value": "x", "reason": "no"}
    with nothing_changes():
        for answer in ("changes", "respond"):
            assert browser.post(path(gate, f"/{answer}"), fields).status == 422
        told = browser.post(path(gate, "/edit"), {**fields, "rest": "{}"})
        assert told.status == 422


def test_more_time_is_given_from_the_page_and_told_there(house: House, browser_of: Open) -> None:
    house.policy(LONGER)
    gate, browser = house.ask(), browser_of("alice")
    page = browser.get(path(gate))
    with nothing_changes():
        refused = browser.send(page, "/extension", note="")
        assert "Say why it needs more time. It expires when it was to." in refused.text
        for at in ("", "soon", "2030-01-01T00:00:00", "2001-01-01T00:00:00+00:00"):
            refused = browser.send(page, "/extension", note="late", expires_at=at)
            assert (refused.status, "late" in refused.html) == (422, True)
    other = browser_of("bob")
    theirs = other.get(path(gate))
    assert not theirs.has_form("/extension")
    form = {**page.form("/extension").fields, **theirs.forms[0].fields, "note": "mine"}
    with nothing_changes():
        assert other.post(path(gate, "/extension"), form).status == 403

    done = browser.send(page, "/extension", note="I ask first.")

    assert done.location == path(gate)
    after = browser.get(path(gate))
    assert "alice gave it until" in after.text
    assert "I ask first." in after.text
    assert not after.has_form("/extension")  # it was the longest
    assert after.has_form("/approve")
    assert fresh(gate).expires_at > gate.expires_at
    assert "alice gave it until" in browser.get(path(gate, "/record")).text
    assert "alice gave its decision more time" in browser.get(f"/runs/{gate.run_id}").text
