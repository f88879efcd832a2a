import pytest

from tests.interrupts.house import authority, house, nothing_remembered, sent
from tests.threads import at_once

__all__ = ["at_once", "authority", "house", "nothing_remembered", "sent"]


@pytest.fixture(autouse=True)
def remembers_nothing(nothing_remembered: None) -> None:
    """Also of tests that need no house."""
