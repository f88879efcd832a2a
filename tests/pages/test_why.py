"""Why a step was allowed, asked about or denied, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from interrupts.models import Step
from tests.approvals.house import CALL, House
from tests.approvals.test_simulation import DENY_ALL, LARGE, SMALL, amount, erase
from tests.pages.conftest import Open
from tests.pages.test_hostile_text import EVIL, check

pytestmark = pytest.mark.django_db(transaction=True)


def why(step: Any) -> str:
    return f"/steps/{step.pk}/why"


def test_every_rule_is_told_and_which_one_decides(house: House, browser_of: Open) -> None:
    unsure = {"name": "unsure", "trigger": "confidence", "below": 0.5, "then": "approve"}
    house.policy(SMALL, LARGE, unsure)
    step = house.propose(arguments=amount("20.00"), confidence=0.2)
    page = browser_of("vera").get(why(step))
    assert "Why people are asked" in page.text
    assert "2 rules that count" in page.text
    assert "unsure asks decides" in page.text
    assert "small allows" in page.text
    assert "1 that does not" in page.text
    assert "Its condition does not hold" in page.text
    assert "Now it would be otherwise" not in page.text


def test_what_the_policy_in_force_would_say_otherwise_is_told(
    house: House, browser_of: Open
) -> None:
    house.policy(SMALL)
    step = house.propose(arguments=amount("20.00"))
    house.policy(DENY_ALL)
    page = browser_of("vera").get(why(step))
    assert "Why nobody was asked" in page.text
    assert "policy version 1" in page.text
    assert "Version 2, in force now, would deny it: rule \u201cnone\u201d." in page.text


def test_where_no_rule_matches_the_default_is_told(house: House, browser_of: Open) -> None:
    step = house.propose()
    page = browser_of("vera").get(why(step))
    assert "0 rules that count" in page.text
    assert "No rule matches, and payments.refund does more than read." in page.text


def test_erased_arguments_are_said_to_be_erased(house: House, browser_of: Open) -> None:
    step = house.propose()
    erase(step)
    assert "Its arguments were erased" in browser_of("vera").get(why(step)).text


def test_it_is_reached_from_the_run_and_from_the_record(house: House, browser_of: Open) -> None:
    house.policy(SMALL)
    allowed = house.propose(arguments=amount("20.00"))
    gate = house.ask(arguments={**CALL, "amount": "21.00"})
    browser = browser_of("alice")
    assert why(allowed) in browser.get(f"/runs/{allowed.run_id}").html
    assert (
        why(Step.objects.get(pk=gate.step_id)) in browser.get(f"/decisions/{gate.pk}/record").html
    )


def test_hostile_words_stand_there_as_text(house: House, browser_of: Open) -> None:
    house.policy(
        {
            "name": EVIL[:90],
            "trigger": "milestone",
            "milestones": ["x", "{{ visit.user.password }}"],
            "then": "deny",
            "reason": "no",
        }
    )
    step = house.propose(milestone=EVIL[:90])
    check(browser_of("vera").get(why(step)))


def test_what_policy_saw_then_is_told(house: House, browser_of: Open) -> None:
    house.policy(
        {"name": "all", "trigger": "action", "then": "allow", "condition": "usage.steps < 1"},
        {"name": "first", "trigger": "milestone", "milestones": ["payout"], "then": "approve"},
        milestones=[
            {"name": "payout", "workflow": "refunds", "when": {"before_first": "payments.*"}}
        ],
        scorers=[{"name": "half", "tools": ["payments.*"], "score": "0.5"}],
    )
    text = browser_of("vera").get(why(house.propose())).text
    assert "Milestones reached payout (before the first payments.*)" in text
    assert "Score of the service 0.5 of 1" in text
    assert "The run had used cost 0, steps 0" in text
