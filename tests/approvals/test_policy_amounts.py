"""Amounts that two readers could take for different numbers: compared exactly, or refused."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.policy import Subject, Verdict, compile_policy, validate_policy
from approvals.policy.decimals import ordered
from interrupts.models import Run, Step
from tests.approvals.house import House

TWO_TO_53 = 2**53
BOUNDS = ["100", str(TWO_TO_53 - 1), str(TWO_TO_53), str(TWO_TO_53 + 1)]
# What each says as a number; None: it is refused.
SPELLINGS = {
    "100.00000000000000001": Decimal("100.00000000000000001"),
    "99.99999999999999999": Decimal("99.99999999999999999"),
    "9007199254740991": Decimal(TWO_TO_53 - 1),
    "9007199254740992": Decimal(TWO_TO_53),
    "9007199254740993": Decimal(TWO_TO_53 + 1),
    "9007199254740992.00000000000000001": Decimal("9007199254740992.00000000000000001"),
    "9.007199254740993e15": Decimal(TWO_TO_53 + 1),
    "1e2": Decimal(100),
    "+100.00": Decimal(100),
    "-100.00000000000000001": Decimal("-100.00000000000000001"),
    "\uff11\uff10\uff10": None,
    "\uff19\uff10\uff10\uff17\uff11\uff19\uff19\uff12\uff15\uff14\uff17\uff14\uff10\uff19\uff19\uff13": None,
    "\u0661\u0660\u0660": None,
    "1\uff10\uff10": None,
    "100\uff0e00": None,
    "\uff0b100": None,
}
HOLDS = {
    "<": Decimal.__lt__,
    "<=": Decimal.__le__,
    ">": Decimal.__gt__,
    ">=": Decimal.__ge__,
    "==": Decimal.__eq__,
    "!=": Decimal.__ne__,
}


def condition(sign: str, bound: str, path: str = "arguments.amount") -> str:
    return f"decimal({path}) {sign} decimal('{bound}')"


def rule(then: str, **members: Any) -> dict[str, Any]:
    return {"name": then, "trigger": "action", "then": then, **members}


def verdict_of(amount: Any, *rules: dict[str, Any]) -> Verdict:
    document = {"rules": list(rules)}
    assert validate_policy(document) == []
    subject = Subject(
        tool="payments.pay",
        effect="irreversible",
        risk="low",
        arguments={"amount": amount, "list": [{"amount": amount}]},
        agent="bot",
        workflow="w",
    )
    return compile_policy(document).judge(subject)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("path", ["arguments.amount", "arguments['amount']"])
@pytest.mark.parametrize("sign", list(HOLDS))
def test_an_amount_is_compared_as_exactly_the_number_it_says_or_errs(
    sign: str, path: str, bound: str
) -> None:
    says = condition(sign, bound, path)
    for amount, number in SPELLINGS.items():
        is_so = number is not None and HOLDS[sign](number, Decimal(bound))
        allowed = verdict_of(amount, rule("allow", condition=says))
        assert (allowed.verdict == "allow") is is_so, amount
        denied = verdict_of(amount, rule("allow"), rule("deny", condition=says))
        assert (denied.verdict == "deny") is (is_so or number is None), amount
        errs = "could not be evaluated" in denied.triggers[0]["explanation"]
        assert errs is (number is None), amount


def test_amounts_are_compared_with_each_other_in_a_list_too() -> None:
    says = "arguments.list.all(line, decimal(line.amount) <= decimal('100'))"
    for amount, number in SPELLINGS.items():
        is_so = number is not None and number <= 100
        assert (verdict_of(amount, rule("allow", condition=says)).verdict == "allow") is is_so


DIGITS = st.characters(categories=["Nd"])
PLAIN = st.sampled_from("0123456789+-.e")
TEXTS = st.text(PLAIN, max_size=8) | st.text(PLAIN | st.sampled_from(",_ E") | DIGITS, max_size=8)


def taken(text: str) -> str | None:
    try:
        return ordered(text)
    except ValueError:
        return None


@given(TEXTS, TEXTS | st.sampled_from(["0", "100", "-1e2", "1e-999", "9007199254740993"]))
def test_whatever_is_taken_for_a_number_compares_as_that_number(one: str, other: str) -> None:
    left, right = taken(one), taken(other)
    assert left is None or one.isascii()
    if left is not None and right is not None:
        assert (left < right) is (Decimal(one) < Decimal(other))
        assert (left == right) is (Decimal(one) == Decimal(other))


@given(st.decimals(-(10**9), 10**9, places=17), st.integers(-30, 30), st.booleans())
def test_a_number_is_the_same_however_it_is_spelt(number: Decimal, shift: int, plus: bool) -> None:
    sign = "-" if number.is_signed() else "+" if plus else ""
    digits = f"{abs(number).scaleb(shift):f}"
    digits += "0" if "." in digits else ".0"
    assert ordered(f"{sign}00{digits}e{-shift}") == ordered(f"{number:f}")


# Over HTTP


@pytest.fixture
def paying(house: House) -> House:
    """A tool whose amount may be any text or number."""
    amount = {"type": ["string", "number"]}
    house.tool("payments.pay", arguments={"type": "object", "properties": {"amount": amount}})
    return house


def proposed(house: House, amount: Any) -> tuple[int, Any]:
    call = {"tool": "payments.pay", "arguments": {"amount": amount}}
    status, body, _ = house.request("bot", "POST", f"/runs/{house.run().pk}/steps", call)
    return status, body


@pytest.mark.parametrize("bound", ["100", str(TWO_TO_53)])
def test_a_proposal_is_judged_by_exactly_the_amount_it_says(paying: House, bound: str) -> None:
    paying.policy(
        rule("allow", tools=["payments.pay"], condition=condition("<=", bound)),
        rule("deny", tools=["payments.pay"], condition=condition(">", bound)),
    )
    for amount, number in SPELLINGS.items():
        is_within = number is not None and number <= Decimal(bound)
        status, step = proposed(paying, amount)
        assert (status, step["status"]) == (201, "ready" if is_within else "denied"), amount
        assert Step.objects.get(pk=step["id"]).status == step["status"]


def test_an_amount_that_is_no_number_allows_nothing_and_is_asked_about(paying: House) -> None:
    says = condition("<=", "100")
    paying.policy(rule("allow", tools=["payments.pay"], condition=says))
    for amount, number in SPELLINGS.items():
        if number is None:
            status, step = proposed(paying, amount)
            assert (status, step["status"]) == (201, "waiting"), amount


@pytest.mark.parametrize("amount", [TWO_TO_53, TWO_TO_53 + 1, -TWO_TO_53, float(TWO_TO_53)])
def test_a_number_that_readers_round_is_refused_and_nothing_is_kept(
    paying: House, amount: float
) -> None:
    paying.policy(rule("allow", tools=["payments.pay"]))
    run = paying.run()
    before = Run.objects.values().get(pk=run.pk)
    call = {"tool": "payments.pay", "arguments": {"amount": amount}}
    status, problem, _ = paying.request("bot", "POST", f"/runs/{run.pk}/steps", call)
    assert (status, problem["code"]) == (422, "invalid-body")
    assert [fault["pointer"] for fault in problem["errors"]] == ["/arguments/amount"]
    assert not Step.objects.exists()
    assert Run.objects.values().get(pk=run.pk) == before
