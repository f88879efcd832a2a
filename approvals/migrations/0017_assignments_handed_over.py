"""A gate that waits is handed to another of those who may decide it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0016_questions")]
    operations = [
        migrations.AddField("assignment", name, models.DateTimeField(null=True))
        for name in ("handed_at", "passed_at")
    ]
