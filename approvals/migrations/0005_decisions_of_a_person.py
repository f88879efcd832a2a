from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0004_gate_preview_until")]
    operations = [
        migrations.AddIndex(
            "decision", models.Index(fields=["user", "id"], name="decisions_of_a_person")
        ),
    ]
