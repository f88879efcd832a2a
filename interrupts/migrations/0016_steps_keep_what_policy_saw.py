"""What policy saw when it judged a step, which may be otherwise later."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("interrupts", "0015_budgets_and_context")]
    operations = [
        migrations.AddField("step", "judged", models.JSONField(null=True)),
    ]
