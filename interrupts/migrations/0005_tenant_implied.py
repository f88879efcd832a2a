"""What refers to a run, a step or an agent of its tenant needs no reference to the tenant."""

from django.db import migrations

from tenants import rls


class Migration(migrations.Migration):
    dependencies = [("interrupts", "0004_anchor")]
    operations = [
        rls.tenant_implied(
            "interrupts_run",
            "interrupts_checkpoint",
            "interrupts_step",
            "interrupts_attempt",
            "interrupts_receipt",
            "interrupts_interrupt",
        )
    ]
