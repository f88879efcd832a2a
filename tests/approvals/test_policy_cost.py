"""What 200 rules cost a proposal: as little as the one among them that is for it."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.policy import compile_policy
from tenants import statements
from tests.approvals.house import House
from tests.approvals.test_policy_judging import call, rule

CONDITION = "decimal(arguments.amount) <= decimal('100')"
MINE = rule("mine", tools=["payments.refund"], then="allow", condition=CONDITION)
OTHERS = [
    rule(f"r{number}", tools=[f"tool{number}.*", f"*.other{number}"], condition=CONDITION)
    for number in range(199)
]


def calls_of(act: Callable[[], object]) -> int:
    """Count the calls, of Python and of C, that a deed makes."""
    made = 0

    def count(_frame: FrameType | None, event: str, _argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return made


def test_two_hundred_rules_cost_a_call_no_more_than_the_one_that_is_for_it() -> None:
    def cost(rules: list[Any]) -> int:
        policy = compile_policy({"rules": rules})
        subject = call()
        policy.judge(subject)  # which rules are for a tool is found out at its first call
        return calls_of(lambda: policy.judge(subject))

    more = rule("all", then="allow", condition=CONDITION)
    assert 0 < cost([MINE]) == cost([MINE, *OTHERS]) < cost([MINE, more])


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that go past Django's cursors."""
    texts: list[str] = []
    bind = statements._bind

    def told(raw: Any, text: str, parameters: Any) -> Any:
        texts.append(text)
        return bind(raw, text, parameters)

    monkeypatch.setattr(statements, "_bind", told)
    return texts


def test_a_proposal_under_two_hundred_rules_takes_no_statement_more(
    house: House, sent: list[str]
) -> None:
    def cost(*rules: dict[str, Any]) -> list[str]:
        house.policy(*rules)
        run = house.run()
        house.propose(run=run)  # what is remembered is looked up once
        sent.clear()
        with CaptureQueriesContext(connection) as seen:
            step = house.propose(run=run, arguments={"payment": "p-2", "amount": "20.00"})
        assert (step.status, step.authorized_by) == ("ready", "policy")
        return [*sent, *(query["sql"].split(" ")[0] for query in seen.captured_queries)]

    one = cost(MINE)
    assert one
    assert cost(MINE, *OTHERS) == one
