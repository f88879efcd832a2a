from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from approvals.services.grants import set_grants
from interrupts.effects import Call
from interrupts.effects import python as python_effects
from tenants.journal import SYSTEM
from tests.approvals.house import House, empty_house, house
from tests.clock import moving_clock
from tests.delegation.office import Office
from tests.threads import at_once, crew

__all__ = ["at_once", "crew", "empty_house", "house", "moving_clock"]


@pytest.fixture
def office(empty_house: House, monkeypatch: pytest.MonkeyPatch) -> Office:
    """A tenant where Alice alone decides, whose tool's effects can be undone."""

    def act(arguments: Any, call: Call) -> Any:
        empty_house.calls.append((call.tool, arguments))
        return {"done": True}

    def tool_named(name: str) -> python_effects.PythonTool:
        return python_effects.PythonTool(
            act, preview=empty_house.previews.get(name), compensate=lambda *_: {"undone": True}
        )

    for module in ("interrupts.effects", "interrupts.effects.python"):
        monkeypatch.setattr(f"{module}.tool_named", tool_named)
    monkeypatch.setattr("interrupts.queue.compensate", lambda _step: None)
    monkeypatch.setattr("delegation.queue.send", lambda _tenant: None)
    made = Office(empty_house)
    made.tool()
    with transaction.atomic():
        set_grants(SYSTEM, {"alice": ["*"]})
    return made
