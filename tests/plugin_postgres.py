"""Gives each pytest session a PostgreSQL cluster of its own, before Django's settings load.

It is loaded by name (`-p`), since pytest-django reads the settings before any conftest.py. The
cluster is a child of the session and dies with it, also by kill -9; what such an end leaves on
disk is removed by the next session. `--reuse-db` keeps cluster and database for the next one.
ABEYANCE_TEST_DATABASE_URL names a server to use in its place; its login must be a superuser.
"""

import base64
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from config.database import make_roles
from config.supervisor.paths import DataFolder, make_private
from config.supervisor.postgres import THROWAWAY, Cluster, embedded_cluster

BASE = Path(tempfile.gettempdir()) / f"abeyance-tests-{os.geteuid()}"
SESSION = pytest.StashKey[contextlib.ExitStack]()
START_LIMIT_SECONDS = 30
OWN = (
    "DATABASE_URL",
    "DATABASE_APP_URL",
    "DATABASE_SWEEP_URL",
    "ABEYANCE_MASTER_KEYS",
    "ABEYANCE_CURRENT_KEY",
    "ABEYANCE_ALLOWED_HOSTS",
)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:  # the session that started it has set all this up
        return
    session = early_config.stash[SESSION] = contextlib.ExitStack()
    early_config.add_cleanup(session.close)
    session.enter_context(prepared_server(reuse="--reuse-db" in args))


@contextlib.contextmanager
def prepared_server(*, reuse: bool = False) -> Iterator[None]:
    """Have a server, and the environment in which Django's settings find it."""
    external = os.environ.get("ABEYANCE_TEST_DATABASE_URL")
    for name in OWN:
        os.environ.pop(name, None)
    os.environ["ABEYANCE_SECRET_KEY"] = "only for tests"
    os.environ["ABEYANCE_MASTER_KEYS"] = f"test:{base64.b64encode(bytes(range(32))).decode()}"
    os.environ["CELERY_BROKER_URL"] = "memory://"
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(claimed_folder(reuse=reuse))
        os.environ["ABEYANCE_DATA_DIR"] = str(folder)
        if external:
            os.environ["DATABASE_URL"] = external
            make_roles(external, login=False, createdb=True)
        else:
            stack.enter_context(running_cluster(folder))
        yield


@contextlib.contextmanager
def claimed_folder(*, reuse: bool) -> Iterator[Path]:
    """Hold a folder that no other live session has; what dead ones left is removed."""
    make_private(BASE, mode=0o711)
    remove_abandoned()
    if reuse and (lock := try_lock(BASE / "reused")):
        with lock:
            yield BASE / "reused"
        return
    folder = Path(tempfile.mkdtemp(prefix="session-", dir=BASE))
    lock = try_lock(folder)
    assert lock, "a folder just made is held by somebody else"
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned() -> None:
    for folder in BASE.glob("session-*"):
        if lock := try_lock(folder):
            with lock:
                shutil.rmtree(folder, ignore_errors=True)


def try_lock(folder: Path) -> IO[str] | None:
    """Return the open lock of the folder, or None where somebody holds it."""
    make_private(folder, mode=0o711)
    lock = (folder / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


@contextlib.contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    cluster = embedded_cluster(DataFolder(folder), THROWAWAY, environ=os.environ)
    cluster.initialise()
    with (folder / "postgres.log").open("wb") as log:
        server = cluster.program().start(log)
    try:
        wait_until_it_answers(cluster, server, folder / "postgres.log")
        make_roles(cluster.conninfo(), login=True, createdb=True)
        yield cluster
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(START_LIMIT_SECONDS)


def wait_until_it_answers(cluster: Cluster, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_SECONDS
    while not cluster.answers():
        if server.poll() is not None or time.monotonic() > deadline:
            pytest.exit(f"PostgreSQL did not start:\n{log.read_text()[-2000:]}", returncode=1)
        time.sleep(0.02)
