from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_people_sign_in")]
    operations = [
        migrations.AddField("outboxmessage", "about", models.UUIDField(null=True)),
        migrations.AddField("outboxmessage", "recipient", models.UUIDField(null=True)),
        migrations.AddField("outboxmessage", "batch", models.UUIDField(null=True)),
        migrations.AddIndex(
            "outboxmessage",
            models.Index(
                fields=["recipient", "sent_at"],
                condition=Q(recipient__isnull=False),
                name="outbox_of_a_person",
            ),
        ),
        migrations.AddConstraint(
            "outboxmessage",
            models.UniqueConstraint(
                fields=["recipient", "about", "kind"],
                condition=Q(recipient__isnull=False),
                name="a_person_is_told_once",
            ),
        ),
    ]
