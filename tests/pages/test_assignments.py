"""Handing a decision on from its page, and where it is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.approvals.house import House
from tests.pages.conftest import Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)


def path(gate: Any, more: str = "") -> str:
    return f"/decisions/{gate.pk}{more}"


def test_it_is_handed_on_from_its_page_and_stands_in_page_record_and_journal(
    house: House, browser_of: Open
) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    assert page.form("/assignment").fields["to"] == "carol"

    done = browser.send(page, "/assignment", note=" You know them. ")

    assert done.location == path(gate)
    after = browser.get(path(gate))
    assert "alice gave it to carol" in after.text
    assert "You know them." in after.text
    assert after.has_form("/approve")
    assert not after.has_form("/assignment")
    assert "Nothing waits for you" in browser.get("/inbox").text
    assert "payments.refund" in browser_of("carol").get("/inbox").text
    assert "alice gave it to carol" in browser.get(path(gate, "/record")).text
    run = browser.get(f"/runs/{gate.run_id}").text
    assert "its decision was handed to somebody else" in run
    assert "You know them." in run


def test_an_operator_may_hand_on_what_they_may_not_decide(house: House, browser_of: Open) -> None:
    gate = house.ask()
    page = browser_of("olga").get(path(gate))
    assert not page.has_form("/approve")
    assert page.has_form("/assignment")


def test_who_is_not_asked_is_offered_nothing_and_hands_nothing_on(
    house: House, browser_of: Open
) -> None:
    gate = house.ask()
    browser = browser_of("bob")
    page = browser.get(path(gate))
    assert not page.has_form("/assignment")
    fields = {**page.forms[0].fields, "to": "carol"}
    with nothing_changes():
        assert browser.post(path(gate, "/assignment"), fields).status == 403


@pytest.mark.parametrize("typed", [{"to": "bob"}, {"to": ""}, {"note": "x" * 2001}, {"note": "\0"}])
def test_what_cannot_be_taken_is_told_where_it_was_chosen(
    house: House, browser_of: Open, typed: dict[str, str]
) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    with nothing_changes():
        refused = browser.send(page, "/assignment", **{"note": "mine", **typed})
    assert refused.status == 422
    assert "It stays where it was." in refused.text
    if "note" not in typed:
        assert refused.form("/assignment").fields["note"] == "mine"


def test_what_is_decided_is_handed_to_nobody(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    house.decide("carol", gate, "reject", reason="no")
    with nothing_changes():
        assert browser.send(page, "/assignment").status == 409
    assert not browser.get(path(gate)).has_form("/assignment")


def test_of_another_tenants_gate_nothing_is_handed_on(
    house: House, browser_of: Open, nothing_of_another: Any
) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    fields = browser.get(path(gate)).form("/assignment").fields
    with nothing_changes():
        assert browser.post(path(nothing_of_another, "/assignment"), fields).status == 404
