"""Drains, which every intent of a worker looks at, and what the sweep and /metrics keep and see."""

from pathlib import Path

from django.db import migrations, models

from tenants import rls

HERE = Path(__file__).parent
BEFORE = (HERE / "0003_hot_path.sql").read_text()
ADVANCE = "-- Records what was seen of a worker's attempt"
GRANTS = """
GRANT SELECT ON interrupts_drain, interrupts_sweepround, interrupts_tally TO abeyance_sweep;
GRANT SELECT (status, suspension, ended_at, reading, reading_until)
    ON interrupts_run TO abeyance_sweep;
GRANT SELECT (slug) ON tenants_tenant TO abeyance_sweep;
GRANT SELECT (created_at) ON tenants_outboxmessage TO abeyance_sweep;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("interrupts", "0005_tenant_implied"),
        ("tenants", "0005_messages_to_people"),
    ]
    operations = [
        migrations.CreateModel(
            name="Drain",
            fields=[
                ("host", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("since", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="SweepRound",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False),
                ),
                ("ended_at", models.DateTimeField()),
                ("seconds", models.FloatField()),
                ("rounds", models.BigIntegerField()),
                ("unworkable", models.IntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="Tally",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("value", models.BigIntegerField()),
            ],
        ),
        migrations.AddField(
            model_name="interrupt",
            name="set_aside",
            field=models.GeneratedField(
                db_persist=True,
                expression=models.ExpressionWrapper(
                    models.Q(("evidence__set_aside", True)), output_field=models.BooleanField()
                ),
                output_field=models.BooleanField(null=True),
            ),
        ),
        migrations.AddIndex(
            model_name="interrupt",
            index=models.Index(
                condition=models.Q(("status", "open")),
                fields=["opened_at"],
                name="interrupt_open_since",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("ended_at", None)),
                fields=["status", "suspension"],
                name="run_live",
            ),
        ),
        rls.swept(
            "interrupts_interrupt",
            "tenant_id, kind, reason, status, opened_at, expires_at, set_aside",
            "status = 'open'",
        ),
        rls.swept(
            "interrupts_attempt",
            "tenant_id, run_id, step_id, worker, started_at, lease_expires_at, lapsed_at,"
            " settled_at",
            "settled_at IS NULL AND lapsed_at IS NULL",
        ),
        migrations.RunSQL(
            GRANTS,
            GRANTS.replace("GRANT", "REVOKE").replace(" TO ", " FROM "),
        ),
        migrations.RunSQL(
            (HERE / "0006_drain.sql").read_text(),
            BEFORE[BEFORE.index(ADVANCE) :].replace(
                "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
            ),
        ),
    ]
