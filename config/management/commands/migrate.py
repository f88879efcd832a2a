from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from config import database

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
        connection = connections["owner"]
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [database.MIGRATING])
            if missing := missing_before(set(MigrationRecorder(connection).applied_migrations())):
                cursor.execute("SELECT pg_advisory_unlock(%s)", [database.MIGRATING])
                raise CommandError(
                    f"this database is older than what can be taken on ({'.'.join(missing)} was"
                    f" never applied): migrate it with commit {LAST_BEFORE} first"
                )
            cursor.execute(database.PRIVILEGES_BEFORE)
        super().handle(*args, **{**options, "database": "owner"})
        with connection.cursor() as cursor:
            cursor.execute(database.PRIVILEGES_AFTER)
            cursor.execute("SELECT pg_advisory_unlock(%s)", [database.MIGRATING])


def missing_before(applied: set[tuple[str, str]]) -> tuple[str, str] | None:
    """Return the first migration that is missing of a chain of which a part was applied."""
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    for key, migration in sorted(loader.disk_migrations.items()):
        missing = [each for each in migration.replaces if each not in applied]
        if key not in applied and 0 < len(missing) < len(migration.replaces):
            return missing[0]
    return None
