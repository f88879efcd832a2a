"""Readiness tells every way in which the database could let too much pass."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.conf import settings
from django.db import connections
from django.test import Client

from config import health
from config.database import APP, connect_parameters

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def as_owner() -> Iterator[psycopg.Connection]:
    parameters = connect_parameters(settings.DATABASES["owner"])
    name = connections["owner"].settings_dict["NAME"]
    with psycopg.connect(**{**parameters, "dbname": name}, autocommit=True) as connection:
        yield connection


@contextmanager
def changed(change: str, back: str) -> Iterator[None]:
    with as_owner() as owner:
        owner.execute(change.encode())
        try:
            yield
        finally:
            owner.execute(back.encode())


def database_check() -> tuple[int, str]:
    told = Client().get("/healthz/ready")
    return told.status_code, told.json()["checks"]["database"]


def test_the_schema_as_migrated_is_ready() -> None:
    assert database_check() == (200, "ok")


@pytest.mark.parametrize(
    ("change", "back", "fault"),
    [
        (
            "ALTER TABLE interrupts_step NO FORCE ROW LEVEL SECURITY",
            "ALTER TABLE interrupts_step FORCE ROW LEVEL SECURITY",
            "row-level security is not forced on interrupts_step",
        ),
        (
            "CREATE TABLE forgotten (tenant_id uuid)",
            "DROP TABLE forgotten",
            "row-level security is not forced on forgotten",
        ),
        (
            f"GRANT UPDATE ON interrupts_receipt TO {APP}",
            f"REVOKE UPDATE ON interrupts_receipt FROM {APP}",
            f"{APP} may rewrite interrupts_receipt",
        ),
        (
            f"GRANT UPDATE (text) ON tenants_journalentry TO {APP}",
            f"REVOKE UPDATE (text) ON tenants_journalentry FROM {APP}",
            f"{APP} may rewrite tenants_journalentry",
        ),
        (
            f"GRANT DELETE ON tenants_journalentry TO {APP}",
            f"REVOKE DELETE ON tenants_journalentry FROM {APP}",
            f"{APP} may rewrite tenants_journalentry",
        ),
        (
            f"GRANT TRUNCATE ON interrupts_run TO {APP}",
            f"REVOKE TRUNCATE ON interrupts_run FROM {APP}",
            f"{APP} may truncate interrupts_run",
        ),
        (
            "DELETE FROM django_migrations WHERE app = 'interrupts' AND name = '0001_tables'",
            "INSERT INTO django_migrations VALUES (DEFAULT, 'interrupts', '0001_tables', now())",
            "1 migrations are not applied, interrupts.0001_tables first",
        ),
    ],
)
def test_what_lets_too_much_pass_is_told(change: str, back: str, fault: str) -> None:
    with changed(change, back):
        assert database_check() == (503, fault)
    assert database_check() == (200, "ok")


def test_a_role_that_owns_a_table_is_told() -> None:
    with as_owner() as owner:
        owner.execute(f"GRANT CREATE ON SCHEMA public TO {APP}")
    with connections["default"].cursor() as cursor:
        cursor.execute("CREATE TABLE mine (id int)")
        try:
            assert database_check()[0] == 503
            assert f"{APP} owns" in database_check()[1]
        finally:
            cursor.execute("DROP TABLE mine")
    with as_owner() as owner:
        owner.execute(f"REVOKE CREATE ON SCHEMA public FROM {APP}")


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_requests_that_run_as_another_role_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "connection", connections["owner"])
    faults = list(health.role_faults())
    assert f"requests run as abeyance_owner in place of {APP}" in faults
    assert "abeyance_owner bypasses row-level security" in faults


def test_a_database_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connections["default"]
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    status, told = database_check()
    assert status == 503
    assert told == "unreachable: OperationalError"
