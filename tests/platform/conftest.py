from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.platform.kept import ran_before
from tests.platform.service import Service, reachable_folder


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that other users can reach too, unlike pytest's own."""
    with reachable_folder() as folder:
        yield folder


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Makes services on a data folder of the test's own, and removes them at its end."""
    made: list[Service] = []

    def make(data: Path = tmp_path / "data", **options: Any) -> Service:
        made.append(Service(data, **options))
        return made[-1]

    yield make
    for one in made:
        one.discard()


@pytest.fixture
def service_again(service: Callable[..., Service]) -> Callable[..., Service]:
    """Makes services where one has run before: what is tried needs no first start."""

    def make(**options: Any) -> Service:
        made = service(**options)
        ran_before(made.folder)
        return made

    return make
