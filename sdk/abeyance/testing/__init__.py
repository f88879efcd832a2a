"""For agents' unit tests: the same client on a service in memory that answers as it is told."""

from abeyance.testing.clients import AsyncFakeAbeyance, FakeAbeyance
from abeyance.testing.script import Made, Unscripted

__all__ = ["AsyncFakeAbeyance", "FakeAbeyance", "Made", "Unscripted"]
