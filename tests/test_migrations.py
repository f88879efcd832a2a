"""An empty database and one of before the tables were written anew both come to the same."""

from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.test import Client

from config.chain import APPLIED_BY_NOW, CHAIN
from config.database import MIGRATING
from tests.database import as_owner

NEW = [(app, name) for app in CHAIN for name in APPLIED_BY_NOW]
BEFORE = [(app, name) for app, names in CHAIN.items() for name in names]


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


def nobody_migrates() -> bool:
    """Return whether the next migration would find the lock free."""
    with as_owner() as owner:
        return owner.execute("SELECT pg_try_advisory_lock(%s)", [MIGRATING]).fetchone() == (True,)


@pytest.fixture
def before(transactional_db: None) -> Iterator[None]:
    """The database as an earlier version left it, which had another chain of migrations."""
    with as_owner() as owner:
        kept = owner.execute("SELECT app, name, applied FROM django_migrations").fetchall()
        owner.execute("DELETE FROM django_migrations WHERE app = ANY (%s)", [list(CHAIN)])
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
    assert nobody_migrates()


PROMISES = """
SELECT format('%s %s', tablename, policyname) FROM pg_policies
UNION ALL SELECT format('%s %s', tgrelid::regclass, tgname) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT format('%s %s', conrelid::regclass, conname) FROM pg_constraint
    WHERE conrelid <> 0
UNION ALL SELECT oid::regprocedure::text FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace
ORDER BY 1
"""


@pytest.fixture
def empty() -> Iterator[None]:
    """An empty database in the place of the test's, for what migrates."""
    owner = connections["owner"]
    made = owner.settings_dict["NAME"]
    fresh = f"{made}_empty"
    with as_owner() as connection:
        connection.execute(f"CREATE DATABASE {fresh}".encode())
        owner.close()
        owner.settings_dict["NAME"] = fresh
        try:
            yield
        finally:
            owner.close()
            owner.settings_dict["NAME"] = made
            connection.execute(f"DROP DATABASE {fresh}".encode())


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_a_first_migrate_that_broke_off_goes_on_where_it_stood(empty: None) -> None:
    for app in CHAIN:
        call_command("migrate", app, APPLIED_BY_NOW[0], verbosity=0)
    assert not applied() & {(app, APPLIED_BY_NOW[1]) for app in ("approvals", "delegation")}
    call_command("migrate", verbosity=0)
    with as_owner() as migrated, connection.cursor() as cursor:
        cursor.execute(PROMISES)
        assert migrated.execute(PROMISES).fetchall() == cursor.fetchall()
    assert applied() >= set(NEW)
    assert nobody_migrates()
