"""The sweep goes on whatever else is away: the broker, or what another sweeper works with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connections

from interrupts import sweep
from interrupts.models import Attempt
from tests.interrupts.house import earlier, fresh, open_of
from tests.platform.service import eventually

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])

WORKER = """
import json, sys
from django.conf import settings
for alias, name in json.loads(sys.argv[1]).items():
    settings.DATABASES[alias]["NAME"] = name
from config.celery import app
app.worker_main(["-q", "worker", "--pool", "prefork", "-c", "1"])
"""


def left_by_a_dead_worker(house):
    house.tool("t", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("t", {}))
    earlier(house.claim(step), "lease_expires_at", 3600)
    earlier(run, "due_at", 3600)
    return step


@contextmanager
def worker_of(broker: str) -> Iterator[subprocess.Popen[bytes]]:
    names = {alias: connections[alias].settings_dict["NAME"] for alias in connections}
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, json.dumps(names)],
        env={
            **os.environ,
            "CELERY_BROKER_URL": broker,
            "DJANGO_SETTINGS_MODULE": "config.settings",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    try:
        yield worker
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


@pytest.mark.slow
def test_a_worker_that_never_reached_its_broker_takes_over_all_the_same(house, tmp_path: Path):
    step = left_by_a_dead_worker(house)
    with worker_of(f"redis+socket://{tmp_path}/away.sock"):
        assert eventually(lambda: fresh(step).status == "unknown", 120)
    assert open_of(step).reason == "outcome_unknown"


def test_a_sweeper_that_cannot_do_its_work_keeps_no_other_from_sweeping(
    house, monkeypatch, settings
):
    swept = []

    def full_disk() -> int:
        raise OSError(28, "No space left on device")

    def other() -> int:
        swept.append(True)
        return 1

    settings.SWEEPERS = ["full", "other"]
    named = {"full": full_disk, "other": other}
    monkeypatch.setattr(sweep, "import_string", named.__getitem__)
    step = left_by_a_dead_worker(house)
    assert sweep.sweep_once() == 2
    assert swept == [True]
    assert fresh(step).status == "unknown"
    assert Attempt.objects.get(step=step).lapsed_at is not None
