from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import connections, transaction
from django.db.migrations.recorder import MigrationRecorder

from config import chain, database

LAST_BEFORE = "43698c8"
"""The last commit whose migrations were a chain from the first day on (docs/adr/0023)."""


class Command(migrate.Command):
    """Django's migrate, as the owner role: one at a time, with the app role's privileges."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(database="owner")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["database"] != "owner":
            self.stderr.write("Only the owner role migrates; going on as it.")
        with connections["owner"].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [database.MIGRATING])
            try:
                _take_over()
                cursor.execute(database.PRIVILEGES_BEFORE)
                super().handle(*args, **{**options, "database": "owner"})
                cursor.execute(database.PRIVILEGES_AFTER)
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [database.MIGRATING])


def _take_over() -> None:
    """Say in this version's words what an earlier one has applied, or refuse what is too old."""
    recorder = MigrationRecorder(connections["owner"])
    applied = set(recorder.applied_migrations())
    if missing := chain.missing(applied):
        raise CommandError(
            f"this database is older than what can be taken on ({'.'.join(missing)} was never"
            f" applied): migrate it with commit {LAST_BEFORE} first"
        )
    # The rows of before stay: hosts of that version look at them, and may run meanwhile.
    with transaction.atomic("owner"):
        for app, name in chain.taken_over(applied):
            recorder.record_applied(app, name)
