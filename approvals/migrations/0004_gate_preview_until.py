from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0003_hot_path")]
    operations = [
        migrations.AddField(
            model_name="gate",
            name="preview_until",
            field=models.DateTimeField(null=True),
        ),
    ]
