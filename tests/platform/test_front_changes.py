"""The one statement that finds out whose version has passed, on a real database."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.conf import settings
from django.db import connections
from django.db.models import F

from config.database import connect_parameters
from config.front.changes import FEW, Changes, Channel, Kind
from interrupts.models import Run
from tenants.ids import uuid7
from tenants.models import Agent, Tenant
from tenants.scope import tenant_scope

pytestmark = pytest.mark.django_db(transaction=True)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 20))


@pytest.fixture
def changes() -> Changes:
    name = connections["sweep"].settings_dict["NAME"]
    return Changes({**connect_parameters(settings.DATABASES["sweep"]), "dbname": name})


@pytest.fixture
def runs() -> list[tuple[UUID, UUID]]:
    """Two runs in each of two tenants, as (tenant, run)."""
    made: list[tuple[UUID, UUID]] = []
    for slug in ("acme", "umbrella"):
        tenant_id = uuid7()
        with tenant_scope(tenant_id):
            Tenant.objects.create(id=tenant_id, slug=slug, name=slug)
            agent = Agent.objects.create(name="bot")
            runs = [Run.objects.create(agent=agent, workflow="w", goal="g") for _ in range(2)]
        made += [(tenant_id, run.pk) for run in runs]
    return made


def change(tenant_id: UUID, run_id: UUID, **columns: Any) -> None:
    """Change it in a thread of its own, as another process would."""
    try:
        with tenant_scope(tenant_id):
            assert Run.objects.filter(pk=run_id).update(**columns) == 1
    finally:
        connections["default"].close()


def test_only_who_waits_for_the_changed_run_is_woken(
    changes: Changes, runs: list[tuple[UUID, UUID]]
) -> None:
    async def test() -> None:
        waiters = [changes.after(Channel(Kind.STATE, run_id), 1) for _, run_id in runs]
        await asyncio.to_thread(change, *runs[2], state_version=F("state_version") + 1)
        assert await asyncio.wait_for(waiters[2], 5)
        await asyncio.sleep(0.5)
        assert [waiter.done() for waiter in waiters] == [False, False, True, False]
        await changes.close()

    run(test())


def test_a_run_that_has_passed_already_is_told_at_the_next_look(
    changes: Changes, runs: list[tuple[UUID, UUID]]
) -> None:
    change(*runs[0], state_version=7)

    async def test() -> None:
        assert await asyncio.wait_for(changes.after(Channel(Kind.STATE, runs[0][1]), 6), 5)
        late = changes.after(Channel(Kind.STATE, runs[0][1]), 7)
        await asyncio.sleep(0.5)
        assert not late.done()
        await changes.close()

    run(test())


def test_a_stream_follows_the_journal_and_not_the_state(
    changes: Changes, runs: list[tuple[UUID, UUID]]
) -> None:
    tenant_id, run_id = runs[0]

    async def test() -> None:
        of_run = changes.after(Channel(Kind.RUN, run_id), 0)
        of_tenant = changes.after(Channel(Kind.TENANT, tenant_id), 0)
        await asyncio.to_thread(change, tenant_id, run_id, state_version=9)
        await asyncio.sleep(0.5)
        assert not of_run.done()
        assert not of_tenant.done()
        await asyncio.to_thread(change, tenant_id, run_id, journal_seq=1)
        assert await asyncio.wait_for(of_run, 5)
        await changes.close()

    run(test())


def test_waiting_goes_on_when_the_database_drops_the_connection(
    changes: Changes, runs: list[tuple[UUID, UUID]]
) -> None:
    async def test() -> None:
        waiter = changes.after(Channel(Kind.STATE, runs[0][1]), 1)
        while changes.connection is None:
            await asyncio.sleep(0.02)
        first = changes.connection
        await asyncio.to_thread(hang_up, first.info.backend_pid)
        await asyncio.to_thread(change, *runs[0], state_version=2)
        assert await asyncio.wait_for(waiter, 5)
        assert changes.connection is not first
        await changes.close()

    run(test())


def looks_in(seconds: float, changes: Changes, waits: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count the looks in a while in which so many wait, and nothing changes."""
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1

    async def test() -> None:
        monkeypatch.setattr(changes, "_look", look)
        held = [changes.after(Channel(Kind.STATE, uuid7()), 1) for _ in range(waits)]
        await asyncio.sleep(seconds)
        for waiter in held:
            waiter.cancel()
        await changes.close()

    run(test())
    return looks


def test_few_who_began_to_wait_just_now_are_looked_for_more_often(
    changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.front.changes.LOOK_EVERY_SECONDS", 60)
    assert looks_in(0.5, changes, FEW, monkeypatch) > 1
    assert looks_in(0.5, changes, FEW + 1, monkeypatch) <= 1


def test_who_has_waited_for_a_while_is_looked_for_now_and_then(
    changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.front.changes.LOOK_EVERY_SECONDS", 60)
    monkeypatch.setattr("config.front.changes.SOON_SECONDS", 0)
    assert looks_in(0.5, changes, 1, monkeypatch) <= 1


def hang_up(pid: int) -> None:
    with psycopg.connect(
        **connect_parameters(settings.DATABASES["sweep"])
        | {"dbname": connections["sweep"].settings_dict["NAME"]}
    ) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
