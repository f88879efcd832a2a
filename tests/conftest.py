"""What every test leans on: a database made by the owner, and tests that run as the app role."""

import gc
from collections.abc import Iterator
from functools import cache
from typing import Any

import psycopg
import pytest
from django.db import connections
from django.test import TransactionTestCase
from hypothesis import HealthCheck, settings
from pytest_django import DjangoDbBlocker
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import Redirect, StaticFile

from tests.database import login_as_superuser

# How long an example takes to make or to try says something of the machine, and of nothing else.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# What a test makes goes with it: looking as often as usual through all that stays only costs time.
gc.set_threshold(100_000, 20, 20)

KEPT_BY_FLUSH = ("django_migrations", "django_content_type", "auth_permission")
"""Filled by the migrations and by nothing else, so a test leaves them as they were."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where processes share the files out, those that take long come first.

    Else one of them is left with a long file at the end, while the others have nothing to do.
    """
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected alone: it stays to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def static_files_are_found_once() -> Iterator[None]:
    """Each test client has middleware of its own, which would look through every static file."""
    find = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, StaticFile | Redirect] = {}

    def find_once(middleware: WhiteNoiseMiddleware) -> None:
        if not found:
            find(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", find_once)
        yield


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest,
    django_test_environment: None,
    django_db_blocker: DjangoDbBlocker,
    django_db_keepdb: bool,
    django_db_createdb: bool,
    django_db_modify_db_settings: None,
) -> Iterator[None]:
    """Make the test database as the owner, by the real migrations."""
    owner = connections["owner"]
    original_name = owner.settings_dict["NAME"]
    with django_db_blocker.unblock():
        owner.creation.create_test_db(
            verbosity=max(request.config.option.verbose - 1, 0),
            autoclobber=True,
            serialize=False,
            keepdb=django_db_keepdb and not django_db_createdb,
        )
        for alias in ("default", "sweep"):
            connections[alias].close()
            connections[alias].creation.set_as_test_mirror(owner.settings_dict)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: flush())
        yield
    with django_db_blocker.unblock():
        flusher().close()
        for connection in connections.all(initialized_only=True):
            connection.close()
        if not django_db_keepdb:
            owner.creation.destroy_test_db(original_name, verbosity=0)


@cache
def flusher() -> psycopg.Connection[Any]:
    """The superuser's connection that empties the tables; it is kept, with its plans."""
    connection = login_as_superuser()
    connection.execute("SET lock_timeout = '10s'; SET session_replication_role = replica")
    return connection


def flush() -> None:
    """Empty the tables after a transactional test, as the cluster's superuser.

    The app role may not, and the owner's triggers refuse it for what is append-only. Rows are
    deleted with triggers and references off: to truncate forty tables takes the server ten times
    as long as to delete a test's few rows.
    """
    connection = flusher()
    rows = connection.execute(
        "SELECT quote_ident(tablename) FROM pg_tables"
        " WHERE schemaname = 'public' AND tablename <> ALL(%s)",
        [list(KEPT_BY_FLUSH)],
    ).fetchall()
    looks = (f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for (table,) in rows)
    filled = connection.execute(" UNION ALL ".join(looks)).fetchall()
    with connection.pipeline():
        for (table,) in filled:
            connection.execute(f"DELETE FROM {table}")
