from typing import Any

from django.core.management.base import CommandParser
from django.core.management.commands import migrate
from django.db import connections

from config import database


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
            cursor.execute(database.PRIVILEGES_BEFORE)
        super().handle(*args, **{**options, "database": "owner"})
        with connection.cursor() as cursor:
            cursor.execute(database.PRIVILEGES_AFTER)
            cursor.execute("SELECT pg_advisory_unlock(%s)", [database.MIGRATING])
