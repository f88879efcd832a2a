"""`manage.py secret`: what a tenant signs in with elsewhere, set from standard input."""

from __future__ import annotations

import argparse
import sys
from getpass import getpass
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from tenants.changes import Change
from tenants.errors import InvalidSecret
from tenants.journal import Actor
from tenants.models import Secret, Tenant
from tenants.scope import tenant_scope
from tenants.services.secrets import MOST, remove_secrets, set_secrets

COMMAND: Final = Actor("system", "secret")


class Command(BaseCommand):
    help = "Set, remove and list a tenant's secrets. A value is read from standard input."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="set|remove|list")
        for act, told in (
            ("set", "read a value from standard input and keep it, sealed"),
            ("remove", "destroy what a secret holds"),
            ("list", "list names, versions and when each was set"),
        ):
            one = acts.add_parser(act, help=told)
            one.add_argument("--tenant", required=True, help="the tenant's slug")
            if act != "list":
                one.add_argument("--name", required=True, help="the secret's name")

    def handle(self, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError("there is no such tenant")
        with tenant_scope(tenant.pk):
            if options["act"] == "list":
                self._list()
            else:
                self._change(options["act"], options["name"])

    def _change(self, act: str, name: str) -> None:
        value = _read_value() if act == "set" else ""
        try:
            with transaction.atomic(durable=True):
                changes = (
                    set_secrets(COMMAND, {name: value})
                    if act == "set"
                    else remove_secrets(COMMAND, [name])
                )
        except InvalidSecret as fault:
            raise CommandError(f"nothing was changed: {fault.detail}") from None
        self.stdout.write(_told(changes))

    def _list(self) -> None:
        for row in Secret.objects.order_by("name"):
            state = f"removed {row.removed_at:%Y-%m-%d}" if row.removed_at else "set"
            self.stdout.write(f"{row.name}  version {row.version}  {row.set_at:%Y-%m-%d}  {state}")


def _read_value() -> str:
    """Return what standard input holds, without the end of its line."""
    if sys.stdin.isatty():
        return getpass("Value: ")
    return sys.stdin.read(MOST + 3).removesuffix("\n").removesuffix("\r")


def _told(changes: list[Change]) -> str:
    if not changes:
        return "it was so already"
    (change,) = changes
    if change.after is None:
        return f"{change.name}: removed"
    return f"{change.name}: version {change.after['version']}"
