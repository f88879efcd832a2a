"""A rule by clicks: written by hand, turned on, checked, refused, and asleep by itself."""

from __future__ import annotations

from abeyance import Proposal
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.desk import Call, Desk
from tests.browser.test_clicks import answer, press
from tests.live import eventually

MOST_TRIES = 40
UP_TO = "1.00"


def test_what_a_rule_allows_runs_unasked_till_a_check_of_it_is_refused(
    open_as: Open, desk: Desk
) -> None:
    page = open_as("bob", 1360, java_script_enabled=False)
    path = turn_on(page, desk)
    try:
        checked = run_till_checked(desk)
        page.goto(f"{path}/uses")
        expect(page.get_by_role("table")).to_contain_text("Refund 0.50 EUR")
        refuse(page, desk, checked)
        eventually(lambda: asleep(page), 60)
        expect(page.get_by_text("you refused what it would have allowed")).to_be_visible()
        assert propose(desk).step.status == "waiting"
    finally:
        page.goto(path)
        press(page, "Revoke")
        page.wait_for_url("**/delegation/?done=revoke")


def turn_on(page: Page, desk: Desk) -> str:
    """Write a rule and turn it on, narrower than it was written; return its page."""
    page.goto("/delegation/new")
    page.get_by_label("Tool", exact=True).select_option("payments.refund")
    press(page, "Choose")
    page.get_by_label("amount, at most").fill("2.00")
    page.get_by_label("At most this many a day").fill("60")
    press(page, "Show what it would have done")
    page.wait_for_url("**/delegation/*?done=made")
    page.get_by_label("amount, at most").fill(UP_TO)
    press(page, "Make it narrower")
    page.wait_for_url("**/delegation/?done=tighten")
    page.get_by_role("link", name="Review and turn on").first.click()
    path = page.url.partition("#")[0]
    press(page, "Let it run without asking me")
    page.wait_for_url("**/delegation/?done=accept")
    return path


def propose(desk: Desk) -> Call:
    """Have the agent ask for a small refund; return the call as it then stands."""
    run = desk.client.run("support", "Grace Murphy (o-1017): The candles smell of nothing.")
    arguments = {"payment": "pay-1017", "amount": "0.50", "customer": "Grace", "reference": "r-1"}
    (step,) = run.propose(Proposal(key="it", tool="payments.refund", arguments=arguments))
    return Call(run, step, arguments)


def run_till_checked(desk: Desk) -> Call:
    """Ask until one has run without a person and a later one is a spot check; return that.

    A check that comes first is approved: while it has no answer, the like of it is asked as well.
    """
    ran = False
    for _ in range(MOST_TRIES):
        call = propose(desk)
        if call.step.status != "waiting":
            assert call.receipt().was_run
            ran = True
        elif ran:
            return call
        else:
            approve(desk, call)
    raise AssertionError("it was always asked about, or never")


def approve(desk: Desk, call: Call) -> None:
    bob, gate = desk.service.person("bob"), f"gates/{call.gate}"
    eventually(lambda: bob.get(gate)["state"] == "pending", 60)
    bob.approve(call.gate)


def refuse(page: Page, desk: Desk, call: Call) -> None:
    bob, gate = desk.service.person("bob"), f"gates/{call.gate}"
    eventually(lambda: bob.get(gate)["state"] == "pending", 60)
    page.goto(f"/decisions/{call.gate}")
    expect(page.get_by_text("spot check")).to_have_count(0)
    answer(page, "Reject")
    page.get_by_label("Reason, which the agent is told").fill("Not this one.")
    press(page, "Reject: Refund 0.50 EUR")
    page.wait_for_url(f"**/decisions/{call.gate}/record")


def asleep(page: Page) -> bool:
    page.goto("/delegation/")
    return page.get_by_text("Paused by itself").count() > 0
