"""What the rows of a step promise takes less to look at, and a run of none is in no index of kin."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from interrupts.models.states import RUN_MOVES, STEP_MOVES, VERDICT_MOVES
from tenants import guards


def kin(related_name: str) -> models.ForeignKey:
    return models.ForeignKey(
        "interrupts.run",
        on_delete=django.db.models.deletion.PROTECT,
        null=True,
        related_name=related_name,
        db_constraint=False,
        db_index=False,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("interrupts", "0016_steps_keep_what_policy_saw"),
        ("tenants", "0012_journal_of_several_speakers"),
    ]
    operations = [
        guards.moves_by_condition("interrupts_run", "status", RUN_MOVES),
        guards.moves_by_condition("interrupts_step", "status", STEP_MOVES),
        guards.moves_by_condition("interrupts_interrupt", "status", {"open": ["resolved"]}),
        guards.moves_by_condition("interrupts_verdict", "status", VERDICT_MOVES),
        migrations.RemoveConstraint("interrupt", "interrupt_resolution_is_all_or_nothing"),
        guards.promise(
            "interrupts_interrupt",
            "interrupt_resolution_is_all_or_nothing",
            {"status": "varchar", "resolution": "varchar", "resolved_at": "timestamptz"},
            "pg_catalog.num_nulls(resolution, resolved_at) = CASE status"
            " WHEN 'open' THEN 2 WHEN 'resolved' THEN 0 ELSE -1 END",
        ),
        migrations.AlterField("run", "forked_from", kin("forks")),
        migrations.AlterField("run", "parent", kin("children")),
        migrations.AddIndex(
            "run",
            models.Index(
                fields=["parent"], condition=Q(parent__isnull=False), name="run_of_parent"
            ),
        ),
        migrations.AddIndex(
            "run",
            models.Index(
                fields=["forked_from"], condition=Q(forked_from__isnull=False), name="run_of_origin"
            ),
        ),
    ]
