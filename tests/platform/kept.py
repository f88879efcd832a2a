"""A data folder as `up` left it: whoever starts on a copy of it has nothing to migrate."""

from __future__ import annotations

import fcntl
import os
import subprocess
from functools import cache
from pathlib import Path

from config.supervisor.keyfile import folder_mode
from config.supervisor.paths import DataFolder, make_private
from config.supervisor.postgres import embedded_cluster
from tests.platform.service import Service


def ran_before(folder: DataFolder) -> None:
    """Give a data folder that nobody has used yet the cluster and the keys of one that ran."""
    kept = stopped()
    make_private(folder.root, mode=folder_mode())
    cluster = embedded_cluster(folder, environ={})
    make_private(cluster.home, owner=cluster.account.uid)
    for what, where in ((kept.cluster / "data", cluster.data), (kept.keys, folder.keys)):
        subprocess.run(["cp", "-a", what, where], check=True)


@cache
def stopped() -> DataFolder:
    """The folder of one that started and stopped; the session's processes make it once."""
    folder = DataFolder(Path(os.environ["ABEYANCE_DATA_DIR"]) / "ran-before")
    with Path(f"{folder.root}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (done := folder.root / "stopped").exists():
            Service(folder.root).start().stop()
            done.touch()
    return folder
