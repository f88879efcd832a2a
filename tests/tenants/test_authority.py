"""A withdrawal answers only once nobody can act under what it withdrew."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections, transaction

from tenants import authority
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.tenants.conftest import World

pytestmark = pytest.mark.django_db(transaction=True)


def version(world: World) -> int:
    return Tenant.objects.get(pk=world.id).authority_version


def test_raising_makes_one_newer_version(acme: World, umbrella: World) -> None:
    before, other = version(acme), version(umbrella)
    with tenant_scope(acme.id), transaction.atomic():
        assert authority.raise_authority() == before + 1
    assert (version(acme), version(umbrella)) == (before + 1, other)


def test_a_withdrawal_waits_for_whoever_saw_the_older_version(acme: World) -> None:  # noqa: PLR0915
    holding, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def act_under_the_old_version() -> None:
        try:
            with tenant_scope(acme.id), transaction.atomic():
                authority.hold_authority()
                holding.set()
                assert go_on.wait(20)
                order.append("acted")
        finally:
            connections.close_all()

    def withdraw() -> None:
        try:
            with tenant_scope(acme.id):
                with transaction.atomic():
                    authority.raise_authority()
                order.append("withdrawn")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        acting = pool.submit(act_under_the_old_version)
        assert holding.wait(20)
        withdrawing = pool.submit(withdraw)
        time.sleep(0.3)
        assert not withdrawing.done()
        go_on.set()
        acting.result(20)
        withdrawing.result(20)
    assert order == ["acted", "withdrawn"]


def test_who_acts_at_once_does_not_wait_for_each_other(acme: World) -> None:
    barrier = threading.Barrier(3)

    def act(_: int) -> None:
        try:
            with tenant_scope(acme.id), transaction.atomic():
                authority.hold_authority()
                barrier.wait(5)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(act, range(3)))


def test_what_another_tenant_does_is_not_waited_for(acme: World, umbrella: World) -> None:
    holding, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with tenant_scope(umbrella.id), transaction.atomic():
                authority.hold_authority()
                holding.set()
                assert go_on.wait(20)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        assert holding.wait(20)
        with tenant_scope(acme.id), transaction.atomic():
            authority.raise_authority()
        go_on.set()
        held.result(20)
