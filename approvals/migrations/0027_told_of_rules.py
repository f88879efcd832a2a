from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0026_groups_hold_authority")]
    operations = [
        migrations.AddField(
            "noticepreference", "rules", models.BooleanField(db_default=True, default=True)
        ),
    ]
