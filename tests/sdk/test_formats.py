"""Formats of the agent's own state: one way from each version to this program's."""

from __future__ import annotations

from typing import Any

import pytest
from abeyance import State, StateFormat


def test_a_version_has_one_migration_and_none_leads_back() -> None:
    chat = StateFormat("chat", "3")
    chat.migrates("2")(dict)
    for from_version, to in (("2", "3"), ("3", "4"), ("1", "1"), ("3", "2")):
        with pytest.raises(ValueError, match="chat"):
            chat.migrates(from_version, to)(dict)
    chat.migrates("1", "2")(dict)
    assert chat.read(State({"a": 1}, "chat", "1")) == chat.state({"a": 1})


def test_what_is_read_is_a_copy_that_a_migration_may_change() -> None:
    chat = StateFormat("chat", "2")

    @chat.migrates("1")
    def _(data: Any) -> Any:
        data["list"].append(2)
        return data

    state = State({"list": [1]}, "chat", "1")
    assert chat.read(state).data == {"list": [1, 2]}
    assert state.data == {"list": [1]}


def test_what_is_of_this_version_is_read_as_it_is() -> None:
    chat = StateFormat("chat", "2")
    state = chat.state({"list": [1]})
    assert chat.read(state) == state
    assert state.document() == {"format": "chat", "version": "2", "data": {"list": [1]}}
    grown = chat.grown("some-id", {"/list": [2]})
    assert grown.document() == {
        "format": "chat", "version": "2", "base": "some-id", "append": {"/list": [2]},
    }  # fmt: skip
