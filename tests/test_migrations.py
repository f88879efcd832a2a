"""An empty database and one of before the tables were written anew both come to the same."""

from collections.abc import Iterator
from importlib import import_module

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.test import Client

from tests.database import as_owner

APPS = ("tenants", "interrupts", "approvals", "delegation")
NEW = [(app, name) for app in APPS for name in ("0001_tables", "0002_promises")]
BEFORE = [each for app in APPS for each in import_module(f"{app}.migrations._before").BEFORE]


@pytest.mark.django_db
def test_every_table_with_a_tenant_has_forced_row_level_security():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE c.relkind = 'r' AND a.attname = 'tenant_id' AND NOT a.attisdropped"
            " AND NOT (c.relrowsecurity AND c.relforcerowsecurity)"
        )
        assert cursor.fetchall() == []


def applied() -> set[tuple[str, str]]:
    with as_owner() as owner:
        return set(owner.execute("SELECT app, name FROM django_migrations").fetchall())


@pytest.fixture
def before(transactional_db: None) -> Iterator[None]:
    """The database as an earlier version left it, which had another chain of migrations."""
    with as_owner() as owner:
        kept = owner.execute("SELECT app, name, applied FROM django_migrations").fetchall()
        owner.execute("DELETE FROM django_migrations WHERE app = ANY (%s)", [list(APPS)])
        add = "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())"
        owner.cursor().executemany(add, BEFORE)
        try:
            yield
        finally:
            owner.execute("DELETE FROM django_migrations")
            owner.cursor().executemany(add.replace("now()", "%s"), kept)
            connections["owner"].close()


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_a_database_that_had_all_of_the_chain_before_goes_on(before: None) -> None:
    assert Client().get("/healthz/ready").status_code == 503
    call_command("migrate", database="owner", verbosity=0)
    assert applied() >= {*NEW, *BEFORE}
    assert Client().get("/healthz/ready").json()["checks"]["database"] == "ok"


@pytest.mark.parametrize("missing", [BEFORE[-1], BEFORE[0], ("approvals", "0028_quicker_promises")])
@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_one_that_had_a_part_of_it_is_refused(before: None, missing: tuple[str, str]) -> None:
    with as_owner() as owner:
        owner.execute("DELETE FROM django_migrations WHERE app = %s AND name = %s", missing)
    stood = applied()
    with pytest.raises(
        CommandError, match=rf"\({'.'.join(missing)} was never applied\): migrate it"
    ):
        call_command("migrate", database="owner", verbosity=0)
    assert applied() == stood
