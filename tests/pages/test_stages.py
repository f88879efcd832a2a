"""What the pages say of stages: whose turn it is, who has decided, and what comes next."""

from __future__ import annotations

import pytest

from tests.approvals.house import House, fresh
from tests.pages.conftest import Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)

STAGED = {
    "name": "staged",
    "trigger": "action",
    "tools": ["*"],
    "then": "approve",
    "stages": [{"approvers": ["finance"]}, {"approvers": ["leads"]}],
}


def test_the_pages_show_which_stage_is_open_who_has_decided_and_what_comes_next(
    house: House, browser_of: Open
) -> None:
    house.group("finance", "alice", "carol")
    house.group("leads", "carol")
    house.policy(STAGED)
    gate = house.ask()
    at = f"/decisions/{gate.pk}"
    alice, carol, olga = browser_of("alice"), browser_of("carol"), browser_of("olga")

    page = alice.get(at)
    for said in ("Stage 1 of 2", "1 missing: you, carol", "open now", "1 approval needed"):
        assert said in page.text, said
    assert "0 of 2 approved, stage 1 of 2" in alice.get("/inbox").text
    alice.send(page, "/approve")

    mine = alice.get(at)
    for said in ("You approved this in stage 1", "Stage 2 of 2 is open: leads", "alice approved"):
        assert said in mine.text, said
    assert not mine.has_form("/approve")
    assert "Take my approval back" in mine.text
    assert "stage 2 of 2" not in alice.get("/inbox").text
    assert "1 of 2 approved, stage 2 of 2" in carol.get("/inbox").text
    assert "You can read this, not decide it" in olga.get(at).text
    assert (
        "Decided in stages: 1 of finance, then 1 of leads."
        in olga.get(f"/steps/{gate.step_id}/why").text
    )


def test_the_pages_show_when_the_open_stage_ends_and_how_long_the_next_has(
    house: House, browser_of: Open
) -> None:
    house.group("finance", "alice")
    house.group("leads", "carol")
    house.group("heads", "ada")
    timed = {"approvers": ["leads"], "expires_in": 900, "on_expiry": "escalate"}
    stages = [
        {"approvers": ["finance"], "expires_in": 1800, "on_expiry": "cancel"},
        {**timed, "escalate_to": "heads"},
    ]
    house.policy({**STAGED, "expires_in": 7200, "stages": stages})
    gate = house.ask()
    at, alice = f"/decisions/{gate.pk}", browser_of("alice")

    page = alice.get(at)
    assert "1 approval needed within 15 min, or heads are asked" in page.text
    assert page.text.count("or the run is cancelled") == 1
    assert "1 of finance within 30 min, or the run is cancelled, then 1 of leads" in (
        alice.get(f"/steps/{gate.step_id}/why").text
    )
    alice.send(page, "/approve")
    open_now = browser_of("carol").get(at)
    assert "or heads are asked" in open_now.text
    assert "within 15 min" not in open_now.text


def test_an_answer_from_before_the_next_stage_is_not_recorded_and_the_rest_is_told(
    house: House, browser_of: Open
) -> None:
    house.group("finance", "alice", "carol")
    house.group("leads", "carol")
    house.policy(STAGED)
    gate = house.ask()
    at = f"/decisions/{gate.pk}"
    alice, carol, olga = browser_of("alice"), browser_of("carol"), browser_of("olga")
    page = alice.get(at)
    alice.send(page, "/approve")
    with nothing_changes():
        late = alice.send(page, "/reject", reason="no")
    assert late.status == 403
    assert "Your answer was not recorded" in late.text
    theirs = carol.get(at)
    assert "1 missing: you" in theirs.text
    carol.send(theirs, "/approve")
    assert fresh(gate).state == "approved"
    record = carol.get(f"{at}/record")
    for said in ("2 approvals needed, in 2 stages", "in stage 1", "in stage 2"):
        assert said in record.text, said
    told = olga.get(f"/runs/{gate.run_id}").text
    assert "By 2 people in 2 stages" in told
    assert "stage 2 of 2 is open" in told
