"""How processor time is counted."""

import subprocess
import sys
import time

from benchmarks.processor import spent

BURN = "import time\nwhile time.process_time() < {}: pass\nprint('burnt', flush=True)\ninput()"


def test_what_a_child_used_is_counted_and_what_this_process_used_is_not():
    before = spent()
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    assert spent() - before < 0.1
    command = [sys.executable, "-c", BURN.format(0.5)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        used = spent() - before
        child.communicate(b"\n")
    assert 0.45 <= used < 1.5


def test_a_grandchild_counts_too():
    grandchild = BURN.format(0.5)
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {grandchild!r}])"
    before = spent()
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        used = spent() - before
        child.communicate(b"\n")
    assert used >= 0.5
