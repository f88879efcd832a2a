"""What is kept of an answer takes less to look at."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0012_journal_of_several_speakers")]
    operations = [
        # The service's own status of an answer, which is not below nothing.
        migrations.AlterField("idempotentanswer", "status", models.SmallIntegerField()),
    ]
