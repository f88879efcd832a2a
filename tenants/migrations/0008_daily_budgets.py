"""What an agent's runs may use in a day is declared with the agent."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0007_secrets")]
    operations = [
        migrations.AddField(
            "agent", "daily_budget", models.JSONField(blank=True, db_default={}, default=dict)
        ),
    ]
