import os
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connections

from config.database import databases
from config.supervisor.paths import PROJECT
from config.supervisor.processes import Program
from config.supervisor.supervise import Supervisor


class Command(BaseCommand):
    """Start the whole service with its embedded servers, and keep it going."""

    help = "Start the whole service and keep it going; Ctrl-C stops all of it."
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        supervisor = Supervisor(
            settings.DATA_FOLDER,
            settings.ABEYANCE_HOST,
            settings.ABEYANCE_PORT,
            self._say,
            stop_seconds=settings.ABEYANCE_STOP_SECONDS,
            longest_pause=settings.ABEYANCE_LONGEST_PAUSE,
        )
        supervisor.run(lambda: self._prepare(supervisor))

    def _prepare(self, supervisor: Supervisor) -> Mapping[str, Program]:
        """Bring the database up to date; returns what is to be kept running beside the service."""
        self._migrate()
        # What this host was drained for is over: new workers are about to start on it.
        call_command("drain", undo=True, stdout=self.stdout)
        beside = self._demo(supervisor) if settings.ABEYANCE_DEMO else {}
        connections.close_all()
        return beside

    def _demo(self, supervisor: Supervisor) -> Mapping[str, Program]:
        if not (PROJECT / "demo" / "install.py").is_file():  # an installed package has no demo
            return {}
        from demo.install import install  # noqa: PLC0415 - see above

        return install(supervisor.folder, supervisor.url, supervisor.port, self._say)

    def _migrate(self) -> None:
        # The first start decides where the cluster lies, after these settings were read.
        for alias, database in databases(os.environ, settings.DATA_FOLDER).items():
            settings.DATABASES[alias]["HOST"] = database["HOST"]
        call_command("migrate", verbosity=0)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
