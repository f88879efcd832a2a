"""The runner is no easy judge, and the page of guarantees names what it shows."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.guards.__main__ import judged
from tests.guards.catalogue import GUARDS
from tests.guards.removal import Guard, statements

ROOT = Path(__file__).parents[2]
GUARD = Guard(
    "g", "p", statements(), ("tests/a.py::test_x[1]", "tests/a.py::test_y"), red="Damaged"
)


def seen(test: str, outcome: str = "failed", kind: str = "AssertionError", when: str = "call"):
    return {
        "test": f"tests/a.py::{test}",
        "outcome": outcome,
        "kind": kind,
        "when": when,
        "says": "",
    }


RED_X = seen("test_x[1]")


@pytest.mark.parametrize(
    ("second", "ok"),
    [
        (seen("test_y"), True),
        (seen("test_y", kind="Failed"), True),
        (seen("test_y", kind="Damaged"), True),
        (seen("test_y", "passed", kind=""), False),
        (seen("test_y", kind="OperationalError"), False),
        (seen("test_y", kind="DamagedElsewhere", when="setup"), False),
        (seen("test_y", when="setup"), False),
        (seen("test_z"), False),
    ],
)
def test_each_test_must_have_failed_by_its_own_words(second, ok):
    assert judged(GUARD, [RED_X, second])[0] is ok


def test_nothing_seen_is_nothing_shown():
    assert not judged(GUARD, [])[0]


def test_every_guards_tests_are_there_and_named_on_the_page_of_guarantees():
    page = (ROOT / "docs/guarantees.md").read_text()
    for guard in GUARDS:
        for test in guard.tests:
            file, _, name = test.partition("[")[0].partition("::")
            assert f"def {name}(" in (ROOT / file).read_text(), test
            assert f"`{file}::{name}`" in page, (guard.name, test)


def test_every_guards_tests_are_found_as_they_are_named():
    """One that is not, with its parameters, and none of them is run."""
    named = sorted({test for guard in GUARDS for test in guard.tests})
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *named],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]


def test_every_guard_has_a_name_of_its_own():
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)
