"""What a far end repeats of a secret is on no page, and in no answer of the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from approvals.models import Gate
from interrupts.models import Step
from tests.approvals.house import House
from tests.interrupts.effects.far_end import answering
from tests.interrupts.provider import VALUE, Provider, install
from tests.pages.conftest import Open

CALL = {"charge": "ch_1", "amount": 1250}


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    provider = Provider()
    settings.ABEYANCE_ALLOWED_HOSTS = [provider.authority]
    yield provider
    provider.close()


def test_a_secret_is_on_no_page(house: House, browser_of: Open, provider: Provider) -> None:
    install(provider)
    house.grant("alice", "*")
    provider.behave = answering(200, {"error": {"message": f"Welcome, {VALUE}"}})
    gate: Gate = house.ask("charges.refund", CALL)
    assert gate.preview["summary"] == "Refund 1250: Welcome, •••"
    provider.behave = provider.serve
    step = Step.objects.get(pk=gate.step_id)
    browser = browser_of("alice")
    shown = [browser.get(f"/decisions/{gate.pk}").html]
    assert "Welcome, •••" in shown[0]
    house.decide("alice", gate)
    house.work(gate.run)
    provider.fault = "refuse"
    refused = house.ask("charges.refund", {**CALL, "amount": 7}, run=gate.run)
    house.look(refused, "alice")  # its preview was not to be had
    house.decide("alice", refused)
    house.work(gate.run)
    pages = (f"/runs/{gate.run_id}", f"/decisions/{refused.pk}", "/inbox")
    shown += [browser.get(page).html for page in pages]
    for path in (
        f"/steps/{step.pk}",
        f"/steps/{refused.step_id}",
        f"/runs/{gate.run_id}/journal",
        "/tools/charges.refund",
    ):
        status, answer, _ = house.request("alice", "GET", path)
        assert status == 200
        shown.append(repr(answer))
    assert any("Bad key •••" in text for text in shown)
    assert f"Bearer {VALUE}" in provider.signed
    assert [text for text in shown if VALUE in text] == []


def test_an_agent_is_not_told_how_a_tool_is_called(house: House, provider: Provider) -> None:
    install(provider)
    for who, told in (("alice", True), ("bot", False)):
        status, tool, _ = house.request(who, "GET", "/tools/charges.refund")
        assert status == 200
        for part in ("executor", "preview", "reconcile", "compensate"):
            assert ("request" in tool[part]) is told
        assert ("pay-key" in repr(tool), provider.authority in repr(tool)) == (told, told)
        assert (tool["executor"]["kind"], tool["reconcile"]["settle_after"]) == ("http", 1)
