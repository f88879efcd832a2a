"""A decision says whether it was made with others.

`approvals_similar` is left to hosts of the version before: what it counted is one statement now
(approvals/shown.py).
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0023_told_of_interrupts"),
    ]

    operations = [
        migrations.AddField(
            model_name="decision",
            name="bulk",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(
                condition=models.Q(("withdrawn_at__isnull", False)),
                fields=["id"],
                name="decisions_taken_back",
            ),
        ),
    ]
