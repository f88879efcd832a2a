"""The matrix is complete, whoever adds a service."""

from pkgutil import resolve_name

from tests.crashes.cases import CASES
from tests.crashes.openers import openers


def test_every_service_that_opens_a_transaction_is_tried():
    assert openers() - {case.covers for case in CASES.values()} == set()


def test_what_is_tried_is_there():
    assert all(callable(resolve_name(case.covers)) for case in CASES.values())


def test_what_opens_a_transaction_is_found_in_the_source():
    found = openers()
    assert "interrupts.services.steps.propose" in found  # by a block of another module
    assert "approvals.services.decisions.decide_gate" in found  # by its own
    assert "approvals.services.inboxes.refresh_inboxes" in found  # by a function that it calls
    assert "interrupts.services.steps.rejudge" not in found  # of another's transaction
    assert len(found) > 30
