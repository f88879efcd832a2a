from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0024_decisions_in_bulk")]
    operations = [
        migrations.AddField(
            "noticepreference", "rules", models.BooleanField(db_default=True, default=True)
        ),
    ]
