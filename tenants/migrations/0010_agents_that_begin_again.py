from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0009_answers_stay_in_their_rows")]
    operations = [
        migrations.AddField(
            "agent", "begun_again_at", models.DateTimeField(editable=False, null=True)
        ),
    ]
