from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0006_notices")]
    operations = [
        migrations.AddField("noticepreference", name, models.BooleanField(default=True))
        for name in ("votes", "expiries", "outcomes", "recoveries")
    ]
