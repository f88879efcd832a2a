"""The stages that the facts about the client are tested on: in memory and live, plain and asyncio."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sdk.stage import FakeStage, LiveStage, async_clients, sync_clients

KINDS = {"sync": sync_clients, "async": async_clients}


@pytest.fixture(
    params=[
        "fake-sync",
        "fake-async",
        pytest.param("live-sync", marks=pytest.mark.slow),
        pytest.param("live-async", marks=pytest.mark.slow),
    ]
)
def stage(request: pytest.FixtureRequest) -> Iterator[Any]:
    where, kind = request.param.split("-")
    with KINDS[kind]() as (in_memory, of_service):
        if where == "fake":
            yield FakeStage(in_memory)
            return
        found = LiveStage(of_service)
        yield found
        found.close()


@pytest.fixture
def live_stage() -> Iterator[LiveStage]:
    with sync_clients() as (_, of_service):
        found = LiveStage(of_service)
        yield found
        found.close()


@pytest.fixture
def run(stage: Any) -> Any:
    """A run of a workflow of its own: what another test left unknown holds nothing up here."""
    return stage.client().run(f"refunds-{secrets.token_hex(4)}", "Refund order 7")
