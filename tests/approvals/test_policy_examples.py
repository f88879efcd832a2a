"""The page of examples, as it stands: each can be published, and says of calls what the page says."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.policy import Subject, compile_policy, validate_policy
from approvals.policy.milestones import Point
from config.supervisor.paths import PROJECT

BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def policies(page: Path) -> list[Any]:
    return [yaml.safe_load(text)["policy"] for text in BLOCK.findall(page.read_text())]


EXAMPLES = policies(PROJECT / "docs" / "how-to" / "policy-examples.md")
GROUPS = {"finance": ["f1", "f2"], "leads": ["l1", "l2"]}
DAY, NIGHT = {"hour": 12}, {"hour": 23}
TRUSTED, REFUSED = {"performed": 20, "refused": 1}, {"performed": 1, "refused": 3}
FIRST = Point("first-payment", "before the first payments.*")
NUMBER = 9


def call(tool: str, effect: str = "irreversible", **more: Any) -> Subject:
    said = {name: more.pop(name) for name in ("confidence", "risk_score") if name in more}
    return Subject(
        tool=tool, effect=effect, risk="medium", arguments=more, agent="bot", workflow="w", **said
    )


def euros(amount: Any) -> Subject:
    return call("payments.refund", "reversible", amount=amount, currency="EUR")


def mail(to: str) -> Subject:
    return call("mail.send", "reversible", to=to)


def refund(time: Any, history: Any, *reached: Point) -> Subject:
    return replace(euros("1"), known={"time": time, "history": history}, reached=reached)


def test_there_are_as_many_as_are_tried_here() -> None:
    assert len(EXAMPLES) == NUMBER


def test_the_policy_of_the_reference_can_be_published() -> None:
    (document,) = policies(PROJECT / "docs" / "policy.md")
    assert validate_policy(document, GROUPS) == []


@pytest.mark.parametrize("number", range(NUMBER))
def test_an_example_can_be_published(number: int) -> None:
    assert validate_policy(EXAMPLES[number], GROUPS) == []


@pytest.mark.parametrize(
    ("number", "asked", "verdict", "rule", "quorum"),
    [
        (1, call("db.drop_table"), "deny", "no-drops", 1),
        (1, call("crm.get", "read"), "allow", "default", 1),
        (1, call("crm.note"), "approve", "default", 1),
        (2, call("crm.note"), "allow", "notes", 1),
        (2, call("crm.notes"), "approve", "default", 1),
        (3, euros("20.00"), "allow", "small-refunds", 1),
        (3, euros("20.000000000000000001"), "approve", "refunds", 1),
        (3, euros("1500"), "approve", "big-refunds", 2),
        (3, euros("-0.01"), "approve", "default", 1),
        (3, euros("12,50"), "approve", "big-refunds", 2),
        (3, euros(None), "approve", "big-refunds", 2),
        (
            *(3, call("payments.refund", "reversible", amount="5", currency="USD")),
            *("approve", "default", 1),
        ),
        (4, mail("bob@shop.example"), "allow", "to-colleagues", 1),
        (4, mail("eve@evil.example"), "approve", "to-strangers", 1),
        (4, mail("eve@evil.example,bob@shop.example"), "approve", "default", 1),
        (5, euros("1"), "approve", "refunds", 1),
        (5, call("deploy.web"), "approve", "deploys", 2),
        (6, call("crm.note"), "allow", "notes", 1),
        (6, call("crm.note", confidence=0.5), "approve", "unsure", 1),
        (6, call("crm.note", confidence=0.1), "deny", "guesses", 1),
        (7, euros("50"), "allow", "everyday", 1),
        (7, euros("51"), "approve", "risky", 1),
        (7, euros("-0.01"), "approve", "risky", 1),
        (7, euros("1001"), "approve", "very-risky", 2),
        (7, euros("much"), "deny", "reckless", 1),
        (7, mail("bob@shop.example"), "allow", "everyday", 1),
        (
            7,
            call("mail.send", "reversible", to="bob@shop.example", risk_score=0.99),
            "deny",
            *("reckless", 1),
        ),
        (7, call("deploy.web"), "approve", "very-risky", 2),
        (7, call("db.drop_table"), "deny", "no-drops", 1),
        (8, call("payments.payout"), "approve", "payouts", 3),
        (9, refund(DAY, TRUSTED), "allow", "everyday", 1),
        (9, refund(NIGHT, TRUSTED), "approve", "at-night", 1),
        (9, refund(DAY, REFUSED), "approve", "risky", 1),
        (9, refund(DAY, TRUSTED, FIRST), "approve", "points", 1),
    ],
)
def test_an_example_says_what_the_page_says(
    number: int, asked: Subject, verdict: str, rule: str, quorum: int
) -> None:
    said = compile_policy(EXAMPLES[number - 1]).judge(asked)
    assert (said.verdict, said.rule, said.quorum) == (verdict, rule, quorum)


def test_silence_asks_others_and_an_approval_cools_down() -> None:
    refund = compile_policy(EXAMPLES[4]).judge(euros("1"))
    assert (refund.on_expiry, refund.escalate_to, refund.warn_before) == ("escalate", "leads", 1800)
    assert compile_policy(EXAMPLES[4]).judge(call("deploy.web")).cool_down == 300
