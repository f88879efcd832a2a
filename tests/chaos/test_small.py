"""A small chaos: a few runs while each kind of process is killed. `make chaos` is the full one."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from config.supervisor.paths import PROJECT
from tests.platform.service import OURS


@pytest.mark.slow
def test_nothing_is_lost_or_done_twice_while_each_kind_of_process_is_killed():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.chaos",
            *["--seed", "1", "--runs", "6", "--kills", "6", "--agents", "4"],
        ],
        cwd=PROJECT,
        env={k: v for k, v in os.environ.items() if not k.startswith(OURS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    figures = json.loads(done.stdout)
    faults = {name: figures[name] for name in ("duplicates", "lost", "stuck", "unverified")}
    assert faults == dict.fromkeys(faults, 0), done.stderr
    assert figures["problems"] == 0, done.stderr
    assert len(figures["kills_by_kind"]) == 6
    assert figures["effects"] > 0
