from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.clock import moving_clock
from tests.database import as_owner

__all__ = ["moving_clock"]


@pytest.fixture
def owner(transactional_db: None, settings: Any) -> Iterator[psycopg.Connection[Any]]:
    settings.SWEEPERS = ["approvals.sweep.sweep_gates"]
    with as_owner() as connection:
        yield connection
