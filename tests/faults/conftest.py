from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.workers import Workers, running
from tests.interrupts.house import authority, house, nothing_remembered, sent
from tests.threads import at_once, crew

__all__ = ["at_once", "authority", "crew", "house", "nothing_remembered", "sent"]


@pytest.fixture(scope="session")
def zygote(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with running(tmp_path_factory.mktemp("far end")) as workers:
        yield workers


@pytest.fixture
def workers(zygote: Workers, tmp_path: Path) -> Workers:
    """Workers whose far end has performed nothing yet."""
    zygote.ledger = tmp_path / "ledger"
    return zygote
