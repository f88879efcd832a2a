"""No process of the service outlives the one that started it, however early that one is killed."""

import os
import subprocess
import sys

import pytest

from config.supervisor.paths import PROJECT

# The starter is killed while the process that it forked has yet to load what ties them together.
ORPHAN = """
import multiprocessing, os, signal, time
{before}

def late():
    while os.getppid() == multiprocessing.parent_process().pid:
        time.sleep(0.01)
    {tie}
    print("it lives", flush=True)

multiprocessing.get_context("fork").Process(target=late).start()
print("started", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
CHILD = "from config.supervisor.processes import die_with_parent"


@pytest.mark.parametrize(
    ("before", "tie"),
    [
        pytest.param(
            CHILD, "die_with_parent(multiprocessing.parent_process().pid)", id="what is shared"
        ),
        pytest.param("", "import config.asgi", id="web"),
        pytest.param("import config.celery", "config.celery.die_with_worker()", id="worker"),
    ],
)
def test_a_process_whose_starter_was_killed_before_it_was_up_ends(before: str, tie: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORPHAN.format(before=before, tie=tie)],
        cwd=PROJECT,
        env={**os.environ, "ABEYANCE_SUPERVISED": "1"},
        stdout=subprocess.PIPE,  # at its end only once the orphan has closed it, too
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "started\n"
