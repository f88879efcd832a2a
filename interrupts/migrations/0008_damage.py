"""What was found damaged of a run, and what the sweep's role may see of that."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("interrupts", "0007_receipts_tell_more"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="damage",
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="damaged_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("damaged_at__isnull", False)),
                fields=["damaged_at"],
                name="run_damaged",
            ),
        ),
        migrations.RunSQL(
            "GRANT SELECT (damaged_at) ON interrupts_run TO abeyance_sweep",
            "REVOKE SELECT (damaged_at) ON interrupts_run FROM abeyance_sweep",
        ),
    ]
