"""What an agent tried itself, attached to its proposal: shown as its word, and no preview."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals.models import Gate, View
from approvals.snapshots import differs_in
from interrupts.models import Run, Step
from interrupts.services.steps import MAX_DRY_RUN_BYTES
from tests.approvals.house import CALL, House, fresh, no_preview, shown_preview

CARD = "4111111111111111"
AMOUNT = {"object": "amount", "before": None, "after": "20.00"}
TRIED = {"summary": "It gives 20.00 back", "changes": [AMOUNT], "warnings": ["Twice this week"]}


def shown(house: House, gate: Gate, who: str = "alice") -> Any:
    return house.request(who, "GET", f"/gates/{gate.pk}")[1]


def test_it_stands_among_the_agents_words_and_is_kept_with_what_was_shown(house: House) -> None:
    body = {"tool": "payments.refund", "arguments": CALL, "dry_run": TRIED}
    status, step, _ = house.request("bot", "POST", f"/runs/{house.run().pk}/steps", body)
    assert (status, step["status"]) == (201, "waiting")
    gate = Gate.objects.get(pk=step["gate"])

    seen = shown(house, gate)

    told = {**TRIED, "outdated": False, "differs_in": None}
    assert seen["why"]["dry_run"] == told
    assert shown(house, gate, "bot")["why"]["dry_run"] == told
    assert View.objects.get().snapshot["why"]["dry_run"] == told
    # It is the agent's word: no preview, and no part of what is vouched for and decided.
    plain = shown(house, house.ask())
    assert plain["why"]["dry_run"] is None
    assert (seen["what"], seen["ceremony"], seen["pattern"]) == (
        plain["what"],
        plain["ceremony"],
        "propose_confirm",
    )


def test_it_takes_no_previews_place_and_lowers_no_ceremony(house: House) -> None:
    house.tool(previewed=True, risk="medium")
    house.previews["payments.refund"] = no_preview

    gate = house.ask(dry_run=TRIED)

    assert (gate.pattern, gate.preview, gate.ceremony) == ("preview", None, "explicit")
    assert gate.preview_error == "The far end is down."
    assert shown(house, gate)["why"]["dry_run"]["differs_in"] is None


def test_it_is_told_of_what_the_tool_says_something_else(house: House) -> None:
    house.tool(previewed=True)
    fee = {"object": "fee", "before": "0.00", "after": "0.30"}
    house.previews["payments.refund"] = lambda *_: shown_preview(changes=[AMOUNT, fee])

    gate = house.ask(dry_run=TRIED)

    assert shown(house, gate)["why"]["dry_run"]["differs_in"] == ["fee"]


def test_after_an_edit_it_says_that_it_is_of_another_call(house: House) -> None:
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    gate = house.ask(dry_run=TRIED)

    edited = house.decide("alice", gate, arguments={**CALL, "amount": "10.00"})

    assert shown(house, edited)["why"]["dry_run"]["outdated"]
    again = house.decide("carol", fresh(edited), arguments=CALL)
    assert not shown(house, again)["why"]["dry_run"]["outdated"]


def test_what_is_sensitive_is_neither_kept_nor_shown_in_it(house: House) -> None:
    house.tool(sensitive=["/card"])
    tried = {
        "summary": f"to {CARD}",
        "changes": [
            {"object": f"card {CARD}", "after": {"number": int(CARD), "less": -float(CARD)}}
        ],
        "warnings": [f"{CARD} is old"],
    }

    gate = house.ask(arguments={**CALL, "card": CARD}, dry_run=tried)

    assert shown(house, gate)["why"]["dry_run"] == {
        "summary": "to •••",
        "changes": [
            {"object": "card •••", "before": None, "after": {"number": "•••", "less": "•••"}}
        ],
        "warnings": ["••• is old"],
        "outdated": False,
        "differs_in": None,
    }
    kept = [*Step.objects.values("proposal"), *Gate.objects.values("why")]
    assert CARD not in json.dumps([*kept, *View.objects.values("snapshot")])


LARGE = {"object": "x", "after": "x" * (MAX_DRY_RUN_BYTES // 2)}


@pytest.mark.parametrize(
    ("tried", "pointer"),
    [
        ("as asked", "/dry_run"),
        ({"summary": "s"}, "/dry_run/changes"),
        ({"summary": "", "changes": []}, "/dry_run/summary"),
        ({"summary": "s", "changes": [{"before": 1}]}, "/dry_run/changes/0/object"),
        ({"summary": "s", "changes": [], "warnings": [1]}, "/dry_run/warnings/0"),
        ({"summary": "s", "changes": [], "fresh_for": 9}, "/dry_run/fresh_for"),
        ({"summary": "s", "changes": [AMOUNT] * 201}, "/dry_run/changes"),
        ({"summary": "s", "changes": [LARGE, LARGE]}, "/dry_run"),
    ],
)
def test_what_nobody_could_read_is_refused_with_its_place(
    house: House, tried: Any, pointer: str
) -> None:
    run = house.run()
    before = Run.objects.values().get(pk=run.pk)
    call = {"tool": "payments.refund", "arguments": CALL}

    for body, at in (
        ({**call, "dry_run": tried}, pointer),
        ({"steps": [call, {**call, "dry_run": tried}]}, f"/steps/1{pointer}"),
    ):
        status, problem, _ = house.request("bot", "POST", f"/runs/{run.pk}/steps", body)
        assert (status, problem.get("code")) == (422, "invalid-body")
        assert [one["pointer"] for one in problem["errors"]] == [at]

    assert not Step.objects.exists()
    assert Run.objects.values().get(pk=run.pk) == before


@pytest.mark.parametrize(
    ("said", "told", "differs"),
    [
        ([AMOUNT], [AMOUNT], []),
        ([AMOUNT, {**AMOUNT, "after": "1"}], [{**AMOUNT, "after": "1"}, AMOUNT], []),
        ([{**AMOUNT, "after": 20}], [AMOUNT], ["amount"]),
        ([{**AMOUNT, "before": "1"}], [AMOUNT], ["amount"]),
        ([], [AMOUNT], ["amount"]),
        ([AMOUNT, {**AMOUNT, "object": "fee"}], [AMOUNT], ["fee"]),
        ([AMOUNT, AMOUNT], [AMOUNT], ["amount"]),
        ([AMOUNT], [], None),
    ],
)
def test_changes_are_compared_object_by_object(said: Any, told: Any, differs: Any) -> None:
    tried = {"changes": said, "outdated": False}
    assert differs_in(tried, {"changes": told}) == differs
    assert differs_in(tried, None) is None
    assert differs_in({**tried, "outdated": True}, {"changes": told}) is None
