"""Which published version began to deny a tool: by what is denied, not by how it is written."""

from __future__ import annotations

import pytest

from approvals.policy import Denials

TOOL = "refunds.make"
LIMIT = 'decimal(arguments.amount) > decimal("100")'
PLAIN = {"name": "no", "trigger": "action", "then": "deny", "tools": [TOOL]}
ABOVE = {**PLAIN, "name": "above", "condition": LIMIT}


def began(*versions, tool=TOOL):
    """The newest of these versions, of rules that deny each, that began to deny the tool."""
    return Denials(enumerate(versions, 1)).of(tool)


def test_the_first_that_denies_it_is_the_one_and_who_denies_nothing_none():
    assert began() == began([], []) == 0
    assert began([], [PLAIN], [PLAIN]) == 2
    assert began([PLAIN], [PLAIN], []) == 1
    assert Denials([(3, []), (7, [PLAIN]), (9, [])]).of(TOOL) == 7


def test_what_is_denied_again_after_it_was_not_is_denied_anew():
    assert began([PLAIN], [], [PLAIN], []) == 3


@pytest.mark.parametrize(
    "after",
    [
        [ABOVE],
        [{**ABOVE, "name": "another"}],
        [{**ABOVE, "reason": "Too much."}],
        [{**ABOVE, "tools": [TOOL, "mail.send"]}],
        [{**ABOVE, "tools": ["refunds.*"]}],
        [{name: value for name, value in ABOVE.items() if name != "tools"}],
        [{**ABOVE, "tools": ["mail.*"]}, {**ABOVE, "name": "two", "tools": ["*.make"]}],
        [ABOVE, {**PLAIN, "tools": ["refunds.m", "*.send", "Refunds.make"]}],
        [],
    ],
)
def test_what_stood_before_begins_nothing(after):
    assert began([ABOVE], after) == 1


@pytest.mark.parametrize(
    "after",
    [
        [PLAIN],
        [ABOVE, PLAIN],
        [{**ABOVE, "condition": LIMIT.replace("100", "200")}],
        [{**ABOVE, "condition": "false"}],
        [ABOVE, {**PLAIN, "tools": ["*"]}],
        [ABOVE, {"name": "all", "trigger": "action", "then": "deny"}],
        [ABOVE, {**PLAIN, "tools": ["refunds.*"], "trigger": "risk", "at_least": 0.9}],
    ],
)
def test_what_is_denied_as_it_was_not_before_begins_it(after):
    assert began([ABOVE], after) == 2
    assert began([ABOVE], after, []) == 2


def test_each_tool_has_its_own_and_none_is_later_than_the_latest():
    wider = {**ABOVE, "tools": [TOOL, "mail.send"]}
    denials = Denials(enumerate([[ABOVE], [wider], [wider], []], 1))
    assert [denials.of(tool) for tool in (TOOL, "mail.send", "db.read")] == [1, 2, 0]
    assert [denials.of(tool) for tool in (TOOL, "mail.send", "db.read")] == [1, 2, 0]
    assert denials.latest == 2
    assert Denials([(1, [])]).latest == 0
