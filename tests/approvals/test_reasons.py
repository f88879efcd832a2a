"""Declared reasons: people choose one, the agent learns its code, and where none is, all is as it was."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from approvals.models import Decision
from approvals.policy import offered, told, validate_policy
from interrupts import verification
from interrupts.models import Step
from tenants.clock import database_now
from tenants.models import JournalEntry
from tests.approvals.house import House, fresh

WRONG = {
    "code": "wrong-amount",
    "text": "The amount is wrong.",
    "decisions": ["reject", "request_changes", "edit"],
}
OTHER = {
    "code": "other",
    "text": "Something else",
    "decisions": ["reject", "request_changes", "approve"],
    "needs_note": True,
}
MAILS = {"code": "spam", "text": "Nobody wants it", "decisions": ["reject"], "tools": ["mail.*"]}
REASONS = [WRONG, OTHER, MAILS]
ASKS = {"name": "asks", "trigger": "action", "then": "approve"}
EDIT = {"payment": "p-1", "amount": "19.00"}


@pytest.fixture
def declared(house: House) -> House:
    house.policy(ASKS, reasons=REASONS)
    return house


def decide(house: House, gate: Any, verdict: str = "reject", **more: Any) -> tuple[int, Any]:
    body = {"verdict": verdict, "digest": gate.digest, **more}
    return house.request("alice", "POST", f"/gates/{gate.pk}/decisions", body)[:2]


def test_a_gate_offers_the_reasons_that_are_for_its_tool(declared: House) -> None:
    gate = declared.ask()
    for who in ("alice", "bot"):
        shown = declared.request(who, "GET", f"/gates/{gate.pk}")[1]["reasons"]
        assert shown == [
            {**WRONG, "needs_note": False},
            {name: OTHER[name] for name in ("code", "text", "decisions", "needs_note")},
        ]
    assert [one["code"] for one in offered(REASONS, "mail.send")] == [
        "wrong-amount",
        "other",
        "spam",
    ]


@pytest.mark.parametrize("verdict", ["reject", "request_changes"])
def test_the_chosen_reason_reaches_agent_journal_and_record(declared: House, verdict: str) -> None:
    gate = declared.ask()

    status, body = decide(
        declared, gate, verdict, reason_code="wrong-amount", reason="It was 2.00."
    )

    assert status == 201
    (said,) = body["decisions"]
    chosen = {"reason_code": "wrong-amount", "reason_text": "The amount is wrong."}
    assert {name: said[name] for name in chosen} == chosen
    assert (said["reason"], body["reasons"]) == ("It was 2.00.", [])
    step = declared.request("bot", "GET", f"/steps/{gate.step_id}")[1]
    assert step["reason_code"] == "wrong-amount"
    assert step["reason"] == "The amount is wrong: It was 2.00."
    (of_agent,) = declared.request("bot", "GET", f"/gates/{gate.pk}")[1]["decisions"]
    assert of_agent["reason_code"] == "wrong-amount"
    answered = declared.request("alice", "GET", f"/interrupts/{gate.interrupt_id}")[1]["response"]
    assert answered["reason_code"] == "wrong-amount"
    texts = "".join(
        JournalEntry.objects.filter(
            stream=gate.run_id, kind__in=["gate.decided", "step.settled"]
        ).values_list("text", flat=True)
    )
    assert texts.count('"reason_code":"wrong-amount"') == 2
    assert list(verification.of_run(fresh(gate.run))) == []


def test_the_same_call_again_is_rejected_with_the_same_reason(declared: House) -> None:
    gate = declared.ask()
    decide(declared, gate, reason_code="wrong-amount")
    again = declared.propose(run=gate.run)
    assert (again.status, again.reason_code) == ("rejected", "wrong-amount")
    assert again.reason == "The amount is wrong."
    assert list(verification.of_run(fresh(gate.run))) == []


def test_an_edit_says_why_and_an_approval_may(declared: House) -> None:
    gate = declared.ask()
    told = decide(declared, gate, "approve", arguments=EDIT, reason_code="wrong-amount")
    assert (told[0], told[1]["decisions"][0]["reason_code"]) == (201, "wrong-amount")
    assert told[1]["state"] == "approved"
    second, third = declared.ask(), declared.ask()
    said = decide(declared, second, "approve", reason_code="other", reason="as agreed")
    assert (said[0], said[1]["decisions"][0]["reason_code"]) == (201, "other")
    assert decide(declared, third, "approve")[0] == 201
    for one in (gate, second, third):
        assert list(verification.of_run(fresh(one.run))) == []


@pytest.mark.parametrize(
    ("verdict", "more", "code", "pointer"),
    [
        ("reject", {"reason": "no"}, "reason-required", "/reason_code"),
        ("request_changes", {}, "reason-required", "/reason_code"),
        ("approve", {"arguments": EDIT}, "reason-required", "/reason_code"),
        ("reject", {"reason_code": "spam"}, "unknown-reason", "/reason_code"),
        ("reject", {"reason_code": "no-such"}, "unknown-reason", "/reason_code"),
        ("approve", {"reason_code": "wrong-amount"}, "unknown-reason", "/reason_code"),
        ("respond", {"value": 1, "reason_code": "other"}, "unknown-reason", "/reason_code"),
        ("reject", {"reason_code": "other", "reason": " "}, "reason-required", "/reason"),
        ("approve", {"reason_code": "other"}, "reason-required", "/reason"),
        ("reject", {"reason_code": ""}, "invalid-body", "/reason_code"),
        ("reject", {"reason_code": 7}, "invalid-body", "/reason_code"),
    ],
)
def test_what_is_not_declared_is_refused_with_its_place(
    declared: House, verdict: str, more: Any, code: str, pointer: str
) -> None:
    gate = declared.ask()
    before = declared.trace(gate)
    status, body = decide(declared, gate, verdict, **more)
    assert (status, body.get("code")) == (422, code)
    assert [one["pointer"] for one in body["errors"]] == [pointer]
    assert declared.trace(gate) == before


def test_where_none_is_declared_people_say_why_themselves(house: House) -> None:
    gate = house.ask()
    shown = house.request("alice", "GET", f"/gates/{gate.pk}")[1]
    assert shown["reasons"] == []
    before = house.trace(gate)
    assert decide(house, gate)[1]["errors"][0]["pointer"] == "/reason"
    assert decide(house, gate, reason_code="other")[1]["code"] == "unknown-reason"
    assert house.trace(gate) == before
    assert decide(house, gate, reason="no")[0] == 201
    step = fresh(gate.step)
    assert (step.reason, step.reason_code) == ("no", None)


def test_a_newer_policy_changes_what_is_offered_once_the_gate_is_brought_up_to_date(
    declared: House,
) -> None:
    gate = declared.ask()
    newer = {**ASKS, "quorum": 2}
    declared.policy(newer, reasons=[{**WRONG, "decisions": ["reject"]}])
    # What people were shown they may choose; an approval takes up what policy asks for now.
    assert [one["code"] for one in fresh(gate).reasons] == ["wrong-amount", "other"]
    declared.decide("alice", gate, reason_code="other", reason="as agreed")
    assert [one["code"] for one in fresh(gate).reasons] == ["wrong-amount"]
    (vote,) = Decision.objects.filter(gate=gate)
    assert (vote.reason_code, vote.reason_text) == ("other", "Something else")
    assert list(verification.of_run(fresh(gate.run))) == []


def test_a_code_never_stands_without_its_text(declared: House) -> None:
    gate = declared.ask()
    with pytest.raises(IntegrityError), transaction.atomic():
        Decision.objects.create(
            gate=gate,
            user_id=declared.people["alice"].id,
            verdict="reject",
            digest="sha256:0",
            approves="sha256:0",
            reason_code="other",
            policy_version=1,
            at=database_now(),
        )
    assert Decision.objects.count() == 0


def test_overgating_counts_the_reasons_of_each_rule(declared: House) -> None:
    for code in ("wrong-amount", "wrong-amount", "other"):
        decide(declared, declared.ask(), reason_code=code, reason="so")
    decide(declared, declared.ask(), "approve")
    rules = declared.request("ada", "GET", "/policies/overgating")[1]["rules"]
    (rule,) = (one for one in rules if one["rule"] == "asks")
    assert rule["reasons"] == [
        {"code": "wrong-amount", "times": 2},
        {"code": "other", "times": 1},
    ]
    assert (rule["refused"], rule["decided"]) == (3, 4)


def test_proposing_costs_no_statement_more(house: House) -> None:
    def cost() -> int:
        house.ask()
        with connection.execute_wrapper(counted := Counted()):
            house.propose()
        return counted.found

    house.policy(ASKS)
    plain = cost()
    house.policy(ASKS, reasons=REASONS)
    assert cost() == plain


class Counted:
    """How many statements ran."""

    found = 0

    def __call__(self, execute: Any, *args: Any) -> Any:
        self.found += 1
        return execute(*args)


@pytest.mark.parametrize(
    ("reasons", "places"),
    [
        ({}, ["/reasons"]),
        ([7], ["/reasons/0"]),
        ([{}], ["/reasons/0/code", "/reasons/0/text", "/reasons/0/decisions"]),
        ([{**WRONG, "code": "Not a code"}], ["/reasons/0/code"]),
        ([{**WRONG, "code": "x" * 51}], ["/reasons/0/code"]),
        ([{**WRONG, "text": " "}], ["/reasons/0/text"]),
        ([{**WRONG, "text": "a\nb"}], ["/reasons/0/text"]),
        ([{**WRONG, "decisions": []}], ["/reasons/0/decisions"]),
        ([{**WRONG, "decisions": ["respond"]}], ["/reasons/0/decisions/0"]),
        ([{**WRONG, "decisions": ["reject", "reject"]}], ["/reasons/0/decisions/1"]),
        ([{**WRONG, "needs_note": "yes"}], ["/reasons/0/needs_note"]),
        ([{**WRONG, "tools": []}], ["/reasons/0/tools"]),
        ([{**WRONG, "tools": ["a**b"]}], ["/reasons/0/tools/0"]),
        ([{**WRONG, "when": 1}], ["/reasons/0/when"]),
        ([WRONG, OTHER, WRONG], ["/reasons/2/code"]),
        ([WRONG] * 101, ["/reasons"]),
    ],
)
def test_what_is_declared_is_checked_with_its_place(reasons: Any, places: list[str]) -> None:
    found = [place for place, _ in validate_policy({"rules": [], "reasons": reasons})]
    assert found == places


@pytest.mark.parametrize(
    ("text", "note", "said"),
    [
        (None, None, None),
        (None, "no", "no"),
        ("Too large.", None, "Too large."),
        ("Too large.", "  ", "Too large."),
        ("Too large.", "by 2", "Too large: by 2"),
    ],
)
def test_what_the_agent_is_told(text: str | None, note: str | None, said: str | None) -> None:
    assert told(text, note) == said


def test_a_step_of_another_end_has_no_code(declared: House) -> None:
    gate = declared.ask()
    decide(declared, gate, "respond", value="done")
    assert Step.objects.get(pk=gate.step_id).reason_code is None
