from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clock import moving_clock
from tests.crashes.children import Children, running
from tests.property.conftest import owner

__all__ = ["moving_clock", "owner"]


@pytest.fixture(scope="session")
def children(django_db_setup: None) -> Iterator[Children]:
    with running() as made:
        yield made
