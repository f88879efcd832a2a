"""What a tool's verifier says of its receipts; a run that awaits it starts nothing meanwhile."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

import tenants.ids
import tenants.scope
from interrupts.models.states import VERDICT_MOVES
from tenants import guards, rls

HERE = Path(__file__).parent
AFTER = (HERE / "0013_verdicts.sql").read_text()
BEFORE = (HERE / "0011_reads_together.sql").read_text()
# The functions that tell of a receipt stay as they are.
ONLY_ADVANCE = BEFORE[BEFORE.index("-- Records what was seen") :]
DROP = """
DO $$
BEGIN
    EXECUTE (SELECT 'DROP FUNCTION ' || oid::regprocedure FROM pg_proc
        WHERE proname = 'interrupts_advance' AND pronamespace = current_schema()::regnamespace);
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("interrupts", "0012_questions"), ("tenants", "0007_secrets")]
    operations = [
        migrations.AddField(
            "run", "verdicts_awaited", models.IntegerField(db_default=0, default=0)
        ),
        migrations.AddField(
            "run", "verdicts_holding", models.IntegerField(db_default=0, default=0)
        ),
        migrations.AddField("toolversion", "verifier", models.JSONField(null=True)),
        migrations.CreateModel(
            "Verdict",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=tenants.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("awaited", "Awaited"),
                            ("passed", "Passed"),
                            ("rejected", "Rejected"),
                            ("unknown", "Unknown"),
                        ],
                        default="awaited",
                        editable=False,
                        max_length=8,
                    ),
                ),
                ("receipt", models.UUIDField()),
                ("holds", models.BooleanField()),
                ("tries", models.IntegerField(default=0)),
                ("ask_at", models.DateTimeField(null=True)),
                ("asking_until", models.DateTimeField(null=True)),
                ("words", models.TextField(null=True)),
                ("error", models.TextField(null=True)),
                ("awaited_since", models.DateTimeField()),
                ("recorded_at", models.DateTimeField(null=True)),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
                        to="interrupts.run",
                    ),
                ),
                (
                    "step",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="interrupts.step",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        default=tenants.scope.current_tenant_id,
                        editable=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "constraints": [
                    models.UniqueConstraint(fields=("step",), name="one_verdict_per_step"),
                    models.CheckConstraint(
                        condition=models.Q(status="awaited", recorded_at=None, ask_at__isnull=False)
                        | (
                            ~models.Q(status="awaited")
                            & models.Q(recorded_at__isnull=False, ask_at=None)
                        ),
                        name="a_verdict_is_awaited_or_recorded",
                    ),
                ],
            },
        ),
        rls.tenant_table("interrupts_verdict", key=None),
        rls.tenant_reference("interrupts_verdict", "run_id", "interrupts_run"),
        rls.tenant_reference("interrupts_verdict", "step_id", "interrupts_step"),
        rls.found_by_the_rest("interrupts_verdict"),
        guards.legal_moves("interrupts_verdict", "status", VERDICT_MOVES),
        guards.only_these_change(
            "interrupts_verdict",
            "status, holds, tries, ask_at, asking_until, words, error, recorded_at",
        ),
        migrations.RunSQL(DROP + AFTER, DROP + ONLY_ADVANCE),
    ]
