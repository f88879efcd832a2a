"""Test sessions at once share nothing, and one that is killed leaves nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from config.supervisor.paths import PROJECT
from tests.platform.service import eventually, processes
from tests.plugin_postgres import BASE, claimed_folder, remove_abandoned

SESSION = """
import os, sys, time
from pathlib import Path
from tests.plugin_postgres import claimed_folder, running_cluster
with claimed_folder(reuse=False) as folder, running_cluster(folder) as cluster:
    print(folder, (cluster.data / "postmaster.pid").read_text().split()[0], flush=True)
    time.sleep(60)
"""


def test_a_killed_session_leaves_no_process_and_its_folder_is_removed_later() -> None:
    session = subprocess.Popen(
        [sys.executable, "-c", SESSION], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    with session:
        assert session.stdout
        folder, pid = session.stdout.readline().split()
        assert int(pid) in processes()
        os.kill(session.pid, signal.SIGKILL)
        session.wait()
    assert eventually(lambda: int(pid) not in processes())
    assert Path(folder).exists()
    remove_abandoned()
    assert not Path(folder).exists()


def test_a_living_session_is_left_alone() -> None:
    with claimed_folder(reuse=False) as mine:
        remove_abandoned()
        assert mine.exists()
        with claimed_folder(reuse=False) as another:
            assert another != mine
    assert not mine.exists()


def test_a_kept_folder_has_one_user_at_a_time() -> None:
    with claimed_folder(reuse=True) as first, claimed_folder(reuse=True) as second:
        assert first == BASE / "reused" or first.parent == BASE
        assert second not in {first, BASE / "reused"}
