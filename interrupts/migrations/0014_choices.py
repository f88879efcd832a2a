"""A tool says what people may choose of its calls; a step, which declared reason they chose."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("interrupts", "0013_verdicts")]
    operations = [
        migrations.AddField(
            "toolversion", "decisions", models.JSONField(db_default=[], default=list)
        ),
        migrations.AddField("step", "reason_code", models.CharField(max_length=50, null=True)),
    ]
