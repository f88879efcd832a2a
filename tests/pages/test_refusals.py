"""Each way in which an answer is refused: a page that says so, and nothing recorded."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from approvals.models import Gate
from approvals.services import preview
from interrupts.models import Run
from interrupts.services import looking, runs
from tenants.models import Membership
from tests.approvals.house import House, fresh, shown_preview
from tests.pages.browser import Page
from tests.pages.conftest import Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)

ANSWERS: dict[str, dict[str, str]] = {
    "approve": {},
    "edit": {"m1": "19.00"},
    "changes": {"reason": "otherwise"},
    "respond": {"value": "done"},
    "reject": {"reason": "no"},
}


def path(gate: Any, more: str = "") -> str:
    return f"/decisions/{gate.pk}{more}"


def refused(
    house: House, browser_of: Open, gate: Gate, then: Callable[[], object], *, who: str = "alice"
) -> list[Page]:
    """Open the page, let something happen, and give every answer; none of them records a thing."""
    browser = browser_of(who)
    page = browser.get(path(gate))
    then()
    shown = []
    for answer, typed in ANSWERS.items():
        with nothing_changes():
            shown.append(browser.send(page, f"/{answer}", **typed))
        assert "Your answer was not recorded" in shown[-1].text, answer
        assert not any(shown[-1].has_form(f"{gate.pk}/{other}") for other in ANSWERS)
    return shown


def test_what_another_decided_before(house: House, browser_of: Open) -> None:
    gate = house.ask()
    pages = refused(
        house,
        browser_of,
        gate,
        lambda: house.decide("carol", gate, "reject", reason="One charge only."),
    )
    for page in pages:
        assert page.status == 409
        assert "Already decided by carol" in page.text
        assert re.search(r", \d s before you answered: “One charge only\.”", page.text)


def test_what_has_expired(house: House, browser_of: Open) -> None:
    house.policy(
        {
            "name": "soon",
            "trigger": "action",
            "tools": ["*"],
            "then": "approve",
            "expires_in": 60,
            "on_expiry": "reject",
        }
    )
    gate = house.ask()

    def expire() -> None:
        sql = "UPDATE {} SET expires_at = clock_timestamp() - interval '1 second' WHERE id = %s"
        with connection.cursor() as cursor:
            cursor.execute(sql.format("approvals_gate"), [gate.pk])
            cursor.execute(sql.format("interrupts_interrupt"), [gate.interrupt_id])
        looking.look(gate.run_id)

    for page in refused(house, browser_of, gate, expire):
        assert page.status == 410
        assert "Expired, nothing was sent" in page.text
        assert "It counts as rejected, and the run goes on without it." in page.text
    assert house.calls == []


def test_what_expires_while_nobody_sweeps_is_not_offered(house: House, browser_of: Open) -> None:
    gate = house.ask()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE approvals_gate SET expires_at = now() - interval '1 s', on_expiry = 'cancel'"
        )
    page = browser_of("alice").get(path(gate))
    assert "Expired, nothing was sent" in page.text
    assert "The run is cancelled by it." in page.text
    assert not page.has_form("/approve")


def test_what_has_changed_since_it_was_shown(house: House, browser_of: Open) -> None:
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    gate = house.ask()

    def edit() -> None:
        changed = {"payment": "p-1", "amount": "15.00"}
        house.decide("carol", gate, arguments=changed)

    for page in refused(house, browser_of, gate, edit):
        assert page.status == 409
        assert "This changed while you were reading" in page.text
        assert "amount “20.00” “15.00”" in page.text
        assert f'href="{path(gate)}"' in page.html


def test_what_was_replaced_by_a_newer_request(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    house.tool(risk="medium")
    first = browser.send(page, "/approve")
    assert first.status == 409
    assert "Replaced by a newer request" in first.text
    newest = Gate.objects.exclude(pk=gate.pk).get()
    assert f'href="{path(newest)}"' in first.html
    with nothing_changes():
        assert browser.send(page, "/reject", reason="no").status == 409
    assert not fresh(gate).decisions.exists()


def test_what_policy_denies_by_now(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    house.policy(
        {"name": "never", "trigger": "action", "tools": ["*"], "then": "deny", "reason": "Closed"}
    )
    answer = browser.send(page, "/approve")
    assert answer.status == 409
    assert "Withdrawn, nothing was sent" in answer.text
    assert "Policy denies this call now: Closed" in answer.text
    assert not fresh(gate).decisions.exists()


def test_a_run_that_was_stopped(house: House, browser_of: Open) -> None:
    gate = house.ask()
    then = lambda: runs.cancel_run(house.people["olga"], gate.run_id)  # noqa: E731
    for page in refused(house, browser_of, gate, then):
        assert page.status == 409
        assert "The run was stopped" in page.text
        assert "this call was not sent" in page.text
    assert Run.objects.get(pk=gate.run_id).status == "cancelled"


def test_a_dry_run_that_is_being_taken(house: House, browser_of: Open) -> None:
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    house.tool(previewed=True)
    gate = house.ask()

    def edit() -> None:
        house.look(gate, "carol")
        house.decide("carol", gate, arguments={"payment": "p-1", "amount": "15.00"})
        assert fresh(gate).state == "preparing"

    for page in refused(house, browser_of, gate, edit):
        assert page.status == 409
        assert "The dry run is being taken" in page.text
    waits = browser_of("alice").get(path(gate))
    assert "The dry run is being taken" in waits.text
    assert not waits.has_form("/approve")
    house.previews["payments.refund"] = lambda *_: shown_preview("15.00 goes back")
    preview.take_preview(gate.pk)
    assert browser_of("alice").get(path(gate)).has_form("/approve")


def test_a_right_that_ended_while_it_waited(house: House, browser_of: Open) -> None:
    gate = house.ask()
    for page in refused(house, browser_of, gate, lambda: house.grant("alice")):
        assert page.status == 403
        assert "You can read this, not decide it" in page.text
        assert "This person can: carol." in page.text


def test_what_is_not_ones_own_to_decide(house: House, browser_of: Open) -> None:
    gate = house.ask()
    alice = browser_of("alice").get(path(gate))
    for who in ("bob", "olga", "vera", "ada"):
        browser = browser_of(who)
        page = browser.get(path(gate))
        assert page.status == 200
        assert "You can read this, not decide it" in page.text
        assert "These people can: alice, carol." in page.text
        assert not any(page.has_form(f"/{answer}") for answer in ANSWERS)
        for answer, typed in ANSWERS.items():
            # Whoever makes the form by hand is refused by the service.
            form = alice.form(f"/{answer}")
            fields = {**form.fields, **typed, **page.form("/sign-out").fields}
            with nothing_changes():
                answered = browser.post(form.action, fields)
            assert answered.status == 403, (who, answer)
            assert "Your answer was not recorded" in answered.text


def test_a_run_made_for_oneself(house: House, browser_of: Open) -> None:
    gate = house.ask(run=house.run(requested_by="alice"))
    browser = browser_of("alice")
    page = browser.get(path(gate))
    assert "This run is for you" in page.text
    assert "This person can: carol." in page.text
    assert not page.has_form("/approve")
    fields = {"digest": gate.digest, **page.form("/sign-out").fields}
    with nothing_changes():
        answered = browser.post(path(gate, "/approve"), fields)
    assert answered.status == 403
    assert "Your answer was not recorded" in answered.text


def test_what_nobody_can_decide_says_so(house: House, browser_of: Open) -> None:
    with transaction.atomic():
        Membership.objects.filter(user__username__in=["carol"]).update(active=False)
    gate = house.ask(run=house.run(requested_by="alice"))
    assert "Nobody can decide it now." in browser_of("alice").get(path(gate)).text


def test_ones_own_answer_again_leads_to_its_record(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    assert browser.send(page, "/reject", reason="no").location == path(gate, "/record")
    with nothing_changes():
        assert browser.send(page, "/reject", reason="no").location == path(gate, "/record")
        contrary = browser.send(page, "/approve")
    assert contrary.status == 409
    assert "Already decided by you" in contrary.text


def test_a_digest_that_was_never_shown_is_refused(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    for digest in ("sha256:" + "0" * 64, "", "\x7f"):
        with nothing_changes():
            assert browser.send(page, "/approve", digest=digest).status == 409


def test_a_form_without_its_token_is_refused(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    for answer, typed in ANSWERS.items():
        fields = {**page.form(f"/{answer}").fields, **typed}
        del fields["csrfmiddlewaretoken"]
        with nothing_changes():
            forged = browser.post(path(gate, f"/{answer}"), fields)
        assert forged.status == 403
        assert "Nothing was recorded." in forged.text


def test_an_answer_that_does_not_exist_is_no_page(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    token = browser.get(path(gate)).form("/approve").fields
    assert browser.get(path(gate, "/bless")).status == 404
    assert browser.post(path(gate, "/bless"), token).status == 404
    assert browser.get(path(gate, "/approve")).location == path(gate)
    assert browser.get(path(gate, "/edit")).location == path(gate)


def test_what_belongs_to_another_tenant_is_no_page(
    house: House, browser_of: Open, nothing_of_another: Gate
) -> None:
    theirs = nothing_of_another
    browser = browser_of("alice")
    own = browser.get(path(house.ask()))
    for more in ("", "/record", f"/seen/{theirs.pk}"):
        page = browser.get(path(theirs, more))
        assert page.status == 404
        assert "Nothing is here" in page.text
        assert "secret" not in page.html
    for answer, typed in ANSWERS.items():
        form = own.form(f"/{answer}")
        with nothing_changes():
            refused_page = browser.post(
                path(theirs, f"/{answer}"), {**form.fields, **typed, "digest": theirs.digest}
            )
        assert refused_page.status == 404, answer
    assert "secret" not in browser.get("/inbox").html
    assert "secret" not in browser.get("/decided").html
