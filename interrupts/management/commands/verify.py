"""`manage.py verify`: prove that what is stored is what happened."""

from __future__ import annotations

import argparse
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from interrupts import anchors, verification
from interrupts.models import Run
from tenants.models import Tenant
from tenants.scope import tenant_scope


class Command(BaseCommand):
    help = (
        "Compute every chain anew, rebuild each run's state from its journal and content, and"
        " compare: receipts, checkpoints, bodies, states, and the heads in the anchor."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--tenant", help="the slug of the one tenant to verify")
        parser.add_argument("--run", type=UUID, help="the id of the one run to verify")
        parser.add_argument("--no-anchor", action="store_true", help="do not compare the anchor")

    def handle(self, **options: Any) -> None:
        tenants = Tenant.objects.order_by("slug")
        if options["tenant"]:
            tenants = tenants.filter(slug=options["tenant"])
        if not tenants.exists():
            raise CommandError("there is no such tenant")
        runs = faults = 0
        heads = {} if options["no_anchor"] else anchors.read()
        for tenant in tenants:
            with tenant_scope(tenant.pk):
                checked, wrong = self._tenant(tenant, options["run"], heads)
            runs, faults = runs + checked, faults + wrong
        if options["run"] and not runs:
            raise CommandError("there is no such run")
        self.stdout.write(f"{tenants.count()} tenants, {runs} runs, {faults} faults")
        if faults:
            raise CommandError(f"{faults} faults")

    def _tenant(self, tenant: Tenant, run_id: UUID | None, heads: anchors.Heads) -> tuple[int, int]:
        wrong = 0
        if run_id is None:
            wrong += self._tell(tenant, [*verification.of_tenant(), *anchors.faults(heads)])
        rows = Run.objects.order_by("id")
        if run_id is not None:
            rows = rows.filter(pk=run_id)
        checked = 0
        for run in rows.iterator(500):
            checked += 1
            wrong += self._tell(tenant, list(verification.of_run(run)))
        return checked, wrong

    def _tell(self, tenant: Tenant, faults: list[verification.Fault]) -> int:
        for fault in faults:
            self.stdout.write(f"{tenant.slug}: {fault}")
        return len(faults)
