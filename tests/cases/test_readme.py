"""Which cases there are, and that what the README says of one is said of a test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
ID: Final = re.compile(r"rf-([a-z]+)-(\d\d)")
CASES: Final = {
    "allow": "01 02 04 05 06 08 10",
    "aud": "01 03 04",
    "auth": "01 02 03 06 07 08",
    "bind": "01 02 03 05 06 07 09",
    "can": "01 03 04 05",
    "child": "01 03 04",
    "ckpt": "01",
    "data": "01 03 04 05 07 09",
    "dec": "01 03 05",
    "deleg": "01 02 03 05 07 09",
    "dry": "01",
    "dup": "01 02 04 06 08",
    "durb": "01 03 05 06",
    "exp": "01 02 04 05 07",
    "idem": "01 03 04",
    "lease": "01 03",
    "perm": "01 03 05 06",
    "que": "01",
    "quo": "01 04",
    "race": "01 02 04",
    "rej": "01 02",
    "route": "01 02 04",
    "stale": "01 02 04 05 06",
    "ten": "01 03 04 05",
    "time": "01",
    "unk": "01 02 03 05",
}


def named(text: str) -> list[tuple[str, str]]:
    return ID.findall(text)


def test_each_case_is_a_test() -> None:
    found: dict[str, set[str]] = {}
    for file in HERE.glob("test_*.py"):
        for kind, number in named(file.read_text()):
            found.setdefault(kind, set()).add(number)
    assert {kind: " ".join(sorted(numbers)) for kind, numbers in found.items()} == CASES


def test_what_is_answered_otherwise_is_a_case_and_once() -> None:
    rows = re.findall(r"^\| (rf-\S+) \|", (HERE / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == len(set(rows)) > 0
    for kind, number in named(" ".join(rows)):
        assert number in CASES[kind].split()
