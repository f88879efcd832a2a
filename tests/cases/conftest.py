from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import current_app
from django.conf import settings

from interrupts.verification import chains, rows
from tests.cases.far_end import Outside
from tests.cases.world import Pair, World


@pytest.fixture
def outside() -> Iterator[Outside]:
    made = Outside()
    yield made
    made.close()


@pytest.fixture
def world(
    transactional_db: None, outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> World:
    """The tenants' people and agents come with ``World.given``."""
    current_app.loader.import_default_modules()
    made = World(tmp_path, outside)
    monkeypatch.setattr(current_app, "send_task", made.enqueue)
    made.let_rows_differ = lambda: let_rows_differ(monkeypatch)
    return made


class AnyTime:
    def __eq__(self, _: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def let_rows_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold chains alone against their key: every moment was moved, and what is said of it was not."""
    monkeypatch.setattr(chains, "instant", lambda _: AnyTime())
    monkeypatch.setattr(rows, "faults", lambda *_: iter(()))
    monkeypatch.setattr(settings, "RUN_VERIFIERS", [])


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()
