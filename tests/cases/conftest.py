from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import current_app

from tests.cases.far_end import Outside
from tests.cases.world import Pair, World
from tests.clock import moving_clock

__all__ = ["moving_clock"]


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
    return made


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()
