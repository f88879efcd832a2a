"""A young tenant's steps, runs and what belongs to them are found by their ids, never by its own."""

from django.db import migrations

from tenants import rls


class Migration(migrations.Migration):
    dependencies = [("interrupts", "0008_damage")]
    operations = [
        rls.found_by_the_rest(
            "interrupts_run",
            "interrupts_step",
            "interrupts_attempt",
            "interrupts_receipt",
            "interrupts_interrupt",
            "interrupts_checkpoint",
            "interrupts_content",
        )
    ]
