"""Four roles, and connections that outlive their server's restarts."""

import psycopg
import pytest
from django.conf import settings
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper

from config.database import APP, KEYS, OWNER, SWEEP, connect_parameters, databases, parse_url
from config.supervisor.failures import CannotStart
from config.supervisor.paths import DataFolder
from tests.database import end_backend

HERE = DataFolder(settings.DATA_FOLDER.root)


def powers(alias: str) -> dict[str, bool]:
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole FROM pg_roles"
            " WHERE rolname = current_user"
        )
        name, *flags = cursor.fetchone()
    return {"name": name, **dict(zip(("super", "bypasses", "creates"), flags, strict=True))}


@pytest.mark.django_db(databases=["default", "owner", "sweep"])
def test_each_alias_runs_as_its_own_role() -> None:
    nothing = {"super": False, "bypasses": False, "creates": False}
    assert powers("default") == {"name": APP, **nothing}
    assert powers("sweep") == {"name": SWEEP, **nothing}
    assert powers("owner") == {"name": OWNER, **nothing, "bypasses": True}


@pytest.mark.django_db
def test_the_keys_role_cannot_log_in() -> None:
    parameters = connect_parameters(settings.DATABASES["default"]) | {"user": KEYS}
    with pytest.raises(psycopg.OperationalError, match="not permitted to log in"):
        psycopg.connect(**parameters)


@pytest.mark.django_db
@pytest.mark.parametrize("role", [OWNER, KEYS, SWEEP])
def test_the_app_role_can_become_no_other(role: str) -> None:
    parameters = connect_parameters(settings.DATABASES["default"])
    with (
        psycopg.connect(**parameters | {"dbname": connection.settings_dict["NAME"]}) as another,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        another.execute(f"SET ROLE {role}".encode())


def test_roles_are_assumed_by_the_login_of_a_url() -> None:
    url = "postgresql://svc:pw@db.example:6432/prod?sslmode=require"
    made = databases({"DATABASE_URL": url}, HERE)
    for alias, role in (("default", APP), ("owner", OWNER), ("sweep", SWEEP)):
        assert (made[alias]["USER"], made[alias]["HOST"], made[alias]["PORT"]) == (
            "svc",
            "db.example",
            "6432",
        )
        assert made[alias]["OPTIONS"]["sslmode"] == "require"
        assert f"-c role={role}" in made[alias]["OPTIONS"]["options"]


def test_a_url_of_its_own_keeps_the_owner_out_of_reach_of_requests() -> None:
    environ = {
        "DATABASE_URL": "postgresql://owner@db/prod",
        "DATABASE_APP_URL": "postgresql://app@db/prod",
        "DATABASE_SWEEP_URL": "postgresql://sweep@db/prod",
    }
    made = databases(environ, HERE)
    assert [made[alias]["USER"] for alias in ("owner", "default", "sweep")] == [
        "owner",
        "app",
        "sweep",
    ]


def test_a_url_that_is_none_is_not_quoted() -> None:
    with pytest.raises(CannotStart) as refusal:
        parse_url("postgresql://user:secret@[/x")
    assert "secret" not in str(refusal.value)


@pytest.mark.django_db(transaction=True)
class TestKeptConnections:
    def test_one_that_the_server_ended_is_replaced_before_it_is_used(self) -> None:
        connection.ensure_connection()
        end_backend(connection.connection.info.backend_pid)
        connection.close_if_unusable_or_obsolete()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)

    def test_one_that_works_is_kept_without_asking_the_server(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connection.ensure_connection()
        before = connection.connection
        monkeypatch.setattr(DatabaseWrapper, "is_usable", lambda _: pytest.fail("it was asked"))
        connection.close_if_unusable_or_obsolete()
        connection.ensure_connection()
        assert connection.connection is before
