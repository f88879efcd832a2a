"""`manage.py delegation`: what was learned made again from its events, and a step explained."""

from __future__ import annotations

import argparse
import time
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from delegation.explaining import explain
from delegation.services import rebuilding
from interrupts.models import Step
from tenants.models import Tenant
from tenants.scope import tenant_scope


class Command(BaseCommand):
    help = "Make what was learned again from its events, or explain a step."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="rebuild|explain")
        rebuild = acts.add_parser("rebuild", help="make every state and rule again from the events")
        rebuild.add_argument("--tenant", help="the tenant's slug; none: all of them")
        rebuild.add_argument(
            "--check", action="store_true", help="tell what differs, and change nothing"
        )
        told = acts.add_parser("explain", help="say what rules had to do with a step")
        told.add_argument("--tenant", required=True, help="the tenant's slug")
        told.add_argument("--step", required=True, type=UUID, help="the step's id")

    def handle(self, **options: Any) -> None:
        tenants = Tenant.objects.order_by("slug")
        if options["tenant"] is not None:
            tenants = tenants.filter(slug=options["tenant"])
            if not tenants:
                raise CommandError("there is no such tenant")
        if options["act"] == "explain":
            self._explain(tenants[0], options["step"])
        else:
            self._rebuild(list(tenants), check=options["check"])

    def _explain(self, tenant: Tenant, step: UUID) -> None:
        with tenant_scope(tenant.pk):
            try:
                self.stdout.write("\n".join(explain(step)))
            except Step.DoesNotExist:
                raise CommandError("there is no such step") from None

    def _rebuild(self, tenants: list[Tenant], *, check: bool) -> None:
        differing = events = 0
        began = time.monotonic()
        for tenant in tenants:
            with tenant_scope(tenant.pk):
                events += rebuilding.extent()
                found = rebuilding.check() if check else rebuilding.rebuild()
            differing += len(found)
            for one in found:
                self.stdout.write(f"{tenant.slug} {one}")
        took = time.monotonic() - began
        self.stderr.write(f"{events:,} events in {took:.1f} s")
        if check and differing:
            raise CommandError(f"{differing} of what was learned are not what the events make")
        self.stdout.write("it is what the events make" if not differing else "written anew")
