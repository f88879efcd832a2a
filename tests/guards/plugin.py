"""Loaded into a session of the runner's: takes one guard away, and writes down what was seen."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db.backends.base.creation import BaseDatabaseCreation
from pytest_django import DjangoDbBlocker

NAME, REPORT = "ABEYANCE_GUARD", "ABEYANCE_GUARD_REPORT"
_seen: list[dict[str, Any]] = []


def pytest_configure() -> None:
    if os.environ.get(NAME):
        # The database is a copy of one that was migrated: there is nothing to make.
        BaseDatabaseCreation.create_test_db = _take_the_copy  # type: ignore[method-assign]


def _take_the_copy(self: BaseDatabaseCreation, **_: Any) -> str:
    name = self._get_test_db_name()
    self.connection.close()
    settings.DATABASES[self.connection.alias]["NAME"] = name
    self.connection.settings_dict["NAME"] = name
    return name


@pytest.fixture(scope="session", autouse=True)
def without_the_guard(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    from tests.database import as_owner
    from tests.guards.catalogue import GUARDS

    guard = next((one for one in GUARDS if one.name == os.environ.get(NAME)), None)
    with pytest.MonkeyPatch.context() as monkeypatch:
        if guard is not None:
            with django_db_blocker.unblock(), as_owner() as owner:
                guard.remove(owner, monkeypatch)
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    if report.when == "call" or report.failed:
        fault = call.excinfo
        _seen.append(
            {
                "test": item.nodeid,
                "when": report.when,
                "outcome": report.outcome,
                "kind": fault.typename if fault else "",
                "says": str(fault.value)[:300] if fault else "",
            }
        )


def pytest_sessionfinish() -> None:
    if path := os.environ.get(REPORT):
        Path(path).write_text(json.dumps(_seen))
