"""One case tried once: done whole, or by a process that is killed at one of its commits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenants.ids import uuid7
from tenants.scope import tenant_scope
from tests.crashes.cases import CASES
from tests.crashes.children import Children
from tests.crashes.pictures import Picture, outcome, picture, verify
from tests.crashes.scene import Scene
from tests.crashes.states import Names
from tests.interrupts.house import everything
from tests.property.facts import Outside


class Trial:
    """One case in a tenant of its own, ready to be done."""

    def __init__(
        self, case: str, scene: Scene, outside: Outside, children: Children, ledger: Path
    ) -> None:
        self.case, self.scene, self.outside = CASES[case], scene, outside
        self.names: Names = self.case.prepare(scene)
        self.scene.messages.clear()  # hints are lost with whoever had them
        self.order = (case, scene.world.tenant, self.names, ledger)
        self.children = children

    def done(self, *die: str | int) -> int | None:
        return self.children.do(*self.order, *die)

    @property
    def picture(self) -> Picture:
        return picture(self.scene, self.outside.look())

    def ended(self) -> Picture:
        """What it comes to once everything has gone on that was begun."""
        if self.case.drives:
            self.scene.settle()
        verify()
        return outcome(self.scene, self.outside.look())

    def comes_to(self, end: Picture) -> None:
        """Done once more it is done once."""
        verify()
        self.done()
        assert self.ended() == end
        assert set(self.scene.far.read().values()) <= {1}


Trials = Callable[[str], AbstractContextManager[Trial]]
WRITES_NOTHING = {"look at an edit", "wait for intents", "learn again"}


@pytest.fixture
def trial(owner: psycopg.Connection[Any], children: Children, tmp_path: Path) -> Iterator[Trials]:
    numbers = count()

    @contextmanager
    def made(case: str) -> Iterator[Trial]:
        pk, ledger = uuid7(), tmp_path / f"ledger-{next(numbers)}"
        with tenant_scope(pk), Scene.entered(ledger, new=True) as scene:
            outside = Outside(owner, str(pk))
            yield Trial(case, scene, outside, children, ledger)
            for table in ("interrupts_run", "approvals_gate"):
                outside.execute(f"UPDATE {table} SET due_at = NULL WHERE tenant_id = %(tenant)s")

    logging.disable(logging.CRITICAL)
    yield made
    logging.disable(logging.NOTSET)


def all_or_nothing(case: str, trial: Trials) -> None:
    """Kill it before and after each of its commits: what was committed is there, and no more.

    The same request once more, and whatever goes on by itself, then comes to the same, once.
    """
    with trial(case) as whole:
        rows, seen = everything(), [whole.picture]
        commits = whole.done()
        assert commits
        assert (everything() == rows) == (case in WRITES_NOTHING)
        last, end = whole.picture, whole.ended()
    for nth in range(1, commits + 1):
        with trial(case) as before:
            rows = everything()
            assert before.done("before", nth) is None
            assert before.picture == seen[-1]
            assert nth > 1 or everything() == rows
            before.comes_to(end)
        with trial(case) as after:
            rows = everything()
            assert after.done("after", nth) is None
            assert nth < commits or case in WRITES_NOTHING or everything() != rows
            seen.append(after.picture)
            after.comes_to(end)
    assert seen[-1] == last
