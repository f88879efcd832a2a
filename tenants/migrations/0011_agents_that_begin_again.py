from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0010_group_members_found_by_the_rest")]
    operations = [
        migrations.AddField(
            "agent", "begun_again_at", models.DateTimeField(editable=False, null=True)
        ),
    ]
