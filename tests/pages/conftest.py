"""People of the approvals' house in front of their browsers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connections

from approvals.models import Gate
from tenants.ids import uuid7
from tenants.models import Agent, Membership, Role, Tenant, User
from tenants.principal import Principal
from tenants.scope import tenant_scope
from tests.approvals.house import House, empty_house, house
from tests.pages.browser import Browser, outside

__all__ = ["empty_house", "house"]

PASSWORD = "the password of a test"
# How passwords are hashed is Django's matter; its slow way is not what is tested here.
FAST = ["django.contrib.auth.hashers.MD5PasswordHasher"]

Open = Callable[..., Browser]


@pytest.fixture
def browser_of(house: House, settings: Any) -> Open:
    """Sign one of the house's people in by the page, as they do."""
    settings.PASSWORD_HASHERS = FAST

    def signed_in(who: str) -> Browser:
        user = User.objects.get(pk=house.people[who].id)
        user.set_password(PASSWORD)
        user.save()
        browser = Browser()
        entered = browser.sign_in(who, PASSWORD)
        if entered.location.startswith("/tenant"):
            entered = browser.send(browser.follow(entered), "/tenant", tenant="acme")
        assert entered.location == "/inbox"
        return browser

    return signed_in


def rows_of_all_tables(*, but: frozenset[str] = frozenset()) -> dict[str, str]:
    """A digest of every table's rows, whatever tenant they are of."""
    parameters = connections["owner"].get_connection_params()
    plain = {k: v for k, v in parameters.items() if k not in {"context", "cursor_factory"}}
    with psycopg.connect(**plain, autocommit=True) as connection:
        names = connection.execute(
            "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        return {
            name: str(
                connection.execute(
                    f"SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), ''))"
                    f" FROM {name} t"
                ).fetchone()
            )
            for (name,) in names
            if name not in but
        }


KEPT_BY_LOOKING = frozenset({"django_session", "approvals_view"})


@contextmanager
def nothing_changes() -> Iterator[None]:
    """What is done inside changes no row but sessions and what was shown to whom."""
    before = rows_of_all_tables(but=KEPT_BY_LOOKING)
    yield
    assert rows_of_all_tables(but=KEPT_BY_LOOKING) == before


@pytest.fixture
def nothing_of_another(house: House) -> Gate:
    """A gate of another tenant, whose person has the same right there."""
    alice = house.people["alice"]
    there = Tenant(pk=uuid7(), slug="umbrella", name="Umbrella")

    def make() -> Gate:
        with tenant_scope(there.pk):
            there.save(force_insert=True)
            Membership.objects.create(user_id=alice.id, role=Role.APPROVER)
            machine = Agent.objects.create(name="secret-bot")
            agent = Principal("agent", machine.pk, there.pk, "secret-bot", None)
            other = House(there, agent, {"alice": alice}, {})
            other.tool(headline="secret {payment}")
            other.grant("alice", "*")
            return other.ask()

    return outside(make)
