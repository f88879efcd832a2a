"""A worker whose broker was killed takes messages again, whatever it was at when that happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from uuid import uuid4

import pytest
import redis

from config.supervisor.broker import broker_answers, broker_program
from config.supervisor.paths import PROJECT, DataFolder
from tests.platform.service import ancestors, eventually, processes

pytestmark = pytest.mark.slow
QUEUE, UNACKNOWLEDGED = "celery", "unacked"


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    return DataFolder(tmp_path_factory.mktemp("b"))


@pytest.fixture
def worker(folder: DataFolder) -> Iterator[subprocess.Popen[bytes]]:
    """A worker with one process in its pool, that has room for one message."""
    url = f"redis+socket://{folder.broker_socket}"
    command = ["celery", "-q", "-A", "config", "worker", "--pool", "prefork", "-c", "1"]
    lean = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    worker = subprocess.Popen(
        [sys.executable, "-m", *command, *lean],
        cwd=PROJECT,
        env={**os.environ, "CELERY_BROKER_URL": url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    yield worker
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def started(folder: DataFolder) -> subprocess.Popen[bytes]:
    broker = broker_program(folder).start()
    assert eventually(lambda: broker_answers(folder))
    return broker


def pool_of(worker: subprocess.Popen[bytes]) -> list[int]:
    living = processes()
    parents = {pid: parent for pid, (parent, _) in living.items()}
    return [pid for pid in living if worker.pid in ancestors(pid, parents)]


def send(folder: DataFolder) -> None:
    """Send a hint about a run that is not there: it is taken, and is no work."""
    from config.celery import Hints

    app = Hints("test", broker=f"redis+socket://{folder.broker_socket}", set_as_current=False)
    app.conf.update(task_publish_retry=False, task_ignore_result=True)
    names = {"tenant_id": str(uuid4()), "run_id": str(uuid4()), "epoch": 1}
    app.send_task("interrupts.work_run", kwargs=names)


def length(folder: DataFolder, name: str) -> int:
    with redis.Redis(unix_socket_path=str(folder.broker_socket)) as client:
        return int(client.llen(name) if name == QUEUE else client.hlen(name))


def test_messages_are_taken_again_after_the_broker_was_killed_before_their_acknowledgement(
    folder: DataFolder, worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CELERY_BROKER_URL")  # Celery would prefer it
    broker = started(folder)
    try:
        send(folder)
        assert eventually(lambda: length(folder, QUEUE) == 0, 120)
        assert eventually(lambda: length(folder, UNACKNOWLEDGED) == 0)
        (process,) = pool_of(worker)
        os.kill(process, signal.SIGSTOP)  # what it is given now it does not accept
        send(folder)
        assert eventually(lambda: length(folder, UNACKNOWLEDGED) == 1)

        broker.kill()
        broker.wait()
        os.kill(process, signal.SIGCONT)
        assert not eventually(lambda: worker.poll() is not None, 2)
        broker = started(folder)
        send(folder)
        assert eventually(lambda: length(folder, QUEUE) == 0, 60)
    finally:
        broker.kill()
        broker.wait()


def test_a_worker_that_is_only_busy_keeps_its_connection(
    folder: DataFolder, worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CELERY_BROKER_URL")
    broker = started(folder)
    try:
        send(folder)
        assert eventually(lambda: length(folder, QUEUE) == 0, 120)
        assert eventually(lambda: length(folder, UNACKNOWLEDGED) == 0)
        (process,) = pool_of(worker)
        os.kill(process, signal.SIGSTOP)
        send(folder)
        assert eventually(lambda: length(folder, UNACKNOWLEDGED) == 1)
        with redis.Redis(unix_socket_path=str(folder.broker_socket)) as client:
            before = {one["id"] for one in client.client_list()}
            assert not eventually(lambda: worker.poll() is not None, 5)
            assert before <= {one["id"] for one in client.client_list()}
        os.kill(process, signal.SIGCONT)
        assert eventually(lambda: length(folder, UNACKNOWLEDGED) == 0)
    finally:
        broker.kill()
        broker.wait()
