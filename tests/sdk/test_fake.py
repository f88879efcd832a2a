"""What the service in memory does for a test, beside behaving as the real one does."""

from __future__ import annotations

import time
from typing import Any

import pytest
from abeyance import DryRun, Failed, Refused, Rejected, Revised, StillWaiting, Verdict
from abeyance.testing import FakeAbeyance, Made, Unscripted


def test_verdicts_are_used_up_in_order_and_then_all_is_allowed() -> None:
    fake = FakeAbeyance({"pay": {"paid": True}})
    fake.on("pay").reject("no").approve()
    run = fake.run("refunds", "Refund")
    with pytest.raises(Rejected):
        run.step("one", "pay", {"amount": "1"})
    run.step("two", "pay", {"amount": "2"})
    run.step("three", "pay", {"amount": "3"})
    assert fake.made == [
        Made(run.id, "two", "pay", {"amount": "2"}),
        Made(run.id, "three", "pay", {"amount": "3"}),
    ]
    assert [one["status"] for one in fake.steps(run.id)] == ["rejected", "succeeded", "succeeded"]


def test_what_the_agent_says_its_calls_would_do_can_be_looked_at() -> None:
    fake = FakeAbeyance({"pay": None})
    run = fake.run("refunds", "Refund")
    tried: DryRun = {"summary": "nothing", "changes": [{"object": "balance", "after": "1"}]}
    paid = run.step("pay", "pay", {}, dry_run=tried)
    run.step("again", "pay", {})
    assert fake.dry_runs == {paid.step.id: tried}


def test_waiting_takes_no_time() -> None:
    fake = FakeAbeyance({"pay": None})
    fake.on("pay").wait()
    began = time.monotonic()
    with pytest.raises(StillWaiting):
        fake.run("refunds", "Refund").step("pay", "pay", {}, timeout=8 * 3600)
    assert time.monotonic() - began < 5


def test_waiting_for_what_nothing_brings_about_is_a_fault_of_the_test() -> None:
    fake = FakeAbeyance({"pay": None})
    fake.on("pay").wait()
    run = fake.run("refunds", "Refund")
    with pytest.raises(Unscripted, match=r"step mine \(pay\), which is waiting"):
        run.step("mine", "pay", {})
    with pytest.raises(Unscripted, match="'Which account\\?'"):
        run.ask("Which account?")


def test_a_question_that_the_agent_never_answers_is_a_fault_of_the_test() -> None:
    fake = FakeAbeyance({"pay": None})
    fake.on("pay").ask("Which order?").approve()
    run = fake.run("refunds", "Refund")
    with pytest.raises(Unscripted, match=r"step mine \(pay\), which is waiting"):
        run.step("mine", "pay", {})
    assert [(one["text"], one["answer"]) for one in fake.questions] == [("Which order?", None)]
    assert fake.made == []


def test_a_far_end_may_be_a_function_that_refuses() -> None:
    def refuse(arguments: dict[str, str]) -> None:
        raise Refused(f"no {arguments['amount']}")

    run = FakeAbeyance({"pay": refuse}).run("refunds", "Refund")
    with pytest.raises(Failed) as caught:
        run.step("pay", "pay", {"amount": "5"})
    assert caught.value.reason == "no 5"


def test_what_a_far_end_raises_by_mistake_reaches_the_test() -> None:
    run = FakeAbeyance({"pay": lambda arguments: arguments["missing"]}).run("refunds", "Refund")
    with pytest.raises(KeyError):
        run.step("pay", "pay", {})


def test_a_second_client_is_a_second_process() -> None:
    first = FakeAbeyance({"pay": 1})
    run = first.run("refunds", "Refund")
    second = FakeAbeyance(service=first.service)
    assert second.resume(run.id).step("pay", "pay", {}).result == 1
    assert [one["id"] for one in first.runs] == [run.id]


def test_a_receipt_is_there_once_its_verdict_holds_the_run_no_more() -> None:
    fake = FakeAbeyance({"pay": {"paid": True}})
    shown = {"status": "awaited", "holds": True, "words": None, "error": None}
    said = [
        {**shown, "status": "rejected", "words": "twice"},
        {**shown, "status": "rejected", "words": "twice", "holds": False},
    ]

    def pay(arguments: dict[str, str]) -> dict[str, str]:
        (step,) = fake.service.steps.values()
        step["verdict"] = shown
        return arguments

    def judge(run: dict[str, Any]) -> None:
        (step,) = fake.service.steps.values()
        if step["settled_at"] is None:
            pass_by(run)
            return
        step["verdict"] = said.pop(0)
        fake.service.touch(run)

    fake.service.tools = {"pay": pay}
    pass_by, fake.service.pass_by = fake.service.pass_by, judge  # type: ignore[method-assign]
    receipt = fake.run("refunds", "Refund").step("pay", "pay", {"amount": "1"})
    assert said == []
    assert receipt.step.verdict == Verdict.of(
        {**shown, "status": "rejected", "words": "twice", "holds": False}
    )
    assert "a check of it did not pass" in receipt.tell_model


def test_a_refusal_carries_the_code_of_the_reason_that_was_chosen() -> None:
    fake = FakeAbeyance({"payments.refund": {"refunded": True}})
    fake.on("payments.refund").reject("The amount is wrong: by 2", code="wrong-amount")
    fake.on("payments.refund").request_changes("Smaller, please")
    run = fake.run("refunds", "Refund order 7")
    with pytest.raises(Rejected) as refused:
        run.step("a", "payments.refund", {})
    assert refused.value.reason_code == refused.value.step.reason_code == "wrong-amount"
    assert refused.value.reason == "The amount is wrong: by 2"
    with pytest.raises(Revised) as revised:
        run.step("b", "payments.refund", {})
    assert revised.value.reason_code is None
