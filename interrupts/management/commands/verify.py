"""`manage.py verify`: prove that what is stored is what happened."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from interrupts import anchors, locks, verification
from interrupts.models import Run
from interrupts.services import damage
from tenants.models import Tenant
from tenants.scope import tenant_scope


def _noted(
    faults: Iterable[verification.Fault], by_stream: dict[UUID, verification.Fault]
) -> Iterator[verification.Fault]:
    for fault in faults:
        by_stream.setdefault(fault.stream, fault)
        yield fault


@dataclass(slots=True)
class Tally:
    runs: int = 0
    faults: int = 0


class Command(BaseCommand):
    help = (
        "Compute every chain anew, rebuild each run's state from its journal and content, and"
        " compare: receipts, decisions, checkpoints, bodies, states, and the heads in the anchor."
        " Runs that do not verify are shown as damaged from then on; those that do, no more."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--tenant", help="the slug of the one tenant to verify")
        parser.add_argument("--run", type=UUID, help="the id of the one run to verify")
        parser.add_argument("--no-anchor", action="store_true", help="do not compare the anchor")

    def handle(self, **options: Any) -> None:
        tenants = Tenant.objects.order_by("slug")
        if options["tenant"]:
            tenants = tenants.filter(slug=options["tenant"])
        heads = {} if options["no_anchor"] else anchors.read()
        tally = Tally()
        if not options["tenant"] and not options["run"]:
            self._lost_tenants(heads, tally)
        elif not tenants.exists():
            raise CommandError("there is no such tenant")
        for tenant in tenants:
            with tenant_scope(tenant.pk):
                self._tenant(tenant, options["run"], heads, tally)
        if options["run"] and not tally.runs:
            raise CommandError("there is no such run")
        self.stdout.write(f"{tenants.count()} tenants, {tally.runs} runs, {tally.faults} faults")
        if tally.faults:
            raise CommandError(f"{tally.faults} faults")

    def _lost_tenants(self, heads: anchors.Heads, tally: Tally) -> None:
        known = set(Tenant.objects.values_list("pk", flat=True))
        for tenant in sorted(heads.keys() - known):
            self.stdout.write(f"tenant {tenant}: is in the anchor and not in the database")
            tally.faults += 1

    def _tenant(
        self, tenant: Tenant, run_id: UUID | None, heads: anchors.Heads, tally: Tally
    ) -> None:
        if run_id is None:
            self._tell(tenant, verification.of_tenant(), tally)
        lost: dict[UUID, verification.Fault] = {}
        self._tell(tenant, _noted(anchors.faults(heads, run_id), lost), tally)
        rows = Run.objects.order_by("id")
        if run_id is not None:
            rows = rows.filter(pk=run_id)
        for run in rows.iterator(500):
            tally.runs += 1
            self._run(tenant, run, lost.get(run.pk), tally)

    def _run(self, tenant: Tenant, run: Run, lost: verification.Fault | None, tally: Tally) -> None:
        """Verify a run, and show it as damaged where it is, or no more."""
        is_whole = run.damage is None and lost is None
        if is_whole and next(verification.of_run(run), None) is None:
            return
        # It may have gone on while it was read: under its lock rows and journal are of one moment.
        with transaction.atomic():
            locks.lock_family(run.pk)
            run = Run.objects.get(pk=run.pk)
            first = self._tell(tenant, verification.of_run(run), tally) or lost
            if first is None:
                damage.clear(run.pk)
            else:
                damage.show(run.pk, f"{first.at} {first.what}")

    def _tell(
        self, tenant: Tenant, faults: Iterable[verification.Fault], tally: Tally
    ) -> verification.Fault | None:
        """Print each fault as it is found; return the first."""
        first = None
        for fault in faults:
            self.stdout.write(f"{tenant.slug}: {fault}")
            tally.faults += 1
            first = first or fault
        return first
