"""A tool says what people may choose of its calls: nothing else is taken, offered or shown."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from interrupts.declarations import check_tool, form_digest, full_form
from interrupts.models import Choice
from tests.approvals.house import House

ALL = [str(one) for one in Choice]
STRICT = ["approve", "reject"]
DECLARED: dict[str, Any] = {
    "name": "payments.refund",
    "effect": "read",
    "risk": "low",
    "arguments": {"type": "object"},
    "executor": {"kind": "agent"},
}


def decide(house: House, gate: Any, verdict: str, **more: Any) -> tuple[int, Any]:
    body = {"verdict": verdict, "digest": gate.digest, **more}
    return house.request("alice", "POST", f"/gates/{gate.pk}/decisions", body)[:2]


@pytest.mark.parametrize(
    ("verdict", "more", "pointer"),
    [
        ("approve", {"arguments": {"payment": "p-1", "amount": "1.00"}}, "/arguments"),
        ("request_changes", {"reason": "smaller"}, "/verdict"),
        ("respond", {"value": 1}, "/verdict"),
    ],
)
def test_what_the_tool_takes_away_is_refused_and_nothing_changes(
    house: House, verdict: str, more: Any, pointer: str
) -> None:
    house.tool(decisions=STRICT)
    gate = house.ask()
    before = house.trace(gate)
    status, body = decide(house, gate, verdict, **more)
    assert (status, body.get("code")) == (422, "decision-not-allowed")
    assert [one["pointer"] for one in body["errors"]] == [pointer]
    assert house.trace(gate) == before
    assert decide(house, gate, "reject", reason="no")[0] == 201


def test_a_gate_and_its_tool_say_what_may_be_chosen(house: House) -> None:
    gate = house.ask()
    shown = house.request("alice", "GET", f"/gates/{gate.pk}")[1]
    assert shown["allowed_decisions"] == ALL
    assert house.request("bot", "GET", "/tools/payments.refund")[1]["decisions"] == ALL
    house.tool("mail.send", decisions=["approve", "edit", "reject"])
    narrow = house.ask("mail.send")
    shown = house.request("bot", "GET", f"/gates/{narrow.pk}")[1]
    assert shown["allowed_decisions"] == ["approve", "edit", "reject"]
    assert [one["verdict"] for one in shown["allowed"]] == ["approve", "reject"]
    assert house.request("bot", "GET", "/tools/mail.send")[1]["decisions"] == [
        "approve",
        "edit",
        "reject",
    ]
    body = decide(house, narrow, "approve", arguments={"payment": "p-1", "amount": "1.00"})[1]
    assert (body["state"], body["allowed_decisions"], body["allowed"]) == ("approved", [], [])


@pytest.mark.parametrize(
    ("decisions", "places"),
    [
        (ALL, []),
        (STRICT, []),
        ([], []),
        (["approve"], ["/decisions"]),
        (["reject", "edit"], ["/decisions"]),
        (["respond"], ["/decisions", "/decisions"]),
        (["approve", "reject", "reject"], ["/decisions/2"]),
        (["approve", "reject", "wait"], ["/decisions/2"]),
        ("reject", ["/decisions"]),
    ],
)
def test_to_approve_and_to_reject_are_never_taken_away(decisions: Any, places: list[str]) -> None:
    found = check_tool({**copy.deepcopy(DECLARED), "decisions": decisions})
    assert [place for place, _ in found] == places


def test_a_tool_that_takes_nothing_away_stays_the_version_it_was() -> None:
    plain = full_form(DECLARED)
    before = {name: said for name, said in plain.items() if name != "decisions"}
    assert form_digest(plain) == form_digest(before)
    assert full_form({**DECLARED, "decisions": ALL[::-1]}) == plain
    narrow = full_form({**DECLARED, "decisions": STRICT[::-1]})
    assert narrow["decisions"] == STRICT
    assert form_digest(narrow) != form_digest(plain)
