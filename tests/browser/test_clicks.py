"""The demo decided by clicks, on a desk and on a phone, with and without the script."""

from __future__ import annotations

import re

import pytest
from abeyance import Rejected, Revised
from playwright.sync_api import Browser, Page, expect

from tests.browser import chromium
from tests.browser.conftest import Open, password, sign_in
from tests.browser.desk import Call, Desk
from tests.live import eventually

pytestmark = pytest.mark.slow
EVERYWHERE = pytest.mark.parametrize(
    ("width", "scripts"),
    [
        pytest.param(width, scripts, id=f"{width}{'' if scripts else '-no-script'}")
        for width in (1360, 390)
        for scripts in (False, True)
    ],
)


@pytest.fixture
def refund(desk: Desk) -> Call:
    return desk.refund()


def decision(page: Page, call: Call) -> None:
    """Go from the inbox to the decision, as a person does."""
    page.goto(f"/inbox?q={call.arguments['customer'].replace(' ', '+')}")
    page.get_by_role("link", name=f"to {call.arguments['customer']}").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(call.arguments["customer"])


def answer(page: Page, title: str) -> None:
    """Open the form of an answer."""
    named = page.get_by_text(title, exact=True)
    page.locator("summary").filter(has=named, visible=True).click()


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).filter(visible=True).click()


@EVERYWHERE
def test_an_approval_runs_it_once(
    open_as: Open, desk: Desk, refund: Call, width: int, scripts: bool
) -> None:
    page = open_as("bob", width, java_script_enabled=scripts)
    decision(page, refund)
    answer(page, "Approve")
    press(page, "Approve: Refund 12.80 EUR")
    page.wait_for_url(f"**/decisions/{refund.gate}/record")
    expect(page.get_by_role("status")).to_contain_text("Approved")
    assert refund.receipt().was_run
    page.reload()
    expect(page.locator(".rcpt")).to_be_visible()
    assert [one["arguments"]["amount"] for one in desk.done(refund)] == ["12.80"]


@EVERYWHERE
def test_an_edit_is_shown_first_and_then_run_in_place_of_what_was_asked(
    open_as: Open, desk: Desk, refund: Call, width: int, scripts: bool
) -> None:
    page = open_as("bob", width, java_script_enabled=scripts)
    decision(page, refund)
    answer(page, "Approve with edits")
    page.get_by_label("amount", exact=False).filter(visible=True).first.fill("7.50")
    press(page, "Show what the edited call would do")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Refund 7.50 EUR")
    expect(page.locator("ins", has_text="7.50").first).to_be_visible()
    assert desk.done(refund) == []
    press(page, "Approve: Refund 7.50 EUR")
    page.wait_for_url(f"**/decisions/{refund.gate}/record")
    assert refund.receipt().arguments["amount"] == "7.50"
    assert [one["arguments"]["amount"] for one in desk.done(refund)] == ["7.50"]


@EVERYWHERE
def test_a_rejection_runs_nothing_and_tells_the_agent_why(
    open_as: Open, desk: Desk, refund: Call, width: int, scripts: bool
) -> None:
    page = open_as("bob", width, java_script_enabled=scripts)
    decision(page, refund)
    answer(page, "Reject")
    page.get_by_label("Reason, which the agent is told").fill("She was refunded yesterday.")
    press(page, "Reject: Refund 12.80 EUR")
    page.wait_for_url(f"**/decisions/{refund.gate}/record")
    with pytest.raises(Rejected) as told:
        refund.receipt()
    assert told.value.reason == "She was refunded yesterday."
    assert desk.done(refund) == []


@EVERYWHERE
def test_a_request_for_changes_reaches_the_agent_and_runs_nothing(
    open_as: Open, desk: Desk, refund: Call, width: int, scripts: bool
) -> None:
    page = open_as("bob", width, java_script_enabled=scripts)
    decision(page, refund)
    answer(page, "Request changes")
    page.get_by_label("What should be different?").fill("Only the shipping, 4.90.")
    press(page, "Send back to support-bot")
    page.wait_for_url(f"**/decisions/{refund.gate}/record")
    with pytest.raises(Revised) as told:
        refund.receipt()
    assert told.value.reason == "Only the shipping, 4.90."
    assert desk.done(refund) == []


@EVERYWHERE
def test_a_run_is_stopped_from_its_decision_and_starts_nothing(
    open_as: Open, desk: Desk, refund: Call, width: int, scripts: bool
) -> None:
    page = open_as("bob", width, java_script_enabled=scripts)
    decision(page, refund)
    page.get_by_role("link", name=re.compile("^Stop (this )?run…$")).filter(visible=True).click()
    page.wait_for_url("**/runs/*#stop")
    page.get_by_label("Why (kept, and told)").filter(visible=True).fill("Something is odd.")
    press(page, "Hold this run")
    expect(page.get_by_text("Something is odd.").first).to_be_visible()
    state = eventually(lambda: (s := refund.run.refresh())["status"] == "suspended" and s, 60)
    assert state["suspension"]
    assert desk.done(refund) == []


@EVERYWHERE
def test_an_unknown_outcome_is_settled_by_who_looked(
    open_as: Open, desk: Desk, width: int, scripts: bool
) -> None:
    call = desk.refund(answer_lost=True)
    desk.service.person("bob").approve(call.gate)
    call.until("unknown")
    (entry,) = desk.done(call)
    page = open_as("ada", width, java_script_enabled=scripts)
    page.goto(f"/runs/{call.run.id}")
    answer(page, "It happened")
    page.get_by_label("What shows it?").filter(visible=True).fill("It is in the shop's ledger.")
    page.get_by_label("Reference at the far end").fill(entry["external_id"])
    press(page, "as done")
    receipt = call.receipt()
    assert (receipt.external_id, receipt.source) == (entry["external_id"], "person")
    page.goto(f"/runs/{call.run.id}")
    expect(page.get_by_text(entry["external_id"]).first).to_be_visible()
    assert desk.done(call) == [entry]


@EVERYWHERE
def test_several_are_read_ticked_and_approved_and_one_is_taken_back(
    open_as: Open, desk: Desk, width: int, scripts: bool
) -> None:
    kept, undone, left = desk.note(), desk.note(), desk.note()
    page = open_as("bob", width, java_script_enabled=scripts)
    page.goto("/inbox")
    page.get_by_role("link", name=re.compile("^Review [0-9]+ of low risk together$")).click()
    for call in (kept, undone):
        page.locator("article", has_text=call.arguments["text"]).get_by_role("checkbox").check()
    press(page, "Approve the ticked ones")
    page.wait_for_url("**/inbox/reviewed")
    expect(page.get_by_role("heading", level=1)).to_have_text("2 approved")
    row = page.locator("tr", has=page.locator(f"a[href*='{undone.gate}']"))
    row.get_by_role("button", name="Undo").click()
    page.wait_for_url(f"**/decisions/{undone.gate}")
    bob = desk.service.person("bob")
    states = [bob.get(f"gates/{call.gate}")["state"] for call in (kept, undone, left)]
    assert states == ["approved", "pending", "pending"]


def test_what_was_approved_with_others_runs_once_its_time_to_undo_is_over(
    open_as: Open, desk: Desk
) -> None:
    call = desk.note()
    page = open_as("bob", 1360)
    page.goto("/inbox/review")
    page.locator("article", has_text=call.arguments["text"]).get_by_role("checkbox").check()
    press(page, "Approve the ticked ones")
    page.wait_for_url("**/inbox/reviewed")
    assert call.receipt().was_run


@EVERYWHERE
def test_what_cannot_be_undone_takes_its_phrase(
    open_as: Open, desk: Desk, width: int, scripts: bool
) -> None:
    call = desk.mail()
    page = open_as("bob", width, java_script_enabled=scripts)
    page.goto(f"/decisions/{call.gate}")
    answer(page, "Approve")
    page.get_by_label("To approve, type this phrase").fill("send it")
    press(page, "Approve: Send an e-mail")
    expect(page.get_by_text("This is not the phrase.")).to_be_visible()
    page.get_by_label("To approve, type this phrase").fill(f"send to {call.arguments['to']}")
    press(page, "Approve: Send an e-mail")
    page.wait_for_url(f"**/decisions/{call.gate}/record")
    assert call.receipt().was_run


@EVERYWHERE
def test_a_person_signs_in_and_out(browser: Browser, desk: Desk, width: int, scripts: bool) -> None:
    with chromium.window(browser, desk.service.url, width, java_script_enabled=scripts) as context:
        page = context.new_page()
        page.goto("/runs")
        page.get_by_label("Name or e-mail address").fill("carol")
        page.get_by_label("Password").fill("not hers")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("No person signs in with that")
        page.get_by_label("Password").fill(password(desk, "carol"))
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/runs")
        if width < 600:
            page.get_by_role("link", name="You", exact=True).click()
        page.get_by_role("button", name="Sign out").filter(visible=True).first.click()
        page.goto("/inbox")
        page.wait_for_url("**/sign-in*")
        sign_in(page, desk, "carol")


@pytest.mark.parametrize("width", [1360, 390])
def test_what_comes_to_wait_is_told_by_a_bar_and_the_list_does_not_move(
    open_as: Open, desk: Desk, width: int
) -> None:
    gone = desk.refund()
    page = open_as("bob", width)
    page.clock.install()
    page.goto("/inbox")
    items = page.locator("#list .item .t")
    before = items.evaluate_all("all => all.map(one => one.href)")
    assert page.get_by_role("link", name=re.compile("new: show")).count() == 0
    come = desk.refund()
    desk.reject(gone)
    page.clock.fast_forward(21_000)
    bar = page.get_by_role("link", name="1 new: show")
    expect(bar).to_be_visible()
    expect(page.get_by_text("waits for you no more")).to_be_visible()
    assert items.evaluate_all("all => all.map(one => one.href)") == before
    bar.click()
    expect(page.get_by_role("link", name=f"to {come.arguments['customer']}")).to_be_visible()
    expect(page.get_by_role("link", name=f"to {gone.arguments['customer']}")).to_have_count(0)
