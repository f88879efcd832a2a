"""The service on the measured cluster: its own programs, a tenant, and the measured tools."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.client import answers, free_port
from benchmarks.cluster import Cluster
from benchmarks.ours.api import Credentials
from benchmarks.processes import run, running
from config.database import NAME, make_database, make_roles
from config.supervisor.broker import broker_answers, broker_program
from config.supervisor.paths import PROJECT
from config.supervisor.service import web_program, worker_program

TENANT = Path(__file__).with_name("tenant.yaml")
DATABASE = NAME
PLUGIN = "abeyance_bench-1.dist-info"
ENTRY_POINTS = """\
[abeyance.tools]
bench.tick = benchmarks.ours.tools:tick
bench.mark = benchmarks.ours.tools:mark
"""
METADATA = "Metadata-Version: 2.1\nName: abeyance-bench\nVersion: 1\n"


@dataclass(frozen=True, slots=True)
class Service:
    """The installed service; its web processes run, a worker runs where it is asked for."""

    cluster: Cluster
    environment: dict[str, str]
    port: int
    credentials: Credentials

    @property
    def meter(self) -> Path:
        """The socket at which effects say when they began."""
        return Path(self.environment["BENCH_METER"])

    @contextmanager
    def working(self) -> Iterator[None]:
        """Run a Celery worker for the length of the block, as `up` runs it."""
        program = worker_program(self.environment)
        with running(program, self.cluster.log("worker"), ready=lambda: True):
            yield


@contextmanager
def installed(cluster: Cluster) -> Iterator[Service]:
    """Install the service on the cluster and serve it for the length of the block."""
    environment = _environment(cluster)
    make_roles(cluster.conninfo, login=True)
    make_database(cluster.conninfo)
    manage(environment, "migrate", "--verbosity", "0")
    credentials = _apply(cluster, environment)
    broker = broker_program(cluster.folder)
    with running(broker, cluster.log("broker"), ready=lambda: broker_answers(cluster.folder)):
        port = free_port()
        web = web_program(environment, host="127.0.0.1", port=port)
        with running(web, cluster.log("web"), ready=lambda: answers(port, "/healthz/ready")):
            yield Service(cluster, environment, port, credentials)


def manage(environment: dict[str, str], *command: str) -> None:
    """Run a management command."""
    run(sys.executable, PROJECT / "manage.py", *command, environment=environment)


def _environment(cluster: Cluster) -> dict[str, str]:
    """Return what the service's processes are told: the data folder, and where our tools are."""
    plugin = cluster.folder.root / "plugin"
    (plugin / PLUGIN).mkdir(parents=True)
    (plugin / PLUGIN / "entry_points.txt").write_text(ENTRY_POINTS)
    (plugin / PLUGIN / "METADATA").write_text(METADATA)
    return cluster.environment(
        ABEYANCE_DATA_DIR=str(cluster.folder.root),
        ABEYANCE_DEMO="0",
        BENCH_METER=str(cluster.folder.root / "meter"),
        DJANGO_SETTINGS_MODULE="config.settings",
        PYTHONPATH=os.pathsep.join([str(PROJECT), str(plugin)]),
    )


def _apply(cluster: Cluster, environment: dict[str, str]) -> Credentials:
    out = cluster.folder.root / "credentials.json"
    manage(environment, "apply", str(TENANT), "--credentials-out", str(out))
    made = json.loads(out.read_text())["bench"]
    return Credentials(made["agents"]["agent"], made["users"]["bench-dora"]["token"])
