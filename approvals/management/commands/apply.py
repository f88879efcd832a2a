from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError, transaction

from approvals.tenantfile.applying import Applied, apply_documents
from approvals.tenantfile.checking import check_documents, unmatched_globs
from approvals.tenantfile.credentials import CannotGiveOut, CredentialsFile
from approvals.tenantfile.difference import lines_of, summary
from approvals.tenantfile.reading import UnreadableFile, read_documents
from tenants.services.people import AnotherPerson


class Command(BaseCommand):
    """Makes tenants what a file says: all of it, or nothing where something in it is wrong."""

    help = "Make each tenant what a YAML file says."
    requires_system_checks: list[str] = []
    committed = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument(
            "--credentials-out",
            type=Path,
            metavar="OUT.json",
            help="where the credentials of what is newly made go, once",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="tell the changes and make none of them"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            documents = read_documents(options["file"])
            out = options["credentials_out"]
            credentials = CredentialsFile(out) if out and not options["dry_run"] else None
            applied = self._apply(documents, credentials, dry_run=options["dry_run"])
        except (UnreadableFile, CannotGiveOut) as fault:
            raise CommandError(f"nothing was changed\n{fault}") from None
        except AnotherPerson as fault:
            # Made between the check and the change, by another way than this.
            raise CommandError(f"nothing was changed\nanother person is called {fault}") from None
        except (DatabaseError, InterfaceError) as fault:
            made = "the changes were made, but" if self.committed else "nothing was changed:"
            raise CommandError(f"{made} the database says: {str(fault).strip()}") from fault
        self._tell(documents, applied, credentials, dry_run=options["dry_run"])

    def _apply(
        self, documents: list[Any], credentials: CredentialsFile | None, *, dry_run: bool
    ) -> list[Applied]:
        try:
            with transaction.atomic(durable=True):
                # Before the drains, which come with the commit too and may fail.
                transaction.on_commit(lambda: self._committed(credentials))
                if faults := check_documents(documents):
                    raise UnreadableFile(*faults)
                applied = apply_documents(documents, issue=credentials is not None)
                if dry_run:
                    transaction.set_rollback(True)
                elif credentials is not None:
                    credentials.stage(applied)
        finally:
            if credentials is not None:
                credentials.discard()
        return applied

    def _committed(self, credentials: CredentialsFile | None) -> None:
        self.committed = True
        if credentials is not None:
            credentials.publish()

    def _tell(
        self,
        documents: list[Any],
        applied: list[Applied],
        credentials: CredentialsFile | None,
        *,
        dry_run: bool,
    ) -> None:
        for line in lines_of(applied):
            self.stdout.write(line)
        for document in documents:
            for note in unmatched_globs(document):
                self.stdout.write(f"note: {document['tenant']}: {note}")
        self.stdout.write(summary(applied) + (" (a dry run: none was made)" if dry_run else ""))
        if credentials is None:
            return
        if credentials.failure:
            raise CommandError(f"the changes were made, but {credentials.failure}")
        if any(one.issued for one in applied):
            self.stdout.write(f"credentials: {credentials.path}")
